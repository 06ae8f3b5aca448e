"""CUDA graphs for chains that are written out in one program, so that a GPU runs their convolutions side by side.

A graph cannot capture kernels that cuDNN has not loaded yet: it fails with status 5003. Autotuning at compile time loads them; a
program from the persistent compilation cache, or compiled with cached autotuning results, comes without. Each program is therefore
cached in two forms, and a process that finds it in the cache runs the form without graphs once, which loads the kernels.

If this fails, `program_cache` compiles without options: slower, with the same results. Delete the two forms when programs from the
cache can capture convolutions in their first call, and this file when XLA graphs hold parallel convolutions by default.
"""

import contextlib
import itertools
import threading
from collections.abc import Callable
from typing import Any

import jax

from isotherm.engine.whole_loops import whole_loops
from isotherm.foundation.compilation_cache import are_programs_kept

_GRAPHS = "xla_gpu_enable_command_buffer"
# By default graphs leave out convolutions, and run in sequence.
_OPTIONS = (
    (_GRAPHS, "FUSION,CUBLAS,CUBLASLT,CUDNN,CUSTOM_CALL,DYNAMIC_SLICE_FUSION,CONDITIONAL,CONVOLUTION"),
    ("xla_gpu_command_buffer_scheduling_mode", "CONCURRENT"),
)
_HIT = "/jax/compilation_cache/cache_hits"
# Autotuning results of other processes.
_WITHOUT_CHOICES = {"xla_gpu_per_fusion_autotune_cache_dir": ""}


def options_for(chain_mode: str) -> tuple[tuple[str, str], ...]:
    """Compiler options of a program."""
    return _OPTIONS if chain_mode == "unroll" and jax.default_backend() == "gpu" else ()


def compile_with_graphs(lowered: Any, options: dict[str, str]) -> Callable[..., Any]:
    """The compiled program. If it comes from the persistent cache, its first call runs the form without graphs.

    A program compiled just now has its kernels. Its other form is compiled during the run, for later processes: autotuning is done
    by then, so both forms use the same algorithms.
    """
    if not are_programs_kept():
        return lowered.compile(compiler_options=options)
    options = {**options, **_WITHOUT_CHOICES}
    here, hits = threading.get_ident(), []

    def listen(event: str, **_: Any) -> None:
        # Other threads may compile at the same time.
        if event == _HIT and threading.get_ident() == here:
            hits.append(event)

    jax.monitoring.register_event_listener(listen)
    try:
        program = lowered.compile(compiler_options=options)
    finally:
        jax.monitoring.unregister_event_listener(listen)
    without = {**options, _GRAPHS: ""}
    is_from_disk = bool(hits)
    if is_from_disk:
        later = itertools.chain([lowered.compile(compiler_options=without)], itertools.repeat(program))
        return lambda *given: next(later)(*given)

    def compile_for_later() -> None:
        with whole_loops(), contextlib.suppress(Exception):
            lowered.compile(compiler_options=without)

    # Not a daemon: the process waits for it, since a compiler that is cut off can crash the process.
    threading.Thread(target=compile_for_later, name="compile for later processes").start()
    return program
