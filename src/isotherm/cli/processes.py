"""Options of commands that can run as several processes."""

import dataclasses
from typing import Annotated

import tyro

from isotherm.cli.counts import Count


@dataclasses.dataclass(frozen=True)
class Processes:
    """Where this process belongs, if the run has several. srun, mpirun and `isotherm launch` need none of these."""

    coordinator: Annotated[str | None, tyro.conf.arg(metavar="HOST:PORT")] = None
    """Where process 0 listens for the others. Trusted networks only."""
    num_processes: Count | None = None
    """Number of processes of the run."""
    process_id: Count | None = None
    """Number of this process, from 0 on."""

    def connect(self) -> bool:
        """Connect the processes of the run. Returns whether this one prints and draws its result."""
        from isotherm import distributed
        from isotherm.foundation.errors import InputError

        try:
            distributed.initialize(self.coordinator, self.num_processes, self.process_id)
        except InputError as error:
            raise InputError(_with_options(str(error))) from error
        return distributed.process_index() == 0


def _with_options(message: str) -> str:
    """`message` with the options of the command line instead of arguments."""
    for name, option in {"coordinator_address": "--coordinator", "num_processes": "--num-processes"}.items():
        message = message.replace(f"`{name}`", f"`{option}`").replace(f"{name},", f"{option},")
    return message.replace("`process_id`", "`--process-id`").replace("and process_id", "and --process-id")
