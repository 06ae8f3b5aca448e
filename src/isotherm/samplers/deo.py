"""Samplers of replicas that explore by SGD and exchange rungs by deterministic even-odd swaps."""

from typing import Annotated, Any, TypedDict, Unpack

import numpy as np

from isotherm.exchange import Deterministic, DeterministicEvenOdd, EquiAcceptance, Exchange, Ladder, geometric_ladder
from isotherm.foundation.docstrings import defaults_of
from isotherm.foundation.errors import check_integer, check_real, refuse, short
from isotherm.foundation.gains import PolynomialGain
from isotherm.foundation.schedules import Schedule
from isotherm.kernels import PSGLD, SGHMC, SGLD, Kernel, within
from isotherm.samplers.constructor import Box, constructor
from isotherm.samplers.exchange_options import LADDERS
from isotherm.samplers.sampler import Sampler

Ends = tuple[float, float]
OPTIMAL_WINDOW = "optimal"


class DeoOptions(TypedDict, total=False):
    """Options of all samplers with SGD exploration, with their defaults.

    Attributes:
        num_replicas: P, the number of rungs, at least 2.
        temperature: T of rung 0, a number of at least 0 or a function of the iteration, in units of the energy. The rungs above
            have no injected noise.
        target: S, the acceptance in (0, 1) that the buffer adapts to; no unit.
        buffer: C at the start, in units of the energy.
        gain: h_k of ladder and buffer, a number of at least 0 or a function of the iteration k. The default is
            50 / (k^0.8 + 500); no unit.
        buffer_gain: a factor of at least 0 on the gain of the buffer; no unit.
        is_exact: whether every window makes exactly one swap of every active pair, at its last iteration if none came before.
        box: (low, high), numbers or arrays that broadcast against the position. Proposals outside are rejected, or reflected for
            (low, high, "reflect"); None has no walls.
    """

    num_replicas: Annotated[int, 16]
    temperature: Annotated[Schedule, 1.0]
    target: Annotated[float, 0.4]
    buffer: Annotated[float, Deterministic.buffer]
    gain: Annotated[Schedule | None, PolynomialGain()]
    buffer_gain: Annotated[float, Deterministic.buffer_gain]
    is_exact: Annotated[bool, DeterministicEvenOdd.is_exact]
    box: Annotated[Box, None]


_deo_constructor = constructor(
    DeoOptions,
    arguments="""
        step_size: (eps_0, eps_{P-1}), the step sizes of the target and of the last rung, rising, in units of position^2 / energy.
        window: W, iterations; "optimal" minimizes the expected round trip at the acceptance `target`, "formula" is the thesis'
            approximation.
    """,
    returns=LADDERS,
)


@_deo_constructor
def deo_sgd(step_size: Ends, *, window: int | str = 1, **options: Unpack[DeoOptions]) -> Sampler:
    """SGLD on the target rung and SGD on the rungs above, with deterministic even-odd swaps; ladder and buffer adapt.

        x_0 <- x_0 - eps_0 g_0 + sqrt(2 eps_0 T) xi,        x_i <- x_i - eps_i g_i on the rungs i > 0
        A_i = 1{ U_i + C < U_{i-1} };  pair (i-1, i) swaps if A_i = 1, its parity has its turn and its gate is open
        C <- C + h_k (mean A - S),        eps of the inner rungs moves until every pair accepts with S

    Pairs of one parity have their turn for W iterations, in which a pair swaps at most once. Costs one gradient per rung and
    iteration.

    Use it to visit many modes of low energy fast, under noisy gradients; not to sample: use `resgld`. SGD on exact gradients stays
    in its basin.

    Biased: it follows no distribution. A replica swaps when the one above it has the lower energy, so low energies are favored.

    Args:
        window: ... 1 is the usual one; `deo_star_sgd` has the optimal one.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> noisy = iso.with_noise(iso.from_energy(lambda x: x @ x / 2), gradient_scale=1.0)
        >>> run = iso.sample(noisy, iso.deo_sgd((0.01, 0.1), num_replicas=4), num_steps=200, init=jnp.zeros(2))
        >>> run.draws.shape
        (2, 200, 2)

    Reference:
        Deng 2021, Algorithm of section 3.3 (DEO-SGD) with W = 1.

    Differs from the thesis: its printed indices of the ladder's update are shifted by one.
    """
    return _deo("deo_sgd", SGLD(), step_size, window, options)


