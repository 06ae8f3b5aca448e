"""The command line as a user meets it."""

import json

import numpy as np
import pytest

import isotherm as iso
from isotherm.cli.main import main
from isotherm.samplers import METHODS
from isotherm_thesis.experiments import EXPERIMENTS

CONTOUR = ("csgld", "csghmc", "icsgld", "icsghmc", "picsgld", "awsgld")
FILE = """
import jax.numpy as jnp

def energy(x):
    return 0.5 * jnp.sum((x - 1.0) ** 2)

def broken(x):
    return x.nonsense

number = 3
"""


@pytest.fixture
def user_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def arguments(user_file, out, **options):
    given = {"method": "sgld", "num-steps": "200", "step-size": "0.1", "thinning": "10", **options}
    flags = [part for name, value in given.items() for part in (f"--{name}", *value.split())]
    return ["sample", f"{user_file}:energy", "--out", str(out), "--init", "0", "0", *flags]


def refused(capsys, *command):
    with pytest.raises(SystemExit) as stop:
        main([str(part) for part in command])
    assert stop.value.code == 2
    return " ".join(capsys.readouterr().err.split())


def test_list_prints_names(capsys):
    main(["list", "--json"])
    assert json.loads(capsys.readouterr().out) == {"methods": list(METHODS), "experiments": list(EXPERIMENTS)}
    main(["list"])
    assert "sghmc" in capsys.readouterr().out


@pytest.mark.parametrize("box", ["box=(-3.0,3.0)", "box=(-0.5,3.0,'reflect')"])
def test_sample_and_resume(user_file, tmp_path, capsys, box):
    main(arguments(user_file, tmp_path / "run", **{"num-chains": "2", "set": box, "temperature": "0.5"}))
    assert "x[0]" in capsys.readouterr().out
    assert {"trace.png", "density.png", "energy.png", "run.json"} <= {
        path.name for path in (tmp_path / "run").iterdir()
    }
    main(["resume", str(tmp_path / "run"), "--num-steps", "400"])
    main(
        arguments(
            user_file,
            tmp_path / "long",
            **{"num-steps": "400", "num-chains": "2", "set": box, "temperature": "0.5"},
        )
    )
    one, other = iso.load(tmp_path / "run"), iso.load(tmp_path / "long")
    np.testing.assert_array_equal(one.draws[:], other.draws[:])
    assert one.draws.shape == (2, 40, 2)
    assert ("num_reflected" in one.stats) == ("reflect" in box)


# Those that need data have none in an energy function, and `ksgld` needs the weights of the bins.
ALONE = [name for name in METHODS if "vr_" not in name and name != "ksgld"]
ONE_OF_A_KIND = ("psgld", "sghmc", "svgd", "cycsgld", "swag", "reghmc", "resgld", "deo_star_sgd", "icsgld", "awsgld")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in ONE_OF_A_KIND else pytest.mark.long) for name in ALONE]
)
def test_every_method_runs(user_file, tmp_path, name):
    options = {"method": name, "num-steps": "40", "spread": "1", "thinning": "1"}
    if name == "svgd":
        options["num-chains"] = "10"
    if name.startswith("cyc"):
        options["set"] = "cycle_length=20"
    if name.startswith("deo"):
        options["set"] = "step_size=(0.01,0.1)"
    if name in CONTOUR:
        options["set"] = "partition=(0.5,9.0,10)"
    main(arguments(user_file, tmp_path / name, **options))
    run = iso.load(tmp_path / name)
    assert run.num_draws > 0
    assert np.isfinite(run.draws[:]).all()
    assert run.config["sampler"]["name"] == name


