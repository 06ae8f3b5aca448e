"""Boxes that reflect: laws at finite steps against transition probabilities between mirrors, and wrong walls that must fail."""

import dataclasses
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import isotherm as iso
from isotherm.kernels import PSGLD, SGHMC, SGLD, MomentumSGD, within
from isotherm.kernels.kernel import Move
from isotherm.kernels.sghmc import MomentumState
from isotherm.kernels.wrapped import Reflecting
from tests.laws.exact import langevin_law
from tests.laws.test_boxes import near_the_walls, step
from tests.statistics import FAIL, PASS, z_score

BOX = (-1.0, 1.0, "reflect")
SAMPLERS = {
    "sgld": iso.sgld(0.05, box=BOX),
    "sgld, through both walls": iso.sgld(8.0, box=BOX),
    "sghmc": iso.sghmc(0.02, box=BOX),
    "sghmc, through both walls": iso.sghmc(4.0, box=BOX),
    "sghmc, resampled": iso.sghmc(0.02, resample_every=50, box=BOX),
    "psgld, frozen": iso.psgld(0.01, freeze_after=10, box=BOX),
    "resghmc": iso.resghmc(0.02, temperatures=(1.0, 2.0), box=BOX),
    "csghmc": iso.csghmc(0.02, partition=(0.1, 1.0, 5), box=BOX),
    "deo_star_msgd": iso.deo_star_msgd((0.02, 0.04), num_replicas=2, temperature=1.0, box=BOX),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_flat_energy_keeps_the_uniform_law(name):
    found = near_the_walls(SAMPLERS[name])
    assert abs(z_score(found, 0.1)) < PASS
    assert abs(found.mean() - 0.1) < 0.01


class Unturned(SGHMC):
    """Comes back from a wall without turning round."""

    def reflected(self, proposed, position, is_turned):
        return MomentumState(position, proposed.momentum)


class Clipping(Reflecting):
    """Stops at the walls."""

    def _folded(self, x):
        return jnp.clip(x, *self.box), (x < self.box[0]) | (x > self.box[1])


@pytest.mark.parametrize("kernel", [Reflecting(Unturned(), BOX[:2]), Clipping(SGHMC(), BOX[:2])])
def test_walls_that_do_not_turn_or_that_stop_are_crowded(kernel):
    found = near_the_walls(iso.Sampler(kernel, 0.02))
    assert z_score(found, 0.1) > 2 * FAIL
    assert found.mean() > 0.12


# Two independent coordinates of precision 0.8: one with its mode at the wall and no other, one between two walls on a slope.
PRECISION, TEMPERATURE = 0.8, 1.7
CENTER = np.array([0.0, -0.4], np.float32)
ENDS = (np.array([0.0, -0.5]), np.array([np.inf, 1.5]))
INSIDE = ((0.0, 14.0), (-0.5, 1.5))


def energy(x):
    return 0.5 * PRECISION * jnp.sum((x - CENTER) ** 2)


def slope(number):
    return lambda x: PRECISION * (x - CENTER[number])


def moments(points, mass):
    mean = points @ mass
    return np.array([mean, (points - mean) ** 2 @ mass])


def known(number, step_size, images="mirrored"):
    return moments(*langevin_law(slope(number), step_size, TEMPERATURE, INSIDE[number], images))


def truth(number):
    spread = np.sqrt(TEMPERATURE / PRECISION)
    cut = [(end[number] - CENTER[number]) / spread for end in ENDS]
    return np.array(stats.truncnorm(*cut, loc=CENTER[number], scale=spread).stats("mv"), float)


def drawn(sampler, **changes: Any):
    settings = {"num_steps": 20_000, "thinning": 10, "burn_in": 1_000, "num_runs": 64, "init": jnp.full(2, 0.5)}
    run = iso.sample(energy, sampler, **{**settings, **changes})
    draws, weights = np.asarray(run.draws, float), np.exp(np.asarray(run.log_weights))[..., None]
    mean = (weights * draws).sum(axis=(1, 2)) / weights.sum(axis=(1, 2))
    square = (weights * (draws - mean[:, None, None]) ** 2).sum(axis=(1, 2)) / weights.sum(axis=(1, 2))
    return draws, np.stack([mean, square])


@pytest.mark.parametrize("step_size", [0.4, 0.05])
def test_sgld_has_the_law_of_its_moves_between_mirrors(step_size):
    draws, found = drawn(iso.sgld(step_size, temperature=TEMPERATURE, box=(*ENDS, "reflect")))
    assert np.all((draws >= ENDS[0]) & (draws <= ENDS[1]))
    for number in range(2):
        for moment, exact in zip(found, known(number, step_size), strict=True):
            assert abs(z_score(moment[:, number], exact)) < PASS
            assert abs(z_score(moment[:, number], 1.1 * exact)) > FAIL
    # The control: at the long step the law without a bias, and that of a box that rejects, are others.
    if step_size == 0.4:
        for wrong in (truth(1), known(1, step_size, "none")):
            assert abs(z_score(found[0, :, 1], wrong[0])) > FAIL


def test_the_bias_at_a_wall_is_of_first_order():
    """A density exp(-g x / T): rejections are exact, and reflections put the wall eps g / 2 further inside."""

    def mean(step_size, images):
        points, mass = langevin_law(lambda x: 2.0 + 0.0 * x, step_size, 1.0, (0.0, 5.0), images)
        return points @ mass

    exact = 0.5 - 5.0 * np.exp(-10.0) / (1.0 - np.exp(-10.0))
    for step_size in (0.1, 0.05, 0.025):
        assert mean(step_size, "none") - exact == pytest.approx(0.0, abs=1e-4)
        assert mean(step_size, "mirrored") - exact == pytest.approx(step_size * 2.0 / 2.0, rel=0.02)
    for box, shift in (((0.0, 5.0, "reflect"), 0.1), ((0.0, 5.0), 0.0)):
        settings: dict[str, Any] = {"num_steps": 20_000, "thinning": 10, "burn_in": 1_000, "num_runs": 64}
        run = iso.sample(lambda x: 2.0 * jnp.sum(x), iso.sgld(0.1, box=box), init=jnp.ones(1), **settings)
        means = np.asarray(run.draws).mean(axis=(1, 2, 3))
        assert abs(z_score(means, exact + shift)) < PASS
        assert abs(z_score(means, exact + 0.1 - shift)) > FAIL


@pytest.mark.parametrize("friction", [0.1, 0.3])
def test_sghmc_follows_the_truncated_law(friction):
    """At a wall without slope only the curvature biases, and both boxes alike; the slope at the other moves it by eps g / 2."""
    step_size, found = 0.04, {}
    for box in ((*ENDS, "reflect"), ENDS):
        sampler = iso.sghmc(step_size, temperature=TEMPERATURE, friction=friction, box=box)
        found[len(box)] = drawn(sampler)[1]
    for number in range(2):
        exact = truth(number)
        for moments_of in found.values():
            for moment, right in zip(moments_of[:, :, number], exact, strict=True):
                assert abs(moment.mean() - right) < PASS * moment.std(ddof=1) / 8 + 0.03 * right
                assert abs(moment.mean() - 1.1 * right) > FAIL * moment.std(ddof=1) / 8
    wrong = drawn(iso.Sampler(Reflecting(Unturned(friction), ENDS), step_size, TEMPERATURE))[1]
    assert abs(z_score(wrong[0, :, 0], truth(0)[0])) > 2 * FAIL


@pytest.mark.parametrize(
    "sampler",
    [
        iso.resgld(0.05, temperatures=(TEMPERATURE, 4.0), box=(*ENDS, "reflect")),
        iso.icsgld(0.05, temperature=TEMPERATURE, partition=(0.0, 4.0, 20), box=(*ENDS, "reflect")),
    ],
    ids=["ladder", "contour"],
)
def test_ladders_and_contours_follow_the_truncated_law(sampler):
    chains = {} if "exchange" in type(sampler.coupling).__module__ else {"num_chains": 2}
    draws, found = drawn(sampler, **chains)
    assert np.all((draws >= ENDS[0]) & (draws <= ENDS[1]))
    for number in range(2):
        # Swaps and multipliers change the bias of a step, which at this one is a few per cent.
        for moment, right in zip(found[:, :, number], known(number, 0.05), strict=True):
            assert abs(moment.mean() - right) < PASS * moment.std(ddof=1) / 8 + 0.03 * right
            assert abs(moment.mean() - 1.15 * right) > FAIL * moment.std(ddof=1) / 8


INFINITE = (-np.inf, np.inf)
FOLDS = {
    # Places outside the box (-1, 2), where they come back to, and whether the momentum turns: walls met one by one.
    "inside": (0.3, 0.3, False),
    "at a wall": (2.0, 2.0, False),
    "one wall": (2.5, 1.5, True),
    "the other wall": (-1.25, -0.75, True),
    "two walls": (5.5, -0.5, False),
    "three walls": (8.5, 1.5, True),
    "many walls": (-1.0 - 3.0 * 7 - 0.5, 1.5, False),
}


@pytest.mark.parametrize("name", FOLDS)
def test_places_come_back_wall_by_wall(name):
    place, expected, turns = FOLDS[name]
    # Wall by wall, in NumPy.
    at, number = place, 0
    while not -1.0 <= at <= 2.0:
        at, number = (4.0 - at if at > 2.0 else -2.0 - at), number + 1
    assert (at, number % 2 == 1) == (pytest.approx(expected), turns)
    state = step(within(SGHMC(), (-1.0, 2.0, "reflect")), [0.0, 0.5], [place / 0.9, 1.0 / 0.9], [0.0, 0.0])
    np.testing.assert_allclose(state.position, [expected, 1.5], rtol=1e-5)
    np.testing.assert_allclose(state.inner.momentum, [-place if turns else place, 1.0], rtol=1e-5)
    assert int(state.num_rejected) == (number > 0)


def test_open_ends_reflect_on_the_other_side_alone():
    for box, expected in (((0.0, np.inf), [1.0, 9.0]), ((-np.inf, 2.0), [-1.0, -5.0]), (INFINITE, [-1.0, 9.0])):
        state = step(within(MomentumSGD(0.5), (*box, "reflect")), [0.0, 0.0], [-2.0, 18.0], [0.0, 0.0])
        np.testing.assert_allclose(state.position, expected)
        np.testing.assert_array_equal(
            np.sign(state.inner.momentum),
            np.sign([-1.0, 9.0]) * np.where(np.asarray(expected) == [-1.0, 9.0], 1.0, -1.0),
        )


def test_a_move_that_is_not_finite_is_rejected():
    for kernel in (SGLD(), SGHMC(), PSGLD()):
        walls, one = within(kernel, (0.0, 1.0, "reflect")), jnp.ones(())
        state = walls.step(
            walls.init(jnp.full(2, 0.5)),
            jnp.array([jnp.nan, 0.1]),
            jnp.zeros(2),
            Move(0.1 * one, one, one, one, 0 * one),
        )
        np.testing.assert_array_equal(state.position, [0.5, 0.5])
        assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(state))