@_deo_constructor
def deo_star_sgd(step_size: Ends, *, window: int | str = OPTIMAL_WINDOW, **options: Unpack[DeoOptions]) -> Sampler:
    """`deo_sgd` with the window that makes round trips shortest.

        x_0 <- x_0 - eps_0 g_0 + sqrt(2 eps_0 T) xi,        x_i <- x_i - eps_i g_i on the rungs i > 0
        A_i = 1{ U_i + C < U_{i-1} };  pair (i-1, i) swaps if A_i = 1, its parity has its turn and its gate is open
        C <- C + h_k (mean A - S),        eps of the inner rungs moves until every pair accepts with S

    Gates open every W iterations, and an accepted swap closes its own. Costs one gradient per rung and iteration.

    Use it in place of `deo_sgd` with many rungs or few accepted swaps; not to sample: use `resgld`. SGD on exact gradients stays
    in its basin.

    Biased: it follows no distribution. A replica swaps when the one above it has the lower energy, so low energies are favored.

    Example:
        >>> import isotherm as iso
        >>> sampler = iso.deo_star_sgd((0.003, 0.6))
        >>> sampler.coupling.scheme.length(16)  # iterations of a window, for 16 rungs; "formula" gives 8
        7

    Reference:
        Deng 2021, Algorithm of section 3.3 (DEO*-SGD).

    Differs from the thesis: its printed gate allows one attempt per window; its window formula is up to twice the best.
    """
    return _deo("deo_star_sgd", SGLD(), step_size, window, options)


@_deo_constructor
def deo_star_psgd(
    step_size: Ends,
    *,
    window: int | str = OPTIMAL_WINDOW,
    decay: float = PSGLD.decay,
    regularizer: float = PSGLD.regularizer,
    gradient_scale: float = PSGLD.gradient_scale,
    **options: Unpack[DeoOptions],
) -> Sampler:
    """`deo_star_sgd` with RMSprop's preconditioner on every rung.

        V_i <- beta V_i + (1 - beta) (s g_i)^2,        G_i = 1 / (lambda + sqrt(V_i))
        x_0 <- x_0 - eps_0 G_0 g_0 + sqrt(2 eps_0 T G_0) xi,        x_i <- x_i - eps_i G_i g_i on the rungs i > 0

    and the swaps, the buffer and the ladder of `deo_star_sgd`. Costs one gradient per rung and iteration.

    Use it to visit many modes where coordinates have very unequal scales; not to sample: use `resgld`.

    Biased: it follows no distribution, as `deo_star_sgd`, and G adapts to the end.

    Args:
        step_size: (eps_0, eps_{P-1}), the step sizes of the target and of the last rung, rising; eps G in position^2 / energy.

    Example:
        >>> import isotherm as iso
        >>> sampler = iso.deo_star_psgd((0.003, 0.6), num_replicas=4)
        >>> sampler.coupling.ladder.temperatures  # relative to `temperature`
        (1.0, 0.0, 0.0, 0.0)

    Reference:
        Deng 2021, section 3.3; the preconditioner is that of Li et al. 2016.
    """
    return _deo("deo_star_psgd", PSGLD(decay, regularizer, gradient_scale), step_size, window, options)


@_deo_constructor
def deo_star_msgd(
    step_size: Ends,
    *,
    window: int | str = OPTIMAL_WINDOW,
    friction: float = SGHMC.friction,
    **options: Unpack[DeoOptions],
) -> Sampler:
    """`deo_star_sgd` with momentum on every rung, made for networks.

        v_0 <- (1 - alpha) v_0 - eps_0 g_0 + sqrt(2 eps_0 alpha T) xi,        v_i <- (1 - alpha) v_i - eps_i g_i for i > 0
        x_i <- x_i + v_i

    and the swaps, the buffer and the ladder of `deo_star_sgd`. A replica that changes rungs starts from rest. Costs one gradient
    per rung and iteration.

    Use it for ensembles of networks from many modes; not to sample: use `resghmc`.

    Biased: it follows no distribution, as `deo_star_sgd`.

    Example:
        >>> import isotherm as iso
        >>> sampler = iso.deo_star_msgd((0.0005, 0.002), num_replicas=4)
        >>> sampler.coupling.ladder.temperatures  # relative to `temperature`
        (1.0, 0.0, 0.0, 0.0)

    Reference:
        Deng 2021, section 3.3 (DEO*-mSGD on CIFAR100).
    """
    return _deo("deo_star_msgd", SGHMC(friction), step_size, window, options)


def _deo(name: str, kernel: Kernel, step_size: Any, window: int | str, given: DeoOptions) -> Sampler:
    options = {**defaults_of(DeoOptions), **given}
    number = check_integer("num_replicas", options["num_replicas"], 2, "Replica exchange needs two replicas.")
    target = check_real("target", options["target"], "Give an acceptance rate.", above=0.0, below=1.0)
    if isinstance(step_size, str) or np.shape(np.asarray(step_size, object)) != (2,):
        remedy = f"Write `iso.{name}((0.003, 0.6))`, say."
        refuse("step_size", "(first, last), the step sizes at the ends of the ladder", short(step_size), remedy)
    steps = geometric_ladder(number, tuple(step_size), (1.0, 1.0)).step_sizes
    gain = PolynomialGain() if options["gain"] is None else options["gain"]
    ladder = Ladder(steps, (1.0,) + (0.0,) * (number - 1))
    rule = Deterministic(options["buffer"], target, gain, options["buffer_gain"])
    scheme = DeterministicEvenOdd(window, 1.0 - target, options["is_exact"])
    coupling = Exchange(ladder, scheme, rule, EquiAcceptance(gain) if number > 2 else None)
    return Sampler(within(kernel, options["box"]), steps[0], options["temperature"], coupling=coupling, name=name)
