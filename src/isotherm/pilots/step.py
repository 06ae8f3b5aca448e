"""Step sizes and scales from pilot runs, for `step_size="auto"`."""

from typing import Any

import jax
import numpy as np

from isotherm.driver.progress import say
from isotherm.driver.settings import Settings, temperature_of_draws
from isotherm.foundation.errors import refuse
from isotherm.foundation.positions import tree_like
from isotherm.kernels import MALA, SGLD
from isotherm.kernels.kernel import Kernel
from isotherm.kernels.wrapped import Limited, Reflecting, Within, WrappedKernel, innermost_kernel, within
from isotherm.pilots import exact, noisy
from isotherm.pilots.rounds import MAX_DENSE, TARGET_ACCEPTANCE, Rounds, Setup, fitted_steps
from isotherm.potentials.potential import Potential
from isotherm.samplers.sampler import Choice, FoundStep, Sampler, Specification

# Chains or ladders of the pilot; the acceptance that MALA aims for, which holds no momentum that a rejection would turn.
_NUM_CHAINS, _ACCEPTANCE_OF_MALA = 4, 0.6


def find_step(
    potential: Potential, specification: Specification, settings: Settings, position: Any, progress: bool | None
) -> tuple[FoundStep, Choice]:
    """The step size of a specification and the scales of coordinates, from starts (run, chain, ...)."""
    if potential.is_network or potential.is_streamed:
        rule, got = "a number for networks and for data that stream", '"auto"'
        refuse("step_size", rule, got, "Start with the learning rate of SGD divided by the number of examples.")
    sampler = specification.example()
    starts = jax.tree.map(lambda leaf: np.asarray(leaf).reshape(-1, *np.shape(leaf)[2:]), position)
    pick = np.arange(_NUM_CHAINS) % len(jax.tree.leaves(starts)[0])
    starts = jax.tree.map(lambda leaf: leaf[pick], starts)
    rounds = Rounds(_NUM_CHAINS, settings.seed, progress)
    temperature = temperature_of_draws(sampler, settings.record_times(sampler.window)) or 1.0
    if sampler.kernel.is_adjusted:
        found, how = _by_acceptance(rounds, potential, sampler, temperature, starts)
    else:
        found, how = _by_bias(rounds, potential, sampler.kernel, temperature, starts, progress)
    sizes = found.step_sizes
    shown = (
        f"{sizes[0]:.3g}"
        if len(set(sizes)) == 1
        else f"{sizes[0]:.3g} on the target, {sizes[-1]:.3g} on the hottest rung"
    )
    where = "" if found.factor is None else ", in the scales of the wells"
    reason = f"Step size {shown}{where}, {how}; {rounds.evaluations:,} gradients of pilots."
    say(f"- {reason}", progress)
    return found, Choice("step_size", _as_json(found), reason)


def step_from_json(stored: dict[str, Any], position: Any) -> FoundStep:
    """A stored step size, for positions like `position`, leaves (run, chain, ...)."""
    factor = stored["factor"]
    if factor is not None and stored["is_dense"]:
        factor = np.asarray(factor, np.float32)
    elif factor is not None:
        factor = tree_like(factor, jax.tree.map(lambda leaf: leaf[0, 0], position), np.float32)
    return FoundStep(tuple(stored["step_sizes"]), factor, stored["is_dense"])


def _as_json(found: FoundStep) -> dict[str, Any]:
    factor: Any = (
        None if found.factor is None else [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(found.factor)]
    )
    if found.is_dense:
        (factor,) = factor
    return {"step_sizes": list(found.step_sizes), "factor": factor, "is_dense": found.is_dense}


def _by_bias(
    rounds: Rounds, potential: Potential, kernel: Kernel, temperature: float, starts: Any, progress: bool | None
) -> tuple[FoundStep, str]:
    """For kernels without a Metropolis test."""
    _, factor, noise = noisy.settle(rounds, potential, within(SGLD(), _box_of(kernel)), temperature, starts, progress)
    step = kernel.step_for(noisy.BIAS, noise, temperature)
    how = f"for a bias of {noisy.BIAS:.0%} of variances"
    if kernel.step_errors is None:
        how = f"with which `sgld` would have a bias of {noisy.BIAS:.0%} of variances"
    if noise:
        how += f" with the noise of gradients, {noise:.2g} times the variance of forces"
    if kernel.is_joint or _is_limited(kernel):
        # Particles move together, and a limit on displacements is in units of the position: one step for all coordinates.
        narrowest = min(float(np.min(leaf)) for leaf in jax.tree.leaves(factor))
        return FoundStep((step * narrowest**2,), None), f"{how} of the narrowest coordinate"
    return FoundStep((step,), factor), how


def _by_acceptance(
    rounds: Rounds, potential: Potential, sampler: Sampler, temperature: float, starts: Any
) -> tuple[FoundStep, str]:
    """For kernels with a Metropolis test, on the rungs of the sampler's ladder if it has one."""
    ladder = getattr(sampler.coupling, "ladder", None)
    # A ladder of the pilot has two rungs or more.
    temperatures = np.array([1.0, 2.0] if ladder is None else ladder.temperatures)
    temperatures = temperatures * temperature / temperatures[0]
    size = sum(int(np.prod(leaf.shape[1:])) for leaf in jax.tree.leaves(starts))
    factor, box = exact.unit_factor(starts, size), _box_of(sampler.kernel)
    first = exact.first_step(rounds, potential, starts)
    setup = Setup(
        temperatures,
        first * np.minimum(temperatures, 1e6 * temperature),
        factor,
        is_path=sampler.coupling.traits.is_path,
        is_dense=size <= MAX_DENSE,
        box=box,
    )
    position = jax.tree.map(lambda leaf: np.repeat(leaf[:, None], len(temperatures), axis=1), starts)
    setup, _, last = exact.settle(rounds, potential, setup, position, exact.SETTLING + exact.SCOUTING, "step size")
    steps, wanted = setup.step_sizes, TARGET_ACCEPTANCE
    if isinstance(innermost_kernel(sampler.kernel), MALA):
        # GHMC that forgets its momentum is MALA at half the step size.
        wanted = _ACCEPTANCE_OF_MALA
        ratio = fitted_steps(np.ones(1), np.array([TARGET_ACCEPTANCE]), len(last.acceptance) * 10**6, wanted)
        steps = 0.5 * ratio * steps
    kept = tuple(float(step) for step in (steps if ladder is not None else steps[:1]))
    return FoundStep(kept, setup.factor, setup.is_dense), f"for {wanted:.0%} of accepted moves"


def _box_of(kernel: Any) -> Any:
    """The box of a kernel, as `kernels.within` takes it."""
    while isinstance(kernel, WrappedKernel) and not isinstance(kernel, Within):
        kernel = kernel.inner
    if not isinstance(kernel, Within):
        return None
    return (*kernel.box, "reflect") if isinstance(kernel, Reflecting) else kernel.box


def _is_limited(kernel: Any) -> bool:
    while isinstance(kernel, WrappedKernel):
        if isinstance(kernel, Limited):
            return True
        kernel = kernel.inner
    return False