def test_what_does_not_exist_or_run_is_refused(user_file, tmp_path, capsys):
    out = ["--method", "sgld", "--num-steps", "10", "--step-size", "0.1", "--init", "0", "--out", str(tmp_path / "x")]
    cases = {
        f"{user_file}:missing": "`potential` must be a name in mine.py; got 'missing'. The file has: broken, energy",
        "nothing.py:energy": "`potential` must be in a file that exists",
        "mine.txt": "`potential` must be of the form FILE.py:NAME",
        f"{user_file}:broken": "`energy` must be a function that can be evaluated at the start",
        f"{user_file}:number": "`potential` must be a potential or an energy function; got 3",
    }
    for reference, message in cases.items():
        assert message in refused(capsys, "sample", reference, *out)
    user_file.write_text("1 / 0")
    assert "which raised ZeroDivisionError" in refused(capsys, "sample", f"{user_file}:energy", *out)
    assert not (tmp_path / "x" / "run.json").exists()


def test_wrong_options_are_refused(user_file, tmp_path, capsys):
    out = tmp_path / "x"
    cases = [
        ({"method": "magic"}, "`method` must be one of sgd, msgd"),
        (
            {"set": "color=3"},
            "`--set color` must be an option of sgld; got 'color'. It takes: step_size, temperature, box.",
        ),
        ({"set": "box"}, "`--set` must be of the form NAME=VALUE"),
        ({"set": "box=__import__('os')"}, "`--set box` must be a word, or a literal"),
        ({"method": "cycsgld"}, "`method` must be given cycle_length; got cycsgld. Add --set cycle_length=VALUE."),
        ({"method": "svgd", "num-chains": "9"}, "`init` must be different for every chain"),
        ({"step-size": "-1"}, "`step_size` must be a finite real number above 0"),
    ]
    for options, message in cases:
        assert message in refused(capsys, *arguments(user_file, out, **options))


def test_resume_refuses_what_it_cannot_trust(user_file, tmp_path, capsys):
    assert "`folder` must be a folder of a run" in refused(capsys, "resume", tmp_path)
    iso.sample(
        lambda x: (x**2).sum(), iso.sgld(step_size=0.1), num_steps=5, init=np.zeros(2, np.float32), out=tmp_path / "p"
    )
    assert "It was started in Python: use iso.resume" in refused(capsys, "resume", tmp_path / "p")
    main(arguments(user_file, tmp_path / "run"))
    user_file.write_text(FILE + "\n# changed\n")
    assert "The file has changed since the run was started" in refused(capsys, "resume", tmp_path / "run")


