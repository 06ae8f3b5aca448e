"""Where plots are drawn."""

from typing import Any

import numpy as np

from isotherm.foundation.optional import require


def canvas(axes: Any, count: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """A figure and its axes, an array: those given, or `count` new ones below each other, on a figure of `size` inches."""
    if axes is not None:
        axes = np.atleast_1d(axes)
        return axes[0].figure, axes
    figure = require("matplotlib.figure", "plots").Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(count, 1, squeeze=False)[:, 0]
