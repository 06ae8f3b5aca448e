"""The composition of the parts, the driver, runs, stores and checkpoints."""

from isotherm.sampling.driver import sample
from isotherm.sampling.resume import resume
from isotherm.sampling.run import Run, load
from isotherm.sampling.sampler import Info, LoopState, Sampler
from isotherm.sampling.start import per_chain

__all__ = ["Info", "LoopState", "Run", "Sampler", "load", "per_chain", "resume", "sample"]