def test_bench_says_what_is_missing(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "Run: pip install" in refused(capsys, "bench", "--peers")


def test_the_version_is_that_of_the_package(capsys):
    main(["--version"])
    assert capsys.readouterr().out == f"isotherm {iso.__version__}\n"


def test_every_method_and_experiment_has_an_aligned_line(capsys):
    main(["list"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert {line.split()[0] for line in lines} == set(METHODS) | set(EXPERIMENTS)
    starts = {len(line) - len(line[2:].lstrip().partition(" ")[2].lstrip()) for line in lines}
    assert len(starts) == 1
    assert all(len(line) > max(starts) + 10 for line in lines)


def test_a_missing_step_size_is_asked_for_by_the_name_of_its_option(tmp_path, capsys):
    (tmp_path / "well.py").write_text("def energy(x):\n    return (x**2).sum()\n")
    command = ["sample", f"{tmp_path / 'well.py'}:energy", "--method", "sgld", "--out", str(tmp_path / "run")]
    with pytest.raises(SystemExit):
        main([*command, "--num-steps", "10", "--init", "0"])
    message = "`--step-size` must be given for sgld; got nothing. Add --step-size VALUE"
    assert message in " ".join(capsys.readouterr().err.split())


def test_show_prints_json_for_other_programs(tmp_path, capsys):
    run = iso.sample(lambda x: (x**2).sum(), iso.sgld(0.1), num_steps=40, init=np.zeros(2), out=tmp_path / "run")
    main(["show", str(tmp_path / "run"), "--json"])
    shown = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    summary = run.summary()
    assert [row["mean"] for row in shown["rows"]] == pytest.approx([row.mean for row in summary.rows])
    assert [check["name"] for check in shown["checks"]] == [check.name for check in summary.checks]
    assert "one-chain" in [check["name"] for check in shown["checks"]]
    assert any(np.isnan(row.std_error) for row in summary.rows)
    assert any(row["std_error"] is None for row in shown["rows"])


def test_show_prints_runs_that_have_ended_and_others(tmp_path, capsys):
    run = iso.sample(
        lambda x: (x**2).sum(), iso.sgld(0.1), num_steps=500, num_chains=4, init=np.zeros(2), out=tmp_path / "run"
    )
    assert run.num_steps == 500
    main(["show", str(tmp_path / "run")])
    whole = capsys.readouterr().out
    assert "4 chains x 500 draws" in whole
    assert "Read at a checkpoint" not in whole
    (tmp_path / "run" / "finished.json").unlink()
    main(["show", str(tmp_path / "run")])
    assert "Read at a checkpoint" in capsys.readouterr().out


def test_minimize_prints_the_minimum_and_how_far_to_trust_it(tmp_path, capsys):
    (tmp_path / "wells.py").write_text(
        "import jax, jax.numpy as jnp\n"
        "def fun(x):\n    return 3.0 + jnp.sum((x - 0.7) ** 2 + 1 - jnp.cos(6 * (x - 0.7)))\n"
        "def noisy(x, key):\n    return fun(x) + 0.1 * jax.random.normal(key)\n"
    )

    def found(name, *options):
        main(["minimize", f"{tmp_path / 'wells.py'}:{name}", *options])
        return dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())

    end = found("fun", "--bounds", "-5.12", "5.12", "--dimension", "3", "--seed", "2")
    np.testing.assert_allclose([float(value) for value in end["x"].split()], 0.7, atol=1e-5)
    assert float(end["fun"]) == 3.0
    assert end["success"] == "False"
    assert "2 searchers with independent starts found the same lowest value" in end["message"]
    assert "as --target" in end["message"]
    end = found("fun", "--bounds", "-5.12", "5.12", "--dimension", "3", "--seed", "2", "--target", "3.001")
    assert end["success"] == "True"
    end = found("fun", "--bounds", "-5", "5", "0", "1", "--init", "1", "0.5", "--budget", "40", "--target", "1")
    assert end["success"] == "False"
    assert int(end["evaluations"]) <= 40
    assert end["message"].endswith("The target was not reached. Raise --budget.")
    end = found("noisy", "--init", "0.5", "--scale", "2", "--budget", "500")
    assert abs(float(end["fun"]) - 3.0) < 0.1
    assert float(end["std"].removeprefix("error").strip()) < 0.1


def test_minimize_refuses_bounds_that_are_no_pairs_and_files_without_the_function(user_file, capsys):
    cases = {
        (): "`--bounds` must be given if there is no --init; got neither.",
        ("--bounds", "1", "2", "3"): "`--bounds` must be LOW HIGH for every coordinate; got 3 numbers.",
        ("--init", "0", "--dimension", "2"): "`--dimension` must be positive, and given with one pair LOW HIGH",
        ("--bounds", "2", "1"): "--bounds must be (low, high) for every coordinate, finite, low below high",
    }
    for options, message in cases.items():
        assert message in refused(capsys, "minimize", f"{user_file}:energy", *options)
    missing = refused(capsys, "minimize", f"{user_file}:cost", "--init", "0")
    assert "`fun` must be a name in mine.py; got 'cost'. The file has: broken, energy" in missing


@pytest.mark.parametrize(("command", "has_folder"), [("sample", True), ("minimize", False)])
def test_an_interrupt_speaks_of_resuming_only_where_there_is_a_folder(
    user_file, tmp_path, capsys, monkeypatch, command, has_folder
):
    def interrupted(*_):
        raise KeyboardInterrupt

    module = {"sample": "runs", "minimize": "minimize"}[command]
    monkeypatch.setattr(f"isotherm.cli.{module}.{command.capitalize()}.run", interrupted)
    tail = {"sample": arguments(user_file, tmp_path / "x")[1:], "minimize": [f"{user_file}:energy", "--init", "0"]}
    with pytest.raises(SystemExit) as stop:
        main([command, *tail[command]])
    assert stop.value.code == 130
    assert ("isotherm resume DIR" in capsys.readouterr().err) == has_folder
