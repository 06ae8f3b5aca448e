"""Files that are damaged on disk are refused by name, written again, or replaced by an older checkpoint."""

import json
import pathlib
import shutil
import zlib
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import isotherm as iso
from isotherm.driver.checkpoints import NUM_KEPT, Checkpoints
from isotherm.run.storage.json_files import read_checked, write_checked
from isotherm.run.storage.store import StoreSink, read_records, write_arrays


def energy(x):
    return 0.5 * jnp.sum(x**2)


SAMPLER = iso.sgld(step_size=0.1)
SETTINGS: dict[str, Any] = {"num_steps": 200, "num_chains": 2, "seed": 4, "init": np.ones(2, np.float32)}
SETTINGS |= {"block_length": 20, "checkpoint_every": 0.0, "measure_bias": False}


def run_in(folder, **changes):
    return iso.sample(energy, SAMPLER, **{"out": folder, **SETTINGS, **changes})


def resume(folder, **changes):
    return iso.resume(folder, energy, SAMPLER, **{"checkpoint_every": 0.0, "measure_bias": False, **changes})


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    run_in(folder)
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    """A finished run with checkpoints at 160, 180 and 200."""
    return pathlib.Path(shutil.copytree(finished, tmp_path / "run"))


def flip(path, place=-1, bit=0):
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << bit
    path.write_bytes(content)


def cut(path):
    path.write_bytes(path.read_bytes()[:-3])


@pytest.mark.parametrize("place", [0, 100, -1])
@pytest.mark.parametrize("name", ["draws", "energies", "log_weights"])
def test_a_flipped_bit_in_a_draw_is_refused_by_the_name_of_its_file(folder, name, place):
    chunk = next((folder / "records" / name).glob("0.*"))
    flip(chunk, place, bit=6)
    run = iso.load(folder)
    array = getattr(run, name)
    message = (
        rf"`folder` must be undamaged; got {chunk}, which cannot be read \(Digest mismatch.*restore it from a copy"
    )
    for read in (lambda: array[0], lambda: array[:, 3], lambda: np.asarray(array), lambda: array[:, np.arange(4)]):
        with pytest.raises(ValueError, match=message):
            read()


@pytest.mark.parametrize("size", [0, 3, 40, 1_603, 1_605])
def test_a_chunk_of_another_size_is_refused_by_its_name(folder, size):
    chunk = folder / "records" / "energies" / "0.0"
    content = chunk.read_bytes()
    assert len(content) == 1_604
    chunk.write_bytes((content + b"x")[:size])
    with pytest.raises(ValueError, match=rf"got {chunk}, which has {size:,} bytes instead of 1,604\. The file has"):
        iso.load(folder).energies[0]


def test_draws_between_good_ones_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr("isotherm.run.storage.zarr_arrays._CHUNK_BYTES", 160)
    folder = tmp_path / "run"
    run_in(folder)
    flip(folder / "records" / "energies" / "0.3", 5)
    energies = iso.load(folder).energies
    assert energies[:, :60].shape == (2, 60)
    with pytest.raises(ValueError, match=r"energies/0\.3, which cannot be read"):
        _ = energies[:, 60]


@pytest.mark.parametrize("num_steps", [200, 300])
def test_a_run_does_not_go_on_after_damaged_draws(folder, num_steps):
    (folder / "finished.json").unlink()
    flip(folder / "records" / "draws" / "0.0.0", 200)
    with pytest.raises(ValueError, match=r"`folder` must be undamaged; got .*records/draws/0\.0\.0"):
        resume(folder, num_steps=num_steps)


def test_draws_between_good_ones_stop_a_resume(tmp_path, monkeypatch):
    monkeypatch.setattr("isotherm.run.storage.zarr_arrays._CHUNK_BYTES", 160)
    folder = tmp_path / "run"
    run_in(folder)
    (folder / "finished.json").unlink()
    chunk = folder / "records" / "energies" / "0.9"
    flip(chunk, 5)
    with pytest.raises(ValueError, match=rf"`folder` must be undamaged; got {chunk}"):
        resume(folder)


def zeros_like(folder, number):
    """Records of the same shapes and types as those in a folder."""
    run = iso.load(folder)
    named = {"draws": run.draws, "energies": run.energies, "log_weights": run.log_weights}
    return {name: np.zeros((2, number, *leaf.shape[2:]), leaf.dtype) for name, leaf in named.items()}


