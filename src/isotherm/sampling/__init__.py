"""The host side: what a sampler is, and `sample`, `resume` and `advise`."""

from isotherm.sampling.driver import sample
from isotherm.sampling.resume import resume
from isotherm.sampling.sampler import Info, LoopState, Sampler
from isotherm.sampling.start import per_chain

__all__ = ["Info", "LoopState", "Sampler", "per_chain", "resume", "sample"]
