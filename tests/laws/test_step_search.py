"""`step_size="auto"`: step sizes and scales from pilot runs, judged by the laws they aim for."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.foundation.errors import InputError
from isotherm.pilots.noisy import BIAS

SCALES = np.array([1e-3, 1.0, 1e3])
STARTS = iso.per_chain(SCALES * np.array([[2.0], [-2.0], [1.0], [0.5]]))
SETTINGS: dict[str, Any] = {"num_steps": 10, "num_chains": 4, "init": STARTS, "progress": False, "seed": 3}


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    return SETTINGS | changes


def energy(x):
    return 0.5 * jnp.sum((x / SCALES) ** 2)


def chosen(run) -> Any:
    return run.choices[0]["value"]


def steps_over_scales(run):
    """Step sizes times curvatures, for each coordinate."""
    found = chosen(run)
    factor = np.asarray(found["factor"]) if found["is_dense"] else np.diag(np.asarray(found["factor"][0]))
    return found["step_sizes"][0] * np.sum(factor**2, axis=1) / SCALES**2


@pytest.mark.parametrize(
    ("sampler", "share"),
    [
        # The excess of variances over eps / 2 times the curvature: 1 for SGLD, 1 / (2 - alpha) with momentum.
        (iso.sgld("auto"), 1.0),
        (iso.sgld("auto", temperature=4.0), 1.0),
        (iso.sghmc("auto", friction=0.5), 1.0 / 1.5),
        (iso.csgld("auto", partition=(0.1, 8.0, 20)), 1.0),
        (iso.naive_resgld("auto", temperatures=(1.0, 3.0)), 1.0),
        (iso.sgd("auto"), 1.0),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_unadjusted_steps_leave_the_bias_aimed_for(sampler, share):
    is_ladder = sampler.has_ladder(2)
    settings: dict[str, Any] = SETTINGS | ({"num_chains": None, "init": STARTS.positions[0]} if is_ladder else {})
    run = iso.sample(energy, sampler, **settings)
    np.testing.assert_allclose(0.5 * share * steps_over_scales(run), BIAS, rtol=0.25)


def test_the_variance_of_draws_is_that_of_the_bias_aimed_for():
    run = iso.sample(energy, iso.sgld("auto"), **changed({"num_steps": 60_000, "num_chains": 4}))
    found = run.estimate(lambda x: (x / SCALES) ** 2)
    # SGLD on a Gaussian is AR(1): its variance is 1 / (1 - eps / 2).
    exact = 1.0 / (1.0 - 0.5 * steps_over_scales(run))
    assert np.all(np.abs(np.asarray(found.mean) - exact) < 4.5 * np.asarray(found.std_error))


@pytest.mark.parametrize(
    ("sampler", "wanted"),
    [(iso.ghmc("auto"), 0.8), (iso.mala("auto"), 0.6), (iso.reghmc("auto", temperatures=(1.0, 2.0, 8.0)), 0.8)],
    ids=["ghmc", "mala", "reghmc"],
)
def test_adjusted_steps_are_accepted_as_often_as_aimed_for(sampler, wanted):
    is_ladder = sampler.has_ladder(3)
    settings: dict[str, Any] = SETTINGS | {"num_steps": 4_000}
    settings |= {"num_chains": None, "init": STARTS.positions[0]} if is_ladder else {}
    run = iso.sample(energy, sampler, **settings)
    if is_ladder:
        moves, accepted = (np.asarray(run.stats[name]).sum() for name in ("num_moves", "num_moves_accepted"))
        assert abs(accepted / moves - wanted) < 0.08
    else:
        moved = np.any(np.diff(np.asarray(run.draws), axis=1) != 0, axis=-1)
        assert abs(moved.mean() - wanted) < 0.08
    assert len(chosen(run)["step_sizes"]) == (3 if is_ladder else 1)
    ratio = steps_over_scales(run)
    assert ratio.max() / ratio.min() < 1.5


def test_noise_of_gradients_shortens_steps():
    data = np.random.default_rng(0).normal(size=(400, 1)).astype(np.float32)
    likelihood = lambda x, rows: -0.5 * (rows[:, 0] - x[0]) ** 2  # noqa: E731
    potential = iso.from_likelihood(likelihood, lambda x: 0.0 * x[0], data, batch_size=20)
    run = iso.sample(potential, iso.sgld("auto"), **changed({"init": jnp.zeros(1)}))
    # Batches of an epoch: gradients vary by N^2 / n times the variance of an example; the curvature is N.
    noise = 400.0 / 20.0 * data.var()
    (factor,) = chosen(run)["factor"]
    np.testing.assert_allclose(400.0 * np.square(factor), 1.0, rtol=0.25)
    np.testing.assert_allclose(chosen(run)["step_sizes"][0], 2.0 * BIAS / (1.0 + noise), rtol=0.35)


def test_particles_share_the_step_of_the_narrowest_coordinate():
    run = iso.sample(energy, iso.svgd("auto"), **SETTINGS)
    assert chosen(run)["factor"] is None
    np.testing.assert_allclose(chosen(run)["step_sizes"], [2.0 * BIAS * SCALES[0] ** 2], rtol=0.3)


def test_psgld_moves_as_far_as_sgld():
    settings: dict[str, Any] = SETTINGS | {"num_steps": 4_000}
    plain, own = (
        iso.sample(energy, sampler, **settings) for sampler in (iso.sgld("auto"), iso.psgld("auto", freeze_after=1_000))
    )
    jumps = [np.std(np.diff(np.asarray(run.draws[:, 2_000:]) / SCALES, axis=1)) for run in (plain, own)]
    np.testing.assert_allclose(jumps[1], jumps[0], rtol=0.15)


def test_a_box_holds_in_the_pilot():
    run = iso.sample(
        lambda x: jnp.sum(-3.0 * x), iso.ghmc("auto", box=(0.0, 1.0)), **changed({"init": jnp.full(2, 0.5)})
    )
    assert chosen(run)["step_sizes"][0] > 0
    run = iso.sample(
        lambda x: jnp.sum(-3.0 * x),
        iso.sgld("auto", box=(0.0, 1.0, "reflect")),
        **changed({"init": jnp.full(2, 0.5)}),
    )
    assert np.all((np.asarray(run.draws) >= 0.0) & (np.asarray(run.draws) <= 1.0))


def test_a_step_and_a_ladder_or_a_partition_are_found_one_after_the_other(tmp_path):
    both = iso.resgld("auto", ladder=iso.exchange.LadderSearch(200))
    settings: dict[str, Any] = {"num_steps": 50, "init": STARTS.positions[0], "progress": False}
    run = iso.sample(energy, both, out=tmp_path / "run", **settings)
    assert [choice["name"] for choice in run.choices] == ["step_size", "ladder"]
    assert run.choices[1]["value"]["step_sizes"][0] == chosen(run)["step_sizes"][0]
    longer = iso.resume(tmp_path / "run", energy, both, num_steps=100)
    settings["num_steps"] = 100
    whole = iso.sample(energy, both, **settings)
    np.testing.assert_array_equal(longer.draws[:], whole.draws)
    swept = iso.sweep(energy, {"one": both}, **settings)["one"]
    np.testing.assert_array_equal(swept.draws, whole.draws)
    contour = iso.sample(energy, iso.icsgld("auto"), **SETTINGS)
    assert [choice["name"] for choice in contour.choices] == ["step_size", "partition"]


def test_the_sampler_that_was_found_runs_by_hand():
    found = iso.resolve(energy, iso.sghmc("auto"), init=STARTS.positions[0], progress=False)
    state = found.sampler.init(energy, jnp.zeros(3))
    assert state.position.shape == (1, 3)


def test_what_a_pilot_cannot_find_is_refused():
    assert 'step_size="auto"' in repr(iso.sgld("auto"))
    rows = np.zeros(4, np.float32)
    stream = iso.from_likelihood(
        lambda x, rows: -((rows - x) ** 2), lambda x: 0.0 * x, rows, batch_size=2, is_streamed=True
    )
    with pytest.raises(InputError, match="`step_size` must be a number for networks and for data that stream"):
        iso.sample(stream, iso.sgld("auto"), num_steps=10, init=jnp.zeros(()))
    with pytest.raises(InputError, match='`scales` must be left out with `step_size="auto"`'):
        iso.reghmc("auto", scales=np.ones(3))
    with pytest.raises(
        InputError, match=r'`floor` must be left out with `step_size="auto"`; got 0.01\. Give `hold_from`'
    ):
        iso.cycsgld("auto", cycle_length=10, floor=0.01)
    with pytest.raises(InputError, match="`step_size` must be known; got a search that needs a pilot"):
        iso.advise(energy, iso.resgld("auto"), num_steps=100, init=jnp.zeros(3))
    with pytest.raises(InputError, match="`sampler` must be one of independent chains"):
        iso.as_optax(iso.sgld("auto"), 0)
    with pytest.raises(InputError, match="`temperature` must be"):
        iso.sgld("auto", temperature=-1.0)


def test_the_first_step_of_positions_in_half_precision():
    import jax

    from isotherm.pilots.exact import first_step

    class Rounds:
        def next_seed(self):
            return 0

        def energies(self, potential, positions):
            return np.asarray(jax.vmap(lambda x: 0.5 * jnp.sum(x.astype(jnp.float32) ** 2))(positions))

    rounds: Any = Rounds()
    potential: Any = None
    half, single = (first_step(rounds, potential, np.zeros((3, 2), dtype)) for dtype in (np.float16, np.float32))
    assert half == single
