"""Where a launcher or scheduler placed this process, from its environment variables."""

import importlib.util
import re
import zlib
from collections.abc import Mapping
from typing import NamedTuple

from isotherm.foundation.errors import refuse
from isotherm.foundation.launch_variables import COORDINATOR, LOCAL_DEVICES, NUM_PROCESSES, PROCESS_ID

# The ports that JAX takes: the last 4,096.
_FIRST_PORT, _NUM_PORTS = 61_440, 4_096


class Place(NamedTuple):
    """One process among several. None is what JAX's own detectors find."""

    launcher: str
    coordinator: str | None = None
    num_processes: int | None = None
    process_id: int | None = None
    local_device_ids: tuple[int, ...] | None = None


def find_place(environ: Mapping[str, str]) -> Place | None:
    """The place of this process; None outside of a launcher and a scheduler.

    Open MPI precedes Slurm: processes of `mpirun` in a Slurm job inherit the variables of a Slurm task that runs their daemon.
    """
    place = _launched(environ) or _open_mpi(environ) or _slurm(environ) or _kubernetes(environ) or _cloud_tpu(environ)
    if place is None:
        return None
    address = environ.get("JAX_COORDINATOR_ADDRESS")
    if address and place.launcher != "isotherm launch":
        place = place._replace(coordinator=address)
    if environ.get(LOCAL_DEVICES):
        place = place._replace(local_device_ids=tuple(_integers(environ, LOCAL_DEVICES)))
    return place


def _launched(environ: Mapping[str, str]) -> Place | None:
    names = (COORDINATOR, NUM_PROCESSES, PROCESS_ID)
    missing = [name for name in names if not environ.get(name)]
    if len(missing) == len(names):
        return None
    if missing:
        remedy = f"Set all of {', '.join(names)}, or none. `isotherm launch` sets them."
        refuse(missing[0], "set, as other variables of the launcher are", "nothing", remedy)
    return Place(
        "isotherm launch", environ[COORDINATOR], _integer(environ, NUM_PROCESSES), _integer(environ, PROCESS_ID)
    )


def _open_mpi(environ: Mapping[str, str]) -> Place | None:
    if "OMPI_COMM_WORLD_SIZE" not in environ:
        return None
    size, rank = _integer(environ, "OMPI_COMM_WORLD_SIZE"), _integer(environ, "OMPI_COMM_WORLD_RANK")
    num_local, local = _integer(environ, "OMPI_COMM_WORLD_LOCAL_SIZE"), _integer(environ, "OMPI_COMM_WORLD_LOCAL_RANK")
    # Open MPI 4 says where mpirun runs, such as 1531576320.0;tcp://10.96.0.1,10.148.0.1:34911 or 1314521088.0;tcp6://[fe80::b9b]:43370.
    uri = environ.get("OMPI_MCA_orte_hnp_uri", "")
    job = uri or environ.get("PMIX_NAMESPACE", "")
    port = environ.get("JAX_COORDINATOR_PORT") or _port(job)
    found = re.search(r"tcp://([^,:]+)|tcp6://\[([^],]+)", uri)
    coordinator = None
    if size == num_local:
        coordinator = f"127.0.0.1:{port}"
    elif found is not None:
        coordinator = f"{found[1]}:{port}" if found[1] else f"[{found[2]}]:{port}"
    elif not environ.get("JAX_COORDINATOR_ADDRESS"):
        remedy = "Start mpirun on the first host of the job, with: -x JAX_COORDINATOR_ADDRESS=$(hostname):61440"
        refuse("JAX_COORDINATOR_ADDRESS", "set for Open MPI 5 on several hosts", "nothing", remedy)
    return Place("Open MPI", coordinator, size, rank, _devices_of(local, num_local, environ))


