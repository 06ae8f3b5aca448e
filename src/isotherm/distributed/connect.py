"""`initialize` connects the processes of a run."""

import os
import socket
import sys
import threading
from collections.abc import Sequence

import jax

from isotherm.distributed.environment import Place, find_place
from isotherm.distributed.failures import watch_others
from isotherm.distributed.messages import process_count, process_index
from isotherm.foundation.errors import InputError, check_integer, check_real, refuse, short

_LOOPBACK = ("127.", "localhost", "[::1]")


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: Sequence[int] | None = None,
    *,
    timeout: float = 300.0,
    heartbeat_timeout: float = 20.0,
    shutdown_timeout: float = 300.0,
) -> None:
    """Connect this process with the others of its run. Call it before anything that uses a device.

    Needs no argument under `isotherm launch`, Slurm (`srun`), Open MPI (`mpirun`), in indexed Kubernetes jobs and on Cloud TPUs.
    Does nothing in a single process, or when called again. CPUs communicate by Gloo. When a process raises, the others print its
    error and end at once; when a process or its host is lost, they end after `heartbeat_timeout`.

    The coordinator, on process 0, has no authentication: use it in trusted networks only. At a loopback address it listens there
    alone, otherwise on all interfaces of its host (`JAX_COORDINATOR_BIND_ADDRESS` chooses one).

    Args:
        coordinator_address: HOST:PORT of process 0, where it listens; None finds it.
        num_processes: the number of processes; None finds it. With 1 this process stays alone, whatever the scheduler says.
        process_id: the number of this one, from 0 on; None finds it.
        local_device_ids: the GPUs of this process out of those that it sees; None shares them out between the processes on a host.
        timeout: seconds to wait for the other processes.
        heartbeat_timeout: seconds of silence after which a process is taken as lost, and all others end.
        shutdown_timeout: seconds that a process waits at its exit for the others.

    Example:
        >>> import isotherm as iso
        >>> iso.distributed.initialize()
        >>> iso.distributed.process_count()
        1
    """
    timeouts = {"timeout": timeout, "heartbeat_timeout": heartbeat_timeout, "shutdown_timeout": shutdown_timeout}
    for name, value in timeouts.items():
        check_real(name, value, "Give seconds.", minimum=1.0)
    place = _place(coordinator_address, num_processes, process_id, local_device_ids)
    if jax.distributed.is_initialized():
        _check_same(num_processes, process_id)
        return
    if place is None or place.num_processes == 1:  # Alone.
        return
    options = {}
    if place.coordinator is not None:
        _check_address(place.coordinator)
        options["cluster_detection_method"] = "deactivate"
        if place.coordinator.startswith(_LOOPBACK):
            options["coordinator_bind_address"] = place.coordinator
        if place.process_id == 0:
            _check_free(place.coordinator, is_local="coordinator_bind_address" in options)
    # The default of JAX, unless its variable is set: without it CPUs of several processes cannot compute together.
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    late = threading.Timer(timeout, _end_late, (place, timeout))
    late.daemon = True
    late.start()
    try:
        jax.distributed.initialize(
            *place[1:],
            # JAX would end the process with a stack trace.
            initialization_timeout=int(timeout) + 30,
            heartbeat_timeout_seconds=int(heartbeat_timeout),
            shutdown_timeout_seconds=int(shutdown_timeout),
            **options,
        )
    except (RuntimeError, ValueError) as error:
        raise _explained(error, place) from error
    finally:
        late.cancel()
    from jax._src import distributed

    state = distributed.global_state
    if process_count() > 1:
        watch_others(state.client, state.coordinator_address or "", process_count(), process_index(), heartbeat_timeout)


def _place(
    coordinator: str | None, num_processes: int | None, process_id: int | None, devices: Sequence[int] | None
) -> Place | None:
    """The place of this process, from arguments or else from its environment."""
    given = {"coordinator_address": coordinator, "num_processes": num_processes, "process_id": process_id}
    if coordinator is not None:
        _check_address(coordinator)
    if num_processes is not None:
        check_integer("num_processes", num_processes, 1, "Give the number of processes.")
    if process_id is not None:
        check_integer("process_id", process_id, 0, "Give the number of this process, from 0 on.")
    if devices is not None:
        devices = [devices] if isinstance(devices, int) else devices
        devices = tuple(check_integer("local_device_ids", each, 0, "Give [0, 1], say.") for each in devices)
    if num_processes == 1:
        return None
    missing = [name for name, value in given.items() if value is None]
    if missing:
        place = find_place(os.environ)
        if place is None and len(missing) == len(given):
            return None
        if place is None:
            remedy = "Outside of srun and mpirun give all of coordinator_address, num_processes and process_id."
            refuse(missing[0], "given", "nothing, and no scheduler was found", remedy)
    else:
        place = Place("arguments")
    values = (coordinator, num_processes, process_id, devices)
    place = place._replace(
        **{name: each for name, each in zip(Place._fields[1:], values, strict=True) if each is not None}
    )
    if place.process_id is not None and place.num_processes is not None and place.process_id >= place.num_processes:
        rule = f"below the number of processes, {place.num_processes}"
        refuse("process_id", rule, place.process_id, "Processes are numbered from 0 on.")
    return place


def _check_address(address: str) -> None:
    host, _, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        refuse("coordinator_address", "of the form HOST:PORT", short(address), "Write node1:61440, say.")


def _check_free(address: str, is_local: bool) -> None:
    """Refuse a port that is in use: jaxlib 0.10 crashes on one now and then."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]") if is_local else ""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
        except OSError:
            remedy = "Choose another port; under Slurm and Open MPI set JAX_COORDINATOR_PORT for all processes."
            refuse("coordinator_address", "an address of this host with a free port", address, remedy)


def _check_same(num_processes: int | None, process_id: int | None) -> None:
    for name, asked, own in (
        ("num_processes", num_processes, process_count()),
        ("process_id", process_id, process_index()),
    ):
        if asked not in (None, own):
            refuse(name, f"{own}, as in the first call of initialize", asked, "Call it once, or with equal arguments.")


def _explained(error: Exception, place: Place) -> Exception:
    """The error of JAX as a refusal, where its reason is known."""
    text = str(error)
    if "must be called before" in text or "backend" in text:
        rule = "called before anything that uses a device, such as jax.devices() or jax.numpy.zeros"
        return InputError(
            f"`initialize` must be {rule}; got a call after it. Move it to the first line after the imports."
        )
    if place.coordinator is None:
        remedy = f"Give all of coordinator_address, num_processes and process_id. JAX says: {text}"
        return InputError(
            f"`coordinator_address` must be given; got nothing, and JAX finds none on {place.launcher}. {remedy}"
        )
    return error


def _end_late(place: Place, timeout: float) -> None:
    """End a process that waits for others in vain. JAX would end it too, with a stack trace instead of a message."""
    address, found_by = place.coordinator or "the coordinator", f"according to {place.launcher}"
    if place.process_id != 0 and place.coordinator is not None and not _listens(place.coordinator):
        text = f"Waited {timeout:g} s for process 0 at {address} ({found_by}): nothing listens there. "
        text += "Check that it was started, that its host has this name here, and that no firewall closes the port."
    else:
        text = f"Waited {timeout:g} s at {address} for {place.num_processes} processes ({found_by}): not all came. "
        text += (
            "Start all of them. For a single process leave the arguments out, or start it with srun -n1 or mpirun -n 1."
        )
    print(f"Error: {text}", file=sys.stderr, flush=True)
    os._exit(1)


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), 2.0).close()
    except OSError:
        return False
    return True
