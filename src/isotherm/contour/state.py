"""What a contour coupling carries from iteration to iteration."""

from typing import NamedTuple

from jax import Array

from isotherm.contour.integral import Sums
from isotherm.contour.weights import Logs, Weights


class ContourState(NamedTuple):
    """What is learnt of the bins, for G groups of P chains.

    Attributes:
        weights: theta of this iteration once `bins` and `masses` are added.
        energies: of the last iteration, shape (P,).
        temperature: of the last iteration.
        bins: where its chains hit, shape (P,).
        masses: what they add there, shape (P,). Added first in an iteration, and read after: XLA then copies no histogram.
        counts: iterations in which a chain's multiplier was at its bound, was negative, and its energy in the top bin.
        extremes: the lowest and the highest multiplier so far, each of shape (P,).
        total: the mass of all bins whose weight Psi takes somewhere, in the units of `weights.levels`, shape (G,).
        variance: of the energy at one position, where it was measured; else NaN. Shape (P,).
        anchor: a heavy bin, shape (G,), from whose edge weights are integrated where psi is bounded.
        sums: from which weights are found where psi is bounded; None where they are not kept.
        logs: of theta around `bins`, before `masses`; None without `sums`.
    """

    weights: Weights
    energies: Array
    temperature: Array
    bins: Array
    masses: Array
    counts: tuple[Array, ...]
    extremes: tuple[Array, Array]
    total: Array
    variance: Array
    anchor: Array
    sums: Sums | None
    logs: Logs | None