def _slurm(environ: Mapping[str, str]) -> Place | None:
    """A task of srun.

    JAX reads SLURM_NTASKS, which in a shell of an allocation is the number of tasks that the job may start. Here only the variables
    of a step count: a batch script, `salloc` and ssh into an allocation are single processes.
    """
    # Slurm sets SLURM_STEP_ID and SLURM_STEP_NODELIST for what srun starts.
    step = ("SLURM_STEP_ID", "SLURM_STEP_NODELIST", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID")
    if not all(environ.get(name) for name in step):
        return None
    host = first_host(environ["SLURM_STEP_NODELIST"])
    # Steps of one job may run side by side on a host: each needs a port.
    job = f"{environ.get('SLURM_JOB_ID')}.{environ['SLURM_STEP_ID']}.{environ.get('SLURM_RESTART_COUNT', 0)}"
    coordinator = f"{host}:{environ.get('JAX_COORDINATOR_PORT') or _port(job)}"
    per_node = tasks_per_node(environ.get("SLURM_STEP_TASKS_PER_NODE", "1"))
    node = min(int(environ.get("SLURM_NODEID", 0)), len(per_node) - 1)
    devices = _devices_of(_integer(environ, "SLURM_LOCALID"), per_node[node], environ)
    numbers = _integer(environ, "SLURM_STEP_NUM_TASKS"), _integer(environ, "SLURM_PROCID")
    return Place("Slurm", coordinator, *numbers, devices)


def _kubernetes(environ: Mapping[str, str]) -> Place | None:
    # Only pods of an indexed job know their number; other pods are single processes.
    if "KUBERNETES_SERVICE_HOST" not in environ or "JOB_COMPLETION_INDEX" not in environ:
        return None
    if importlib.util.find_spec("kubernetes") is None:
        remedy = f"Set {COORDINATOR}, {NUM_PROCESSES} and {PROCESS_ID} in the job (docs/clusters.md), or: pip install kubernetes"
        refuse(COORDINATOR, "set in an indexed Kubernetes job", "nothing", remedy)
    return Place("Kubernetes")


def _cloud_tpu(environ: Mapping[str, str]) -> Place | None:
    # JAX sets the first variable, when it is imported, on hosts with TPUs.
    uses_tpu = "tpu" in (environ.get("JAX_PLATFORMS") or "tpu").split(",")
    return Place("Cloud TPU") if uses_tpu and environ.get("TPU_ML_PLATFORM") == "JAX" else None


def _devices_of(local: int, num_local: int, environ: Mapping[str, str]) -> tuple[int, ...] | None:
    """The GPUs of task `local` out of `num_local` on this host; None for all that it sees.

    JAX takes GPU `local`, which fails where Slurm binds GPUs to tasks (`--gpus-per-task`, `--gpu-bind`), so that each sees its own
    from 0 on, and leaves GPUs idle where there are more than tasks.
    """
    visible = environ.get("CUDA_VISIBLE_DEVICES", environ.get("ROCR_VISIBLE_DEVICES"))
    if num_local == 1 or visible is None:
        return None if num_local == 1 else (local,)
    num_visible = len([name for name in visible.split(",") if name.strip()])
    on_host = environ.get("SLURM_GPUS_ON_NODE", "")
    is_bound = "SLURM_GPUS_PER_TASK" in environ or (on_host.isdigit() and num_visible < int(on_host))
    if is_bound or num_visible == 0:
        return None
    if num_visible % num_local:
        remedy = f"Start a number of tasks per host that divides {num_visible}, or set {LOCAL_DEVICES} for each."
        rule = f"a multiple of the {num_local} tasks on this host"
        refuse("CUDA_VISIBLE_DEVICES", rule, f"{num_visible} GPUs", remedy)
    share = num_visible // num_local
    return tuple(range(local * share, (local + 1) * share))


def first_host(nodes: str) -> str:
    """The first host of a list of Slurm.

    Example:
        >>> first_host("gpu[007-9,12],cpu1"), first_host("rack[2-3]node[01,4].site"), first_host("a-1,b")
        ('gpu007', 'rack2node01.site', 'a-1')
    """
    return re.split(",", re.sub(r"\[([^],-]+)[^]]*\]", r"\1", nodes))[0]


def tasks_per_node(text: str) -> list[int]:
    """Slurm's compressed list of tasks per host.

    Example:
        >>> tasks_per_node("2(x3),1")
        [2, 2, 2, 1]
    """
    parts = re.findall(r"(\d+)(?:\(x(\d+)\))?", text)
    return [int(number) for number, times in parts for _ in range(int(times or 1))] or [1]


def _port(job: str) -> int:
    """A port that all processes of a job derive from its name."""
    return _FIRST_PORT + zlib.crc32(job.encode()) % _NUM_PORTS


def _integer(environ: Mapping[str, str], name: str) -> int:
    return _integers(environ, name, 1)[0]


def _integers(environ: Mapping[str, str], name: str, count: int | None = None) -> list[int]:
    words = environ.get(name, "").split(",")
    if not all(word.strip().isdigit() for word in words) or count not in (None, len(words)):
        rule = "a number" if count == 1 else "numbers with commas between them"
        refuse(name, rule, repr(environ.get(name)), "Unset it, or correct it where the processes are started.")
    return [int(word) for word in words]
