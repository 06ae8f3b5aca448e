"""Resuming: the same bytes, and clear refusals."""

import json
import shutil
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso


def energy(x):
    return 0.5 * jnp.sum(x["a"] ** 2) + jnp.sum(x["b"][0] ** 4)


START = {"a": jnp.ones(2), "b": [jnp.zeros(1)]}
SAMPLER = iso.sghmc(step_size=0.02)
SETTINGS: dict[str, Any] = {"num_steps": 400, "num_chains": 2, "num_runs": 2, "thinning": 5, "seed": 4, "init": START}


def same(a, b):
    np.testing.assert_array_equal(a.draws["a"][:], b.draws["a"][:])
    np.testing.assert_array_equal(a.draws["b"][0][:], b.draws["b"][0][:])
    np.testing.assert_array_equal(a.energies[:], b.energies[:])
    np.testing.assert_array_equal(a.stats["best_energy"], b.stats["best_energy"])


@pytest.fixture
def folder(tmp_path):
    iso.sample(energy, SAMPLER, out=tmp_path / "run", **SETTINGS)
    return tmp_path / "run"


def test_an_extended_run_equals_a_long_one(folder):
    long = iso.sample(energy, SAMPLER, **{**SETTINGS, "num_steps": 1_003})
    same(iso.resume(folder, energy, SAMPLER, num_steps=1_003), long)
    same(iso.load(folder), long)
    # Once more: nothing is left to do, nothing changes, and nothing takes time.
    before = iso.load(folder)
    again = iso.resume(folder, energy, SAMPLER)
    same(again, long)
    assert again.bias is not None
    assert (again.seconds, again.compile_seconds) == (before.seconds, before.compile_seconds)


def test_a_finished_run_without_a_measured_bias_is_measured(tmp_path):
    iso.sample(energy, SAMPLER, out=tmp_path / "run", measure_bias=False, **SETTINGS)
    assert iso.resume(tmp_path / "run", energy, SAMPLER, measure_bias=False).bias is None
    assert iso.resume(tmp_path / "run", energy, SAMPLER).bias is not None


def test_a_run_without_any_checkpoint_starts_again(folder):
    whole = iso.sample(energy, SAMPLER, **SETTINGS)
    for name in ("checkpoints", "records", "end"):
        shutil.rmtree(folder / name)
    (folder / "finished.json").unlink()
    same(iso.resume(folder, energy, SAMPLER), whole)


def test_a_damaged_checkpoint_falls_back_to_the_one_before(folder):
    iso.resume(folder, energy, SAMPLER, num_steps=800)
    newest = max((folder / "checkpoints").iterdir(), key=lambda path: int(path.name))
    for path in newest.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    (folder / "finished.json").unlink()
    whole = iso.sample(energy, SAMPLER, **{**SETTINGS, "num_steps": 800})
    with pytest.warns(
        UserWarning, match=r"A checkpoint in .* is damaged: the run resumes from the one before, at iteration 400"
    ):
        resumed = iso.resume(folder, energy, SAMPLER)
    same(resumed, whole)


def test_positions_of_other_structures_resume_with_a_template(tmp_path):
    import collections

    Point = collections.namedtuple("Point", ["z", "a"])
    start = Point(jnp.zeros(2), jnp.ones(1))
    well = lambda x: jnp.sum(x.z**2) + jnp.sum((x.a - 1.0) ** 2)  # noqa: E731
    sampler = iso.sgld(step_size=0.1)
    iso.sample(well, sampler, num_steps=20, init=start, out=tmp_path / "run")
    longer = iso.resume(tmp_path / "run", well, sampler, num_steps=40, init=start)
    whole = iso.sample(well, sampler, num_steps=40, init=start)
    np.testing.assert_array_equal(longer.draws["z"][:], whole.draws.z)
    with pytest.raises(
        ValueError, match=r"`init` must be a position like those of the run; got other leaves \['a', 'z'\]"
    ):
        iso.resume(tmp_path / "run", well, sampler, init=())


CASES = {
    "not a run": (
        lambda f: iso.resume(f.parent, energy, SAMPLER),
        r"`folder` must be a folder of a run, with a run.json; got",
    ),
    "no code": (
        lambda f: iso.resume(f),
        r"`potential` must be given, and `sampler` too; got None\. Code is never stored",
    ),
    "other step": (
        lambda f: iso.resume(f, energy, iso.sghmc(step_size=0.03)),
        r"`sampler.step_size` must be 0.02, as when the run was started; got 0.03\. This folder belongs to another",
    ),
    "other sampler": (
        lambda f: iso.resume(f, energy, iso.sgld(step_size=0.02)),
        r"`sampler.* as when the run was started",
    ),
    "other energy": (
        lambda f: iso.resume(f, _other_energy, SAMPLER),
        r"`potential.energy.function` must be energy, as when the run was started; got _other_energy",
    ),
    "other values": (
        lambda f: iso.resume(f, _disguised(), SAMPLER),
        r"`potential` must be the one of this run, whose energy is .* at a position that was stored; got",
    ),
    "shorter": (lambda f: iso.resume(f, energy, SAMPLER, num_steps=10), r"`num_steps` must be at least 400; got 10"),
    "not finished": (lambda f: _unfinish(f), r"`folder` must be a run with a checkpoint; got .*iso.resume"),
    "cut short": (lambda f: _truncate(f), r"`folder` must be a folder that isotherm wrote; got no readable"),
    "other version": (lambda f: _age(f), r"`folder` must be a run of format 3 or 4 or 5 or 6"),
    "no arrays": (lambda f: _lose_start(f), r"`folder` must be .*start"),
    "no records": (lambda f: _lose_records(f), r"`folder` must be complete; got a missing or damaged array"),
}


