"""The functions that run samplers: `sample`, `resume`, `sweep`, `advise` and `resolve`."""

from isotherm.api.advise import Advice, advise
from isotherm.api.sample import resume, sample
from isotherm.api.sweep import sweep
from isotherm.pilots.resolve import Resolved, resolve

__all__ = ["Advice", "Resolved", "advise", "resolve", "resume", "sample", "sweep"]
