"""The host side: what a sampler is, and `sample`, `resume`, `sweep` and `advise`."""

from isotherm.sampling.by_hand import Info, LoopState
from isotherm.sampling.for_blackjax import to_blackjax
from isotherm.sampling.for_optax import as_optax
from isotherm.sampling.resume import resume
from isotherm.sampling.sample import sample
from isotherm.sampling.sampler import Sampler
from isotherm.sampling.start import per_chain
from isotherm.sampling.sweep import sweep

__all__ = ["Info", "LoopState", "Sampler", "as_optax", "per_chain", "resume", "sample", "sweep", "to_blackjax"]
