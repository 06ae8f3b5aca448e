"""Kernels in a box against exact laws: flat energies keep the uniform law, whatever the kernel carries."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.kernels import SGHMC, MomentumSGD, within
from isotherm.kernels.kernel import Kernel, Move
from isotherm.kernels.sghmc import MomentumState
from tests.statistics import z_score

SAMPLERS = {
    "sgld": iso.sgld(0.01, box=(-1.0, 1.0)),
    "sghmc": iso.sghmc(0.01, box=(-1.0, 1.0)),
    "sghmc, resampled": iso.sghmc(0.01, resample_every=50, box=(-1.0, 1.0)),
    "psgld, frozen": iso.psgld(0.01, freeze_after=10, box=(-1.0, 1.0)),
    "mala": iso.mala(0.3, box=(-1.0, 1.0)),
    "ghmc": iso.ghmc(0.1, friction=0.2, box=(-1.0, 1.0)),
    "resghmc": iso.resghmc(0.01, temperatures=(1.0, 2.0), box=(-1.0, 1.0)),
    "csghmc": iso.csghmc(0.01, partition=(0.1, 1.0, 5), box=(-1.0, 1.0)),
}


def near_the_walls(sampler):
    """P(|x| > 0.9), run by run, under a flat energy."""
    settings: dict[str, Any] = {"num_steps": 20_000, "thinning": 10, "burn_in": 1_000, "num_runs": 64}
    run = iso.sample(lambda x: 0.0 * jnp.sum(x), sampler, init=jnp.zeros(1), **settings)
    return np.mean(np.abs(np.asarray(run.draws)[..., 0]) > 0.9, axis=(1, 2))


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_flat_energy_keeps_the_uniform_law(name):
    found = near_the_walls(SAMPLERS[name])
    assert abs(z_score(found, 0.1)) < 4
    assert abs(found.mean() - 0.1) < 0.01


@pytest.mark.parametrize("factor", [1.0, 0.0], ids=["kept", "zeroed"])
def test_a_momentum_that_does_not_turn_round_crowds_the_walls(factor):
    class Wrong(SGHMC):
        """Keeps the momentum of before a rejected move, or sets it to zero."""

        def rejected(self, before, proposed):
            return MomentumState(before.position, factor * before.momentum)

    found = near_the_walls(iso.Sampler(within(Wrong(), (-1.0, 1.0)), 0.01))
    assert found.mean() > 0.15


def test_a_normal_law_is_cut_off_at_the_walls():
    sampler = iso.sghmc(0.01, box=(-2.0, 2.0))
    settings: dict[str, Any] = {"num_steps": 20_000, "thinning": 10, "burn_in": 1_000, "num_runs": 64}
    run = iso.sample(lambda x: 0.5 * jnp.sum(x**2), sampler, init=jnp.zeros(2), **settings)
    near = np.mean(np.abs(np.asarray(run.draws)[:, 0]) > 1.9, axis=(1, 2))
    exact = 2 * (0.0287166 - 0.0227501) / 0.9544997  # By the normal distribution function.
    assert abs(near.mean() - exact) < 4 * near.std(ddof=1) / 8 + 0.001
    assert near.mean() < 1.3 * exact


def step(kernel: Kernel, position, momentum, gradient):
    one = jnp.ones(())
    state: Any = kernel.init(jnp.asarray(position))
    state = state._replace(inner=state.inner._replace(momentum=jnp.asarray(momentum)))
    return kernel.step(state, jnp.asarray(gradient), jnp.zeros(len(position)), Move(0.1 * one, one, one, one))


@pytest.mark.parametrize("inner", [SGHMC(0.2), MomentumSGD(0.2)])
def test_a_rejected_move_turns_the_proposed_momentum_round(inner):
    kernel = within(inner, (-1.0, 1.0))
    state = step(kernel, [0.5, 0.0], [1.0, 0.5], [2.0, 0.0])
    # Proposed: 0.8 * (1, 0.5) - 0.1 * (2, 0), which leads to 1.1.
    np.testing.assert_allclose(state.position, [0.5, 0.0])
    np.testing.assert_allclose(state.inner.momentum, [-0.6, -0.4], rtol=1e-6)
    assert int(state.num_rejected) == 1
    inside = step(kernel, [0.0, 0.0], [1.0, 0.5], [2.0, 0.0])
    np.testing.assert_allclose(inside.position, [0.6, 0.4], rtol=1e-6)
    lost = step(kernel, [0.5, 0.0], [1.0, 0.5], [np.nan, 0.0])
    assert bool(jnp.all(jnp.isfinite(lost.inner.momentum)))


@pytest.mark.parametrize("is_frozen", [True, False])
def test_a_preconditioner_keeps_the_law_only_if_it_is_frozen(is_frozen):
    """A standard normal, at a step at which V follows the gradient: without freezing the variance is 1.85."""
    sampler = iso.psgld(1e-3, freeze_after=20_000 if is_frozen else None)
    settings: dict[str, Any] = {"num_steps": 400_000, "thinning": 100, "burn_in": 20_000, "num_runs": 64}
    run = iso.sample(lambda x: 0.5 * jnp.sum(x**2), sampler, init=jnp.ones(1), **settings)
    squares = np.mean(np.asarray(run.draws)[..., 0] ** 2, axis=(1, 2))
    if is_frozen:
        assert abs(squares.mean() - 1) < 0.03
        assert abs(z_score(squares, 1.0)) < 4
    else:
        assert squares.mean() > 1.5
    assert ("went on adapting" in str(run.summary())) == (not is_frozen)
    late = iso.sample(lambda x: 0.5 * jnp.sum(x**2), iso.psgld(0.01, freeze_after=50), num_steps=99, init=jnp.ones(1))
    assert "went on adapting" in str(late.summary())


def covariance_with_new_momenta(step_size, friction, temperature, every):
    """E x^2 in a unit well, averaged over a period: the covariance of (x, v) under the linear map of each iteration."""
    covariance = np.eye(2)
    noise = lambda share: 2.0 * step_size * share * temperature * np.ones((2, 2))  # noqa: E731
    usual = np.array([[1.0 - step_size, 1.0 - friction], [-step_size, 1.0 - friction]])
    # A Langevin step of size eps / (2 - alpha), which is the momentum from then on.
    share = 1.0 / (2.0 - friction)
    fresh = np.array([[1.0 - share * step_size, 0.0], [-share * step_size, 0.0]])
    found: list[float] = []
    for _ in range(2_000):
        found = []
        for number in range(every):
            move, injected = (fresh, noise(share)) if number == 0 else (usual, noise(friction))
            covariance = move @ covariance @ move.T + injected
            found.append(covariance[0, 0])
    return float(np.mean(found))


@pytest.mark.parametrize("every", [1, 3, 10])
def test_new_momenta_keep_the_law_of_sghmc(every):
    friction, step_size, temperature = 0.1, 0.05, 2.0
    exact = covariance_with_new_momenta(step_size, friction, temperature, every)
    assert exact == pytest.approx(temperature, rel=2.0 * step_size)
    sampler = iso.sghmc(step_size, temperature=temperature, friction=friction, resample_every=every)
    settings: dict[str, Any] = {"num_steps": 40_000, "burn_in": 1_000, "num_runs": 64}
    run = iso.sample(lambda x: 0.5 * jnp.sum(x**2), sampler, init=jnp.zeros(1), **settings)
    squares = np.mean(np.asarray(run.draws)[..., 0] ** 2, axis=(1, 2))
    assert abs(z_score(squares, exact)) < 4
    assert abs(z_score(squares, 1.1 * exact)) > 6


def test_the_bias_of_new_momenta_under_gradient_noise_is_known():
    """What a kick of gradient noise moves, between that of Langevin steps and that of SGHMC."""
    problem = iso.potentials.with_noise(iso.from_energy(lambda x: 0.5 * jnp.sum(x**2)), gradient_scale=2.0)
    for every in (1, 5, 40):
        sampler = iso.sghmc(0.02, friction=0.1, resample_every=every)
        run = iso.sample(
            problem, sampler, num_steps=60_000, num_chains=32, thinning=20, burn_in=1_000, init=jnp.zeros(1)
        )
        found = run.estimate(lambda x: x[0] ** 2)
        assert found.bias > 0.02
        assert abs(found.mean - found.bias - 1.0) < 4.0 * np.hypot(found.std_error, found.bias_error) + 0.1 * found.bias


@pytest.mark.parametrize(
    "sampler", [iso.sgd(0.05, box=(-1e30, 1e30)), iso.awsgld(0.05, partition=(1.0, 9.0, 40), max_displacement=1.0)]
)
def test_walls_and_limits_beyond_half_precision(sampler):
    energy = lambda x: 0.5 * jnp.sum((x - 1.0) ** 2).astype(jnp.float32)  # noqa: E731
    run = iso.sample(energy, sampler, num_steps=4, init=jnp.zeros(2, jnp.float16))
    assert np.isfinite(run.draws).all()
    assert np.isfinite(run.log_weights).all()


def test_a_limit_shortens_gradients_of_any_size():
    from isotherm.kernels import SGLD, limited

    kernel, one = limited(SGLD(), 0.5), jnp.ones(())
    for size in (1e3, 1e19, 1e30, 3e38):
        moved = kernel.step(
            kernel.init(jnp.zeros(2)), jnp.array([0.6, 0.8]) * size, jnp.zeros(2), Move(0.1 * one, 0 * one, one, one)
        )
        np.testing.assert_allclose(moved.position, [-0.3, -0.4], rtol=1e-5)


def test_scales_of_a_position_with_a_tuple():
    position = {"a": [jnp.zeros(2), (jnp.zeros((1, 2)),)]}
    steps = {"a": [0.1, (0.2,)]}
    run = iso.sample(
        lambda x: jnp.sum(x["a"][0] ** 2) + jnp.sum(x["a"][1][0] ** 2), iso.sgld(steps), num_steps=4, init=position
    )
    assert np.isfinite(run.draws["a"][1][0]).all()
