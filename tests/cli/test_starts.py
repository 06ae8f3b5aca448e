"""Where runs from the shell start."""

from isotherm.cli.main import main
from tests.cli.test_cli import refused

NETWORK = """
import numpy as np
from flax import nnx
import isotherm as iso
x = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)
network = iso.from_nnx(lambda rngs: nnx.Linear(2, 2, rngs=rngs), "cross_entropy", (x, np.arange(40) % 2), batch_size=20,
                       weight_decay=1.0)
energy = lambda x: (x**2).sum()
"""


def test_networks_start_by_themselves_and_energies_do_not(tmp_path, capsys):
    (tmp_path / "net.py").write_text(NETWORK)
    command = ["--method", "sghmc", "--step-size", "0.001", "--num-steps", "50", "--out", tmp_path / "run"]
    main([str(part) for part in ("sample", f"{tmp_path / 'net.py'}:network", "--num-chains", "2", *command)])
    assert "kernel" in capsys.readouterr().out
    command[-1] = tmp_path / "other"
    message = "`--init` must be given for an energy function; got nothing. Add --init 0 0"
    assert message in refused(capsys, "sample", f"{tmp_path / 'net.py'}:energy", *command)
    spread = refused(capsys, "sample", f"{tmp_path / 'net.py'}:network", "--spread", "1.0", *command)
    assert "`--spread` must be given together with --init" in spread
