"""What `import isotherm` asks of XLA: whole loops on CPUs, unless the user has said something about such options."""

import os
import subprocess
import sys

import pytest

SCRIPT = "import isotherm, os; print(os.environ['XLA_FLAGS'])"
OWN = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=1"


@pytest.mark.parametrize("given", ["", "--xla_cpu_enable_fast_math=false", OWN])
def test_flags_of_the_user_stay(given):
    environment = {**os.environ, "XLA_FLAGS": given}
    found = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    flags = found.stdout.strip()
    assert flags.startswith(given)
    assert flags.count("xla_backend_extra_options") == 1
    assert (flags == given) == (given == OWN)
