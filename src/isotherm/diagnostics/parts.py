"""The checks of the parts that made a run."""

import dataclasses

from isotherm.foundation.checks import Check, RunView
from isotherm.potentials.potential import Potential
from isotherm.samplers.sampler import Sampler


@dataclasses.dataclass(frozen=True, eq=False)
class PartsOfRun:
    """The sampler and the potential that made a run."""

    sampler: Sampler
    potential: Potential

    def diagnose(self, run: RunView) -> list[Check]:
        """The checks of coupling, kernel and potential."""
        sampler = self.sampler
        return [part for owner in (sampler.coupling, sampler.kernel, self.potential) for part in owner.diagnose(run)]
