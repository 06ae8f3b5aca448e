"""What users call: `sample`, `resume`, `sweep`, `advise` and `resolve`. Each resolves what is not known yet, then drives."""

from isotherm.api.advise import Advice, advise
from isotherm.api.resume import resume
from isotherm.api.sample import sample
from isotherm.api.sweep import sweep
from isotherm.pilots.resolve import Resolved, resolve

__all__ = ["Advice", "Resolved", "advise", "resolve", "resume", "sample", "sweep"]
