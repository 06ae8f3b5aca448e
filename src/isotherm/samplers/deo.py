"""Samplers of replicas that explore by SGD and exchange rungs by deterministic even-odd swaps."""

from isotherm.exchange import Deterministic, DeterministicEvenOdd, EquiAcceptance, Exchange, Ladder, geometric_ladder
from isotherm.foundation.errors import check_integer
from isotherm.foundation.schedules import PolynomialGain, Schedule
from isotherm.kernels import PSGLD, SGHMC, SGLD, within
from isotherm.samplers.independent import Box
from isotherm.sampling.sampler import Sampler


def deo_sgd(
    step_size: tuple[float, float],
    *,
    num_replicas: int = 16,
    temperature: Schedule = 1.0,
    target: float = 0.4,
    buffer: float = 0.0,
    gain: Schedule | None = None,
    buffer_gain: float = 1.0,
    window: int | str = 1,
    is_exact: bool = False,
    box: Box = None,
) -> Sampler:
    """SGLD at the target and SGD on the rungs above, with deterministic even-odd swaps; ladder and buffer adapt.

    Made to explore: a replica swaps when the one above it has a lower energy, so that low energies are found and the target rung
    visits many modes. Promises no law. SGD on exact gradients stays in its basin: the rungs above need noisy ones.
    """
    scheme = DeterministicEvenOdd(window, 1.0 - target, is_exact)
    return _deo("deo_sgd", SGLD(), step_size, num_replicas, temperature, target, buffer, gain, buffer_gain, scheme, box)


def deo_star_sgd(
    step_size: tuple[float, float],
    *,
    num_replicas: int = 16,
    temperature: Schedule = 1.0,
    target: float = 0.4,
    buffer: float = 0.0,
    gain: Schedule | None = None,
    buffer_gain: float = 1.0,
    window: int | str = "optimal",
    is_exact: bool = False,
    box: Box = None,
) -> Sampler:
    """`deo_sgd` with the optimal window. Promises no law."""
    scheme = DeterministicEvenOdd(window, 1.0 - target, is_exact)
    return _deo(
        "deo_star_sgd", SGLD(), step_size, num_replicas, temperature, target, buffer, gain, buffer_gain, scheme, box
    )


def deo_star_psgd(
    step_size: tuple[float, float],
    *,
    num_replicas: int = 16,
    temperature: Schedule = 1.0,
    target: float = 0.4,
    buffer: float = 0.0,
    gain: Schedule | None = None,
    buffer_gain: float = 1.0,
    window: int | str = "optimal",
    is_exact: bool = False,
    decay: float = 0.99,
    regulariser: float = 1e-3,
    gradient_scale: float = 1.0,
    box: Box = None,
) -> Sampler:
    """`deo_star_sgd` with RMSprop's preconditioner on every rung. Promises no law."""
    kernel, scheme = PSGLD(decay, regulariser, gradient_scale), DeterministicEvenOdd(window, 1.0 - target, is_exact)
    return _deo(
        "deo_star_psgd", kernel, step_size, num_replicas, temperature, target, buffer, gain, buffer_gain, scheme, box
    )


def deo_star_msgd(
    step_size: tuple[float, float],
    *,
    num_replicas: int = 16,
    temperature: Schedule = 1.0,
    target: float = 0.4,
    buffer: float = 0.0,
    gain: Schedule | None = None,
    buffer_gain: float = 1.0,
    window: int | str = "optimal",
    is_exact: bool = False,
    friction: float = 0.1,
    box: Box = None,
) -> Sampler:
    """`deo_star_sgd` with momentum on every rung; a replica that changes rungs starts from rest. Promises no law."""
    kernel, scheme = SGHMC(friction), DeterministicEvenOdd(window, 1.0 - target, is_exact)
    return _deo(
        "deo_star_msgd", kernel, step_size, num_replicas, temperature, target, buffer, gain, buffer_gain, scheme, box
    )


def _deo(name, kernel, step_size, num_replicas, temperature, target, buffer, gain, buffer_gain, scheme, box) -> Sampler:
    check_integer("num_replicas", num_replicas, 2, "Replica exchange needs two replicas.")
    steps = geometric_ladder(num_replicas, step_size, (1.0, 1.0)).step_sizes
    gain = PolynomialGain() if gain is None else gain
    ladder = Ladder(steps, (1.0,) + (0.0,) * (num_replicas - 1))
    rule = Deterministic(buffer, target, gain, buffer_gain)
    coupling = Exchange(ladder, scheme, rule, EquiAcceptance(target, gain) if num_replicas > 2 else None)
    return Sampler(within(kernel, box), steps[0], temperature, coupling=coupling, name=name)
