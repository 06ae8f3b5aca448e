"""The plane of a path, and losses on it."""

import numpy as np
import pytest

import isotherm as iso
from isotherm_thesis.landscape import plot_landscape, project

RNG = np.random.default_rng(0)
PLANE = np.linalg.qr(RNG.standard_normal((12, 2)))[0].T
CENTER = RNG.standard_normal(12)


def path(length=20):
    angle = np.linspace(0, 3, length)
    flat = CENTER + np.stack([5 * np.cos(angle), 2 * np.sin(angle)], axis=1) @ PLANE
    return {"a": flat[:, :8].reshape(length, 4, 2).astype(np.float32), "b": flat[:, 8:].astype(np.float32)}


def loss(weights):
    return sum(((leaf - part) ** 2).sum() for leaf, part in zip((weights["a"], weights["b"]), _parts(), strict=True))


def _parts():
    return CENTER[:8].reshape(4, 2), CENTER[8:]


def test_a_path_in_a_plane_is_that_plane():
    found = project([path()], loss, grid=6)
    assert found.shares.sum() == pytest.approx(1.0, abs=1e-5)
    # Distances in the plane are those of the weights, and so are losses, which here are squared distances from the center.
    flat = np.concatenate([path()["a"].reshape(20, 8), path()["b"]], axis=1)
    np.testing.assert_allclose(found.losses_of_paths[0], ((flat - CENTER) ** 2).sum(axis=1), rtol=1e-3)
    moves = np.linalg.norm(np.diff(flat, axis=0), axis=1)
    np.testing.assert_allclose(np.linalg.norm(np.diff(found.paths[0], axis=0), axis=1), moves, rtol=1e-3)
    # A quadratic on the grid: its curvature along either side is 2 everywhere.
    for axis, points in ((1, found.xs), (0, found.ys)):
        second = np.diff(found.losses, n=2, axis=axis) / np.diff(points)[0] ** 2
        np.testing.assert_allclose(second, 2.0, rtol=0.02)


def test_tuning_goes_down_across_the_plane_only():
    def tilted(weights):
        return loss(weights) + (weights["a"][0, 0] - 3.0) ** 2 * 10

    plain, tuned = (project([path()], tilted, grid=4, num_tuning=n, tuning_step=0.02) for n in (0, 30))
    assert np.all(tuned.losses <= plain.losses + 1e-4)
    assert np.mean(tuned.losses) < 0.95 * np.mean(plain.losses)
    np.testing.assert_array_equal(plain.xs, tuned.xs)


def test_the_picture_is_drawn():
    figure = plot_landscape(project([path(), path(9)], loss, grid=4), title="two paths")
    assert figure.axes[0].get_title() == "two paths"
    assert len(figure.axes[0].lines) == 4


WRONG = {
    "no paths": (lambda: project([], loss), "`paths` must be at least one path"),
    "two networks": (lambda: project([path(2)], loss), "`paths` must be at least three networks"),
    "no grid": (lambda: project([path()], loss, grid=1), "`grid` must be"),
    "networks of two shapes": (
        lambda: project([{"a": np.ones((4, 2))}, {"a": np.ones((4, 3))}], lambda w: 0.0),
        r"`paths` must be of one network, with leaves \['a'\] \(2,\); got \['a'\] \(3,\)",
    ),
    "networks that diverged": (
        lambda: project([{"a": np.array([[0.0, 1], [1, 0], [np.nan, 1]])}], lambda w: 0.0),
        "`paths` must be finite networks; got 1 networks that are not. Leave out the draws of chains that",
    ),
    "tuning by nothing": (
        lambda: project([{"a": np.eye(4)}], lambda w: 0.0, num_tuning=3),
        "`tuning_step` must be above 0 where grid points are tuned; got 0.0",
    ),
    "tuning by NaN": (
        lambda: project([{"a": np.eye(4)}], lambda w: 0.0, num_tuning=3, tuning_step=np.nan),
        "`tuning_step` must be a finite real number",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_refused(name):
    call, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        call()


def test_a_run_is_no_path_and_no_landscape():
    run = iso.sample(lambda x: 0.5 * x**2, iso.sgld(0.1), num_steps=50, init=0.0, progress=False)
    with pytest.raises(ValueError, match="`paths` must be a list of paths; got a Run"):
        project(run, loss)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="`landscape` must be what `project` returns; got a Run"):
        plot_landscape(run)  # pyright: ignore[reportArgumentType]
