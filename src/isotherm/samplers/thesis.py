"""The thesis' own settings of contour samplers, as options: `iso.icsgld(0.003, **iso.thesis.icsgld(partition=...))`.

They are more aggressive than the defaults: multipliers up to 5 in either direction, a gain that decays slowly, and fields under
which theta may diverge. The experiments use them, each with the partition, zeta and gain that the thesis gives for it.

Reference:
    Deng 2021, sections 4.1 and 4.2; bounds are those of the author's code.
"""

from typing import Any

from isotherm.foundation.gains import PolynomialGain


def csgld(**changes: Any) -> dict[str, Any]:
    """Options of `iso.csgld` and `iso.csghmc`, with those that you change.

    Example:
        >>> csgld(zeta=0.5)["bounds"]
        (-5.0, 5.0)
    """
    options = {
        "field": "theta^zeta",
        "gain": PolynomialGain(1.0, 0.6, 100.0),
        "bounds": (-5.0, 5.0),
        "empty_step": None,
        "initial_theta": "uniform",
    }
    return {**options, **changes}


def icsgld(**changes: Any) -> dict[str, Any]:
    """Options of `iso.icsgld`, `iso.icsghmc` and `iso.picsgld`, with those that you change."""
    return {**csgld(field="theta"), **changes}
