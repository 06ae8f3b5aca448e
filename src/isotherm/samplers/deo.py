"""Samplers of replicas that explore by SGD and exchange rungs by deterministic even-odd swaps."""

from typing import TypedDict, Unpack

from isotherm.exchange import Deterministic, DeterministicEvenOdd, EquiAcceptance, Exchange, Ladder, geometric_ladder
from isotherm.foundation.errors import check_integer, check_options
from isotherm.foundation.gains import PolynomialGain
from isotherm.foundation.schedules import Schedule
from isotherm.kernels import PSGLD, SGHMC, SGLD, Kernel, within
from isotherm.samplers.independent import Box
from isotherm.sampling.sampler import Sampler


class DeoOptions(TypedDict, total=False):
    """Options that all samplers with SGD exploration take.

    Attributes:
        num_replicas: P; 16.
        temperature: of the target rung; 1. The others have no noise of their own.
        target: S, the acceptance that ladder and buffer adapt to; 0.4.
        buffer: C at the start, in the units of the energy; 0.
        gain: of ladder and buffer; 50 / (k^0.8 + 500).
        buffer_gain: a factor on the gain of the buffer; 1.
        window: W, "optimal" for the exact minimum of the expected round trip, or "formula" for the thesis'; "optimal", and 1 for
            `deo_sgd`.
        is_exact: whether every window makes exactly one swap of every active pair; False.
        box: (low, high), out of which moves are rejected; None.
    """

    num_replicas: int
    temperature: Schedule
    target: float
    buffer: float
    gain: Schedule | None
    buffer_gain: float
    window: int | str
    is_exact: bool
    box: Box


def deo_sgd(step_size: tuple[float, float], **options: Unpack[DeoOptions]) -> Sampler:
    """SGLD at the target and SGD on the rungs above, with deterministic even-odd swaps; ladder and buffer adapt.

    Made to explore: a replica swaps when the one above it has a lower energy, so that low energies are found and the target rung
    visits many modes. Promises no law. SGD on exact gradients stays in its basin: the rungs above need noisy ones. Options:
    `DeoOptions`.
    """
    window: DeoOptions = {"window": 1}
    return _deo("deo_sgd", SGLD(), step_size, {**window, **options})


def deo_star_sgd(step_size: tuple[float, float], **options: Unpack[DeoOptions]) -> Sampler:
    """`deo_sgd` with the optimal window. Promises no law. Options: `DeoOptions`."""
    return _deo("deo_star_sgd", SGLD(), step_size, options)


def deo_star_psgd(
    step_size: tuple[float, float],
    *,
    decay: float = 0.99,
    regularizer: float = 1e-3,
    gradient_scale: float = 1.0,
    **options: Unpack[DeoOptions],
) -> Sampler:
    """`deo_star_sgd` with RMSprop's preconditioner on every rung. Promises no law. Options: `DeoOptions`."""
    return _deo("deo_star_psgd", PSGLD(decay, regularizer, gradient_scale), step_size, options)


def deo_star_msgd(step_size: tuple[float, float], *, friction: float = 0.1, **options: Unpack[DeoOptions]) -> Sampler:
    """`deo_star_sgd` with momentum on every rung; a replica that changes rungs starts from rest. Promises no law.

    Options: `DeoOptions`.
    """
    return _deo("deo_star_msgd", SGHMC(friction), step_size, options)


def _deo(name: str, kernel: Kernel, step_size: tuple[float, float], options: DeoOptions) -> Sampler:
    check_options(name, options, DeoOptions.__annotations__)
    number, target = options.get("num_replicas", 16), options.get("target", 0.4)
    check_integer("num_replicas", number, 2, "Replica exchange needs two replicas.")
    steps = geometric_ladder(number, step_size, (1.0, 1.0)).step_sizes
    gain = options.get("gain") or PolynomialGain()
    ladder = Ladder(steps, (1.0,) + (0.0,) * (number - 1))
    rule = Deterministic(options.get("buffer", 0.0), target, gain, options.get("buffer_gain", 1.0))
    scheme = DeterministicEvenOdd(options.get("window", "optimal"), 1.0 - target, options.get("is_exact", False))
    coupling = Exchange(ladder, scheme, rule, EquiAcceptance(target, gain) if number > 2 else None)
    temperature = options.get("temperature", 1.0)
    return Sampler(within(kernel, options.get("box")), steps[0], temperature, coupling=coupling, name=name)
