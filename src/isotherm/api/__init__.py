"""What users call: `sample`, `resume`, `sweep` and `advise`. Each resolves what is not known yet, then drives."""

from isotherm.api.advise import Advice, advise
from isotherm.api.resume import resume
from isotherm.api.sample import sample
from isotherm.api.sweep import sweep

__all__ = ["Advice", "advise", "resume", "sample", "sweep"]
