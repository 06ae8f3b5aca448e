"""Programs with CUDA graphs, beside a cache of compiled programs on disk.

A graph cannot be captured with kernels of cuDNN that the process has not loaded yet: it fails with cuDNN's status 5003. The trials
of algorithms at compile time load them; a program from the disk, or one compiled with choices from the disk, comes without. So
every such program is kept in two forms, and a process that finds it on the disk runs the form without graphs once, which loads
the kernels.
"""

import itertools
import threading
from collections.abc import Callable
from typing import Any

import jax

_HIT = "/jax/compilation_cache/cache_hits"
_WITHOUT_GRAPHS = {"xla_gpu_enable_command_buffer": ""}
# Choices of algorithms that were tried by another process.
_WITHOUT_CHOICES = {"xla_gpu_per_fusion_autotune_cache_dir": ""}


def compile_with_graphs(lowered: Any, options: dict[str, str]) -> Callable[..., Any]:
    """The program with graphs, whose first call runs without them where it comes from the disk.

    Where it was compiled just now, the other form is compiled beside the run, for processes to come: the trials are known by then,
    and both forms have the same algorithms.
    """
    options = {**options, **_WITHOUT_CHOICES}
    program, is_from_disk = _compile(lowered, options)
    without = {**options, **_WITHOUT_GRAPHS}
    if is_from_disk:
        later = itertools.chain([lowered.compile(compiler_options=without)], itertools.repeat(program))
        return lambda *given: next(later)(*given)
    # A process waits for it before it ends: a compiler that is cut off may take the process with it.
    threading.Thread(target=lowered.compile, args=(without,), name="compile for later processes").start()
    return program


def _compile(lowered: Any, options: dict[str, str]) -> tuple[Callable[..., Any], bool]:
    """A compiled program, and whether it comes from the disk."""
    here, hits = threading.get_ident(), []

    def listen(event: str, **_: Any) -> None:
        # Other threads may compile at the same time.
        if event == _HIT and threading.get_ident() == here:
            hits.append(event)

    jax.monitoring.register_event_listener(listen)
    try:
        return lowered.compile(compiler_options=options), bool(hits)
    finally:
        jax.monitoring.unregister_event_listener(listen)
