"""What a run is once it exists: draws and weights, estimates, plots, ArviZ, and the folder on disk."""

from isotherm.run.run import Run, load

__all__ = ["Run", "load"]
