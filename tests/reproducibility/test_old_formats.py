"""Folders of older formats: read with the numbers that the version which wrote them printed, and not resumed."""

import pathlib
import zipfile

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso

FOLDERS = pathlib.Path(__file__).parent / "old_formats"
# Sums over the runs, as the versions that wrote them found them.
SUM_A, SUM_B, SUM_ENERGIES, SUM_LOG_WEIGHTS = (
    31.429119110107422,
    -4.192111968994141,
    26.365617752075195,
    -42.422916412353516,
)
SUM_PLAIN = 11.743106842041016


@pytest.fixture(params=[3, 4, 5])
def old(request, tmp_path):
    """A folder with the runs "plain" (SGLD) and "contour" (ICSGLD, two runs of a dict) in an old format."""
    with zipfile.ZipFile(FOLDERS / f"format{request.param}.zip") as archive:
        archive.extractall(tmp_path)
    return tmp_path


def test_draws_and_weights_are_read(old):
    run = iso.load(old / "contour")
    assert run.log_weights.shape == (2, 2, 6)
    assert np.sum(run.draws["a"]) == pytest.approx(SUM_A, rel=1e-6)
    assert np.sum(run.draws["b"]) == pytest.approx(SUM_B, rel=1e-6)
    assert np.sum(run.energies) == pytest.approx(SUM_ENERGIES, rel=1e-6)
    assert np.sum(run.log_weights) == pytest.approx(SUM_LOG_WEIGHTS, rel=1e-6)
    assert run.claims_distribution
    assert "weight_edges" in run.config
    plain = iso.load(old / "plain")
    assert np.sum(plain.draws) == pytest.approx(SUM_PLAIN, rel=1e-6)
    assert plain.expectation(lambda x: x[0]).shape == ()


def test_a_remark_says_which_checks_are_missing(old):
    run = iso.load(old / "plain")
    assert [check.name for check in run.checks].count("old-format") == 1
    assert "does not store the checks of its sampler" in str(run.summary())


def test_they_are_saved_in_the_current_format(old, tmp_path):
    run = iso.load(old / "contour")
    run.save(tmp_path / "new")
    again = iso.load(tmp_path / "new")
    assert np.array_equal(again.draws["a"], run.draws["a"])
    assert [str(check) for check in again.checks] == [str(check) for check in run.checks]


def test_lost_draws_are_refused(old):
    next((old / "plain" / "records" / "draws").glob("[0-9]*")).unlink()
    with pytest.raises(ValueError, match="`folder` must be complete"):
        np.asarray(iso.load(old / "plain").draws)


def test_resuming_is_refused(old):
    with pytest.raises(ValueError, match=r"Read its draws with `iso.load`"):
        iso.resume(old / "plain", lambda x: 0.5 * jnp.sum(x**2), iso.sgld(0.1), num_steps=80)


def test_newer_formats_are_refused(old):
    path = old / "plain" / "run.json"
    path.write_text(path.read_text().replace('"format": ', '"format": 9'))
    with pytest.raises(ValueError, match=r"of format 3 or 4 or 5 or 6; got .* of format 9"):
        iso.load(old / "plain")
