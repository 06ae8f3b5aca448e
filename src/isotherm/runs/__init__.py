"""What a run is once it exists: draws and weights, estimates, diagnostics, plots, ArviZ, and the folder on disk."""

from isotherm.runs.run import Run, load

__all__ = ["Run", "load"]