def test_particles_stay_in_a_box_that_reflects():
    starts = jax.random.uniform(jax.random.key(0), (20, 2))
    run = iso.sample(
        lambda x: jnp.sum(x),
        iso.svgd(0.3, box=(np.zeros(2), np.ones(2), "reflect")),
        num_steps=300,
        init=iso.per_chain(starts),
    )
    assert 0.0 <= np.min(run.draws) <= np.max(run.draws) <= 1.0
    assert np.min(run.stats["num_reflected"]) >= 0 < np.max(run.stats["num_reflected"])


def test_reflections_move_where_rejections_stand_still():
    """A uniform law in 50 dimensions, of which one is nearly always beyond a wall."""
    apart, settings = {}, {"num_steps": 4_000, "burn_in": 1_000, "num_chains": 8, "init": jnp.full(50, 0.5)}
    for box in ((0.0, 1.0), (0.0, 1.0, "reflect")):
        run = iso.sample(lambda x: 0.0 * jnp.sum(x), iso.sgld(0.02, box=box), **settings)
        apart[len(box)] = np.var(np.mean(np.asarray(run.draws), axis=1))
        assert np.min(run.stats["num_rejected" if len(box) == 2 else "num_reflected"]) > 0.95 * 4_000
    # Means over 3,000 draws, whose variance is 1 / 12: about twenty moves forget a start, or none does.
    assert apart[3] < 0.01 * (1.0 / 12.0)
    assert apart[2] > 0.3 * (1.0 / 12.0)