def _other_energy(x):
    return energy(x) + 1.0


def _disguised():
    def energy(x):
        return 5.0 + jnp.sum(x["a"] ** 2)

    energy.__qualname__ = "energy"
    return energy


def _unfinish(folder):
    (folder / "finished.json").unlink()
    (folder / "progress.json").unlink()
    iso.load(folder)


def _truncate(folder):
    text = (folder / "run.json").read_text()
    (folder / "run.json").write_text(text[: len(text) // 2])
    iso.resume(folder, energy, SAMPLER)


def _age(folder):
    stored = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**stored, "format": 0}))
    iso.resume(folder, energy, SAMPLER)


def _lose_start(folder):
    shutil.rmtree(folder / "start")
    iso.resume(folder, energy, SAMPLER)


def _lose_records(folder):
    (folder / "records" / "energies" / "zarr.json").unlink()
    iso.load(folder)


@pytest.mark.parametrize("name", CASES)
def test_refused(name, folder):
    action, message = CASES[name]
    with pytest.raises(ValueError, match=message):
        action(folder)


@pytest.mark.parametrize("sampler", [iso.sgld(0.1), iso.sghmc(0.01), iso.resgld(0.1)], ids=lambda sampler: sampler.name)
def test_positions_with_empty_leaves_are_kept_and_resumed(tmp_path, sampler):
    well = lambda x: jnp.sum(x["a"] ** 2) + jnp.sum(x["b"])  # noqa: E731
    start = {"a": jnp.zeros(2), "b": jnp.zeros((0, 3))}
    iso.sample(well, sampler, num_steps=40, init=start, out=tmp_path / "run")
    resumed = iso.resume(tmp_path / "run", well, sampler, num_steps=70)
    whole = iso.sample(well, sampler, num_steps=70, init=start)
    np.testing.assert_array_equal(resumed.draws["a"], whole.draws["a"])
    assert iso.load(tmp_path / "run").draws["b"].shape == whole.draws["b"].shape == (*whole.draws["a"].shape[:2], 0, 3)
    assert [row.name for row in resumed.summary().rows] == ["a[0]", "a[1]"]


def _fitted(scale, size, rows):
    data = np.linspace(0.0, 1.0, size, dtype=np.float32) * scale
    return iso.from_likelihood(lambda m, x: -((x - m) ** 2), None, data if rows is None else data[:rows])


@pytest.mark.parametrize(
    ("size", "other", "message"),
    [
        (500, (2.0, None), r"`potential.data\[1\]` must be 0.002\d*, as when .*; got 0.004"),
        (500, (1.0, 400), r"`potential.data` must be a list of 500, as when .*; got a list of 400"),
        (
            5_000,
            (2.0, None),
            r"`potential.data` must be float32\[5000\], as when .*; got float32\[5000\] with other values",
        ),
        (5_000, (1.0, 4_000), r"`potential.data` must be float32\[5000\], as when .*; got float32\[4000\]"),
    ],
)
def test_other_data_are_told_in_a_few_words(tmp_path, size, other, message):
    sampler = iso.sgld(1e-5)
    iso.sample(_fitted(1.0, size, None), sampler, num_steps=5, init=jnp.zeros(()), out=tmp_path / "run")
    with pytest.raises(ValueError, match=message) as refused:
        iso.resume(tmp_path / "run", _fitted(other[0], size, other[1]), sampler, num_steps=9)
    assert len(str(refused.value)) < 250


def test_another_thread_pool_is_warned_of(folder, monkeypatch):
    monkeypatch.setenv("NPROC", "17")
    with pytest.warns(UserWarning, match="is resumed with 17.*NPROC"):
        iso.resume(folder, energy, SAMPLER)


def test_a_run_that_is_stopped_before_its_first_draw_and_again_later_ends_like_a_whole_one(tmp_path):
    settings = {**SETTINGS, "burn_in": 300}
    whole = iso.sample(energy, SAMPLER, **settings)
    with pytest.raises(ValueError, match="`callback` must be such that the run continues to its first draw"):
        iso.sample(energy, SAMPLER, out=tmp_path / "run", block_length=50, callback=lambda _: True, **settings)
    seen = []
    stopped = iso.resume(
        tmp_path / "run",
        energy,
        SAMPLER,
        num_steps=2_000_000,
        callback=lambda status: seen.append(status.iteration) or True,
    )
    assert stopped.num_steps == seen[-1] < 2_000_000
    fresh = iso.sample(energy, SAMPLER, **{**settings, "num_steps": stopped.num_steps})
    same(stopped, fresh)
    np.testing.assert_array_equal(whole.energies[:], stopped.energies[..., : whole.num_draws])


def test_a_run_may_go_without_its_bias(tmp_path):
    run = iso.sample(energy, SAMPLER, out=tmp_path / "run", measure_bias=False, **SETTINGS)
    assert run.bias is None
    assert iso.load(tmp_path / "run").bias is None
    assert iso.resume(tmp_path / "run", energy, SAMPLER).bias is not None