def test_draws_after_the_checkpoint_need_not_be_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("isotherm.run.storage.zarr_arrays._CHUNK_BYTES", 160)
    folder = tmp_path / "run"
    whole = run_in(folder)
    draws = whole.draws[:]
    (folder / "finished.json").unlink()
    for step in (200, 180):
        shutil.rmtree(folder / "checkpoints" / str(step))
    chunks = [folder / "records" / name for name in ("energies/0.8", "draws/0.16.0", "draws/0.19.0")]
    for chunk in chunks:
        flip(chunk, 3)
    np.testing.assert_array_equal(resume(folder).draws[:], draws)
    np.testing.assert_array_equal(iso.load(folder).draws[:], draws)
    for chunk in chunks:
        flip(chunk, 3)
    sink = StoreSink(folder / "records", 200, 1, 160)
    zeros = zeros_like(folder, 3)
    # A part of a chunk is written into what is there.
    sink.write(160, zeros)
    sink.flush()


def test_bits_of_the_metadata_of_an_array(folder):
    path = folder / "records" / "energies" / "zarr.json"
    whole = path.read_bytes()
    energies = iso.load(folder).energies[:]
    outcomes = {"refused": 0, "equal": 0}
    for number in range(0, 8 * len(whole), 17):
        flip(path, number // 8, number % 8)
        try:
            found = iso.load(folder).energies[:]
        except ValueError as error:
            assert str(path) in str(error), str(error)  # noqa: PT017
            outcomes["refused"] += 1
        else:
            np.testing.assert_array_equal(found, energies)
            outcomes["equal"] += 1
        path.write_bytes(whole)
    # Spaces between words do not count.
    assert outcomes["refused"] > outcomes["equal"] / 2


@pytest.mark.parametrize("name", ["run.json", "finished.json", "records/structure.json", "end/structure.json"])
def test_bits_of_json_are_refused_by_the_name_of_the_file(folder, name):
    path = folder / name
    whole, content = path.read_bytes(), read_checked(path)
    refused = 0
    for number in range(0, 8 * len(whole), max(8 * len(whole) // 60, 1) | 1):
        flip(path, number // 8, number % 8)
        try:
            same = read_checked(path) == content
        except ValueError as error:
            assert str(path) in str(error)  # noqa: PT017
            refused += 1
        else:
            assert same
        path.write_bytes(whole)
    assert refused > 10
    text = path.read_text()
    path.write_text(text.replace("2", "3", 1) if "2" in text else text.replace("d", "e", 1))
    with pytest.raises(ValueError, match=rf"`folder` must be undamaged; got {path}, which does not match its checksum"):
        iso.load(folder)


def test_a_format_that_looks_older_is_not_trusted(folder):
    path = folder / "run.json"
    path.write_text(path.read_text().replace('"format": 6', '"format": 4').replace('"seed": 4', '"seed": 5'))
    with pytest.raises(ValueError, match=r"run\.json, which does not match its checksum"):
        iso.load(folder)
    stored = json.loads(path.read_text())
    del stored["crc32"]
    path.write_text(json.dumps({**stored, "format": 6}))
    with pytest.raises(ValueError, match=r"run\.json, which does not match its checksum"):
        iso.load(folder)


@pytest.mark.parametrize("name", ["finished.json", "end/structure.json", "end/stats-diverged_at/zarr.json", "chunk"])
@pytest.mark.parametrize("damage", [cut, flip], ids=["cut", "flipped"])
def test_the_end_is_written_again(folder, name, damage):
    draws = iso.load(folder).draws[:]
    path = folder / "end" / "stats-diverged_at" / "0" if name == "chunk" else folder / name
    place = path.read_text().index('"') if damage is flip and name != "chunk" else -1
    flip(path, place) if damage is flip else damage(path)
    with pytest.raises(ValueError, match=f"`folder` must be .*{path.name}"):
        iso.load(folder)
    assert resume(folder).num_steps == 200
    np.testing.assert_array_equal(iso.load(folder).draws[:], draws)
    assert iso.load(folder).stats["diverged_at"].tolist() == [-1, -1]


@pytest.mark.parametrize("damage", [cut, flip], ids=["cut", "flipped"])
def test_a_damaged_start_is_refused_by_its_name(folder, damage):
    chunk = next((folder / "start" / "value").glob("0*"))
    damage(chunk)
    (folder / "finished.json").unlink()
    with pytest.raises(ValueError, match=rf"`folder` must be undamaged; got {chunk}"):
        resume(folder)


def values_of(step):
    """The files that hold numbers of a checkpoint, without a checksum of Orbax's."""
    return [path for path in step.rglob("d/*") if path.is_file()]


def checkpoints_of(folder):
    return sorted(int(path.name) for path in (folder / "checkpoints").iterdir())


def test_checkpoints_are_kept(folder):
    assert NUM_KEPT == 3
    assert checkpoints_of(folder) == [160, 180, 200]


@pytest.mark.parametrize("num_damaged", [1, 2])
def test_a_damaged_checkpoint_is_told_and_written_again(folder, num_damaged):
    whole = iso.load(folder).draws[:]
    (folder / "finished.json").unlink()
    for step in (200, 180)[:num_damaged]:
        for path in (folder / "checkpoints" / str(step)).rglob("*"):
            if path.is_file():
                path.write_bytes(path.read_bytes()[:-1])
    with pytest.warns(UserWarning, match=rf"is damaged: .* at iteration {200 - 20 * num_damaged}, and repeats"):
        run = resume(folder)
    np.testing.assert_array_equal(run.draws[:], whole)
    assert max(checkpoints_of(folder)) == 200
    # What was damaged is gone: nothing is told again.
    assert resume(folder, num_steps=240).num_steps == 240


def test_numbers_of_a_checkpoint_that_changed_are_seen(folder, monkeypatch):
    """Whatever Orbax reads without an error is compared with its checksums."""
    (folder / "finished.json").unlink()
    checkpoints = Checkpoints(folder)
    restore, seen = checkpoints._manager.restore, []

    def changed(self, step, args):
        found = restore(step, args=args)
        leaf = np.array(found["carry"][0])
        leaf.reshape(-1).view(np.uint8)[0] ^= 1
        seen.append(step)
        return {**found, "carry": [jnp.asarray(leaf) if step == 200 else found["carry"][0], *found["carry"][1:]]}

    monkeypatch.setattr(type(checkpoints._manager), "restore", changed)
    with pytest.warns(UserWarning, match=r"at iteration 180.*Damaged: 200: its numbers do not match their checksums"):
        resume(folder)
    assert seen == [200, 180]


def test_a_folder_without_any_good_checkpoint_is_refused(folder):
    (folder / "finished.json").unlink()
    for path in (folder / "checkpoints").rglob("*"):
        if path.is_file():
            path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"`folder` must be a run with a readable checkpoint; got 200: .*; 180: .*160"):
        resume(folder)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float16, np.int32, np.uint8, bool, np.complex64])
def test_arrays_in_pieces_of_any_type_are_checked(tmp_path, dtype, monkeypatch):
    monkeypatch.setattr("isotherm.run.storage.zarr_arrays._CHUNK_BYTES", 64)
    values = (np.arange(60).reshape(2, 30) % 7).astype(dtype)
    sink = StoreSink(tmp_path / "records", 20, 1)
    for start, stop in ((0, 3), (3, 11), (11, 20)):
        sink.write(start, {"x": values[:, start:stop]})
    sink.flush()
    # Longer, as after a resume.
    sink = StoreSink(tmp_path / "records", 30, 1, 15)
    for start, stop in ((15, 19), (19, 30)):
        sink.write(start, {"x": values[:, start:stop]})
    found = sink.read()["x"]
    assert found.dtype == dtype
    np.testing.assert_array_equal(found[:], values)
    np.testing.assert_array_equal(read_records(tmp_path / "records")["x"][:, 17:23], values[:, 17:23])
    chunk = sorted((tmp_path / "records" / "x").glob("0.*"))[1]
    flip(chunk)
    with pytest.raises(ValueError, match=rf"got {chunk}"):
        np.asarray(found)


def test_checksums_are_of_the_content_and_not_of_its_spelling(tmp_path):
    content = {"b": [1, 2.5, float("nan")], "a": {"c": None, "é": 1e-300}}
    write_checked(tmp_path / "x.json", content)
    stored = json.loads((tmp_path / "x.json").read_text())
    (tmp_path / "x.json").write_text(json.dumps(dict(reversed(stored.items()))))
    assert repr(read_checked(tmp_path / "x.json")["b"]) == "[1, 2.5, nan]"
    assert stored["crc32"] == zlib.crc32(json.dumps({"a": content["a"], "b": content["b"]}, sort_keys=True).encode())


def test_scalars_and_empty_arrays_are_stored(tmp_path):
    tree = {"scalar": np.float32(3.0), "empty": np.zeros((0, 3), np.int32), "zeros": np.zeros(4)}
    write_arrays(tmp_path / "end", tree)
    found = jax.tree.map(np.asarray, read_records(tmp_path / "end"))
    for name, value in tree.items():
        np.testing.assert_array_equal(found[name], value)
    flip(tmp_path / "end" / "scalar" / "0")
    with pytest.raises(ValueError, match=r"got .*scalar/0, which cannot be read"):
        np.asarray(read_records(tmp_path / "end")["scalar"])