def test_a_folder_knows_its_walls(tmp_path):
    kernel: Any = {"num_chains": 2, "init": jnp.full(2, 0.5), "thinning": 5, "seed": 3}
    sampler = iso.sghmc(0.05, box=(*ENDS, "reflect"))
    whole = iso.sample(energy, sampler, num_steps=400, **kernel)
    iso.sample(energy, sampler, num_steps=200, out=tmp_path / "run", **kernel)
    stored = json.loads((tmp_path / "run" / "run.json").read_text())["config"]["sampler"]["kernel"]
    assert stored["class"] == "Reflecting"
    assert stored["box"][0] == [0.0, -0.5]
    with pytest.raises(
        ValueError, match=r"`sampler\.kernel\.class` must be Reflecting, as when the run was started; got Within"
    ):
        iso.resume(tmp_path / "run", energy, iso.sghmc(0.05, box=ENDS), num_steps=400)
    again = iso.resume(tmp_path / "run", energy, iso.sghmc(0.05, box=(*ENDS, "reflect")), num_steps=400)
    np.testing.assert_array_equal(again.draws[:], whole.draws)
    np.testing.assert_array_equal(again.stats["num_reflected"], whole.stats["num_reflected"])


def test_other_words_and_adjusted_kernels_are_refused():
    boxes: tuple[Any, ...] = ((-1.0, 1.0, "reflecting"), (-1.0, 1.0, 2.0), (-1.0, 1.0, "reject"))
    for box in boxes:
        with pytest.raises(
            ValueError, match=r"`box` must be \(low, high\) of numbers or arrays, or .*\"reflect\"\); got"
        ):
            iso.sgld(0.1, box=box)
    with pytest.raises(ValueError, match=r"`box` must be \(low, high\) with low below high"):
        iso.sgld(0.1, box=(1.0, -1.0, "reflect"))

    @dataclasses.dataclass(frozen=True, eq=False)
    class Adjusted(SGLD):
        is_adjusted = True

    assert type(within(Adjusted(), (0.0, 1.0))).__name__ == "Within"
    with pytest.raises(ValueError, match=r"`box` must be \(low, high\) for Adjusted, which rejects proposals; got"):
        within(Adjusted(), (0.0, 1.0, "reflect"))


def test_gradients_that_push_against_mirrors_are_noted():
    """The bias of the mean is eps g / 2 = 0.1 of a standard deviation of 0.5; at the short step a hundredth of it."""
    settings: dict[str, Any] = {"num_steps": 40_000, "num_chains": 8, "thinning": 5, "burn_in": 500}
    settings["init"] = lambda key: jax.random.uniform(key, (1,))
    found = {}
    for step_size in (0.1, 0.005):
        run = iso.sample(lambda x: 2.0 * jnp.sum(x), iso.sgld(step_size, box=(0.0, 50.0, "reflect")), **settings)
        found[step_size] = {check.name: check for check in run.summary().checks}
    assert "reflects" in found[0.1]["reflecting-walls"].message
    assert "Lower `step_size` to about" in found[0.1]["reflecting-walls"].remedy
    assert "reflecting-walls" not in found[0.005]
