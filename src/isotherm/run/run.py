"""What `sample` returns: weighted draws, and all that can be asked of them."""

import dataclasses
import pathlib
from typing import Self

from isotherm.foundation.errors import check_folder, check_written_path
from isotherm.run.run_views import RunViews
from isotherm.run.storage import saving


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Run(RunViews):
    """Draws with their weights, and how they came about. Axes are (chain, draw, ...); with `num_runs`, (run, chain, draw, ...).

    Attributes:
        draws: a pytree like a position. Arrays on disk are read when they are indexed.
        log_weights: log importance weights; all zero for samplers that do not weigh. A draw of a diverged chain has -inf.
        energies: the stochastic energy at each draw, as the sampler saw it.
        times: when each draw was taken; see `iterations`.
        stats: what was seen at every iteration (`best_energy`, `best_position`, `first_hit`, `diverged_at`) and what the coupling
            and the kernel report.
        observed: what the coupling recorded with every draw, with the draws where those of positions are.
        model_state: model states of the draws, such as BatchNorm statistics.
        config: what was asked for.
        environment: versions and device.
        num_steps: iterations done.
        seconds: wall-clock time of sampling since the run was last started or resumed.
        compile_seconds: of preparing before that, nearly all of it the compiler's.
        checkup: measures the bias when somebody asks, or what was measured; None where nothing is known of it.
        pilot_seconds: of pilots before that, which chose a partition or a ladder, with their own compiling.
        earlier_seconds: of all these in the parts of the run before it was resumed, each up to its last checkpoint.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> run = iso.sample(lambda x: x @ x / 2, iso.sgld(step_size=0.1), num_steps=5000, num_chains=8, init=jnp.zeros(2))
        >>> mean = run.expectation(lambda x: x)
    """

    def save(self, folder: str | pathlib.Path) -> None:
        """Write the run to a new folder for `iso.load`. It holds no checkpoint: runs that may go on need `sample(out=...)`."""
        place = check_folder("folder", folder, 'Write `run.save("my-run")`, say.')
        check_written_path("folder", place)
        saving.save(self, place)

    @classmethod
    def load(cls, folder: str | pathlib.Path) -> Self:
        """A run from its folder, finished or not. Draws are read when they are indexed."""
        found = saving.load(check_folder("folder", folder, 'Write `iso.load("my-run")`, say.'))
        return cls.assemble(**found).without_noise()


load = Run.load
