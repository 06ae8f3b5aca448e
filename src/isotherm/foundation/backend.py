"""What is asked of XLA before it starts."""

import os

_OPTIONS = "xla_backend_extra_options"
# On a CPU, XLA compiles a loop into one function if its body touches fewer bytes than this; else it calls every operation by
# itself, which for an iteration of a few hundred operations on small arrays takes two to seven times as long.
MAX_WHOLE_LOOP = 16_384


def ask_for_whole_loops() -> None:
    """Raises XLA's limit for loops that become one function, unless XLA_FLAGS speak of such options. In vain once it runs."""
    flags = os.environ.get("XLA_FLAGS", "")
    if _OPTIONS not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {whole_loops_flag(MAX_WHOLE_LOOP)}".strip()


def whole_loops_flag(largest: int) -> str:
    """What sets that limit, in bytes."""
    return f"--{_OPTIONS}=xla_cpu_small_while_loop_byte_threshold={largest}"
