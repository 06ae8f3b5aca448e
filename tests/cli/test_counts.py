"""Counts on the command line."""

import pytest

import isotherm as iso
from isotherm.cli.main import main


def command(folder, num_steps, thinning="1e1"):
    (folder / "mine.py").write_text("def energy(x):\n    return (x**2).sum()\n")
    options = ["--method", "sgld", "--step-size", "0.1", "--init", "0", "0", "--out", str(folder / "run")]
    return ["sample", f"{folder / 'mine.py'}:energy", *options, "--num-steps", num_steps, "--thinning", thinning]


@pytest.mark.parametrize(
    ("text", "number"), [("2e2", 200), ("200", 200), ("2.5e2", 250), ("2_00", 200), ("200.0", 200)]
)
def test_whole_numbers_are_counts_in_any_form(tmp_path, text, number):
    main(command(tmp_path, text))
    run = iso.load(tmp_path / "run")
    assert (run.num_steps, run.num_draws) == (number, number // 10)


@pytest.mark.parametrize("text", ["2.5", "1e-3", "nan", "inf", "many"])
def test_others_are_refused(tmp_path, text, capsys):
    with pytest.raises(SystemExit) as stop:
        main(command(tmp_path, text))
    assert stop.value.code == 2
    assert "--num-steps" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
