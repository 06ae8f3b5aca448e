"""`isotherm launch` and `isotherm slurm`, and what they need of other commands. Processes are real."""

import io
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import isotherm as iso
from isotherm.cli.launch import Launch
from isotherm.cli.main import main
from isotherm.foundation.terminal import PlainConsole
from tests.cli.test_cli import FILE, arguments, refused

COMMAND = [sys.executable, "-c", "from isotherm.cli.main import main; main()"]
PYTHON = sys.executable


@pytest.fixture
def user_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def launch(*words, **options):
    return subprocess.Popen(
        [*COMMAND, "launch", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        **options,
    )


def test_processes_of_a_launch_compute_together(tmp_path):
    code = (
        "import isotherm.distributed as d; d.initialize(timeout=60); import jax; "
        "print(d.process_index(), jax.process_count(), jax.local_device_count(), jax.device_count(), d.agree('x', 'a'))"
    )
    logs = tmp_path / "logs"
    process = launch("-n", 2, "--devices-per-process", 3, "--logs", logs, "--", PYTHON, "-c", code)
    out, errors = process.communicate(timeout=90)
    assert process.returncode == 0, errors + out
    assert {"[0] 0 2 3 6 x", "[1] 1 2 3 6 x"} <= set(out.splitlines())
    assert (logs / "process-0.log").read_text().splitlines()[-1] == "0 2 3 6 x"
    assert (logs / "process-1.log").read_text().splitlines()[-1] == "1 2 3 6 x"


def test_one_that_fails_ends_all(tmp_path):
    script = 'if [ $ISOTHERM_PROCESS_ID = 1 ]; then echo "bad luck"; exit 7; fi; sleep 60'
    began = time.monotonic()
    process = launch("-n", 3, "--logs", tmp_path, "--", "sh", "-c", script)
    out, errors = process.communicate(timeout=50)
    assert time.monotonic() - began < 20
    assert process.returncode == 7
    assert out == "[1] bad luck\n"
    told = "Process 1 of 3 ended first with exit status 7."
    assert f"{told} Its log: {tmp_path / 'process-1.log'}" in errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_all(number):
    code = (
        "import signal, sys, time\n"
        "def end(number, _): print('got', signal.Signals(number).name); sys.exit(0)\n"
        "for each in (signal.SIGINT, signal.SIGTERM): signal.signal(each, end)\n"
        "print('ready'); time.sleep(30)"
    )
    process = launch("--", PYTHON, "-c", code)
    assert process.stdout is not None
    assert {process.stdout.readline() for _ in range(2)} == {"[0] ready\n", "[1] ready\n"}
    process.send_signal(number)
    out, _ = process.communicate(timeout=20)
    assert sorted(out.splitlines()) == [f"[0] got {number.name}", f"[1] got {number.name}"]
    assert process.returncode == 0


def test_a_terminal_gets_a_panel_for_each(tmp_path):
    file = io.StringIO()
    console = PlainConsole(file=file, force_terminal=True, width=60)
    with pytest.raises(SystemExit) as stop:
        Launch(command=("sh", "-c", "echo hello; exit $ISOTHERM_PROCESS_ID"), num_processes=2).run(console)
    assert stop.value.code == 1
    shown = file.getvalue()
    assert "process 0: done" in shown
    assert "process 1: exit status 1" in shown
    assert "hello" in shown


def test_wrong_launches_are_refused(capsys, tmp_path):
    cases = {
        ("launch", "-n", "0", "--", "true"): "`--num-processes` must be an integer of at least 1; got 0",
        (
            "launch",
            "--devices-per-process",
            "0",
            "--",
            "true",
        ): "`--devices-per-process` must be an integer of at least 1",
        ("launch", "-n", "2"): "`command` must be given after --; got nothing",
        ("launch", "--", "no-such-program"): "`command` must be a program that can be started; got 'no-such-program'",
    }
    for words, message in cases.items():
        assert message in refused(capsys, *words)


def test_processes_of_sample_need_their_place(capsys, user_file, tmp_path):
    words = arguments(user_file, tmp_path / "run")
    cases = {
        ("--num-processes", "2"): "`--coordinator` must be given; got nothing, and no scheduler was found.",
        ("--coordinator", "a:1", "--num-processes", "2"): "`--process-id` must be given; got nothing",
        ("--coordinator", "here"): "`--coordinator` must be of the form HOST:PORT; got 'here'",
    }
    for options, message in cases.items():
        assert message in refused(capsys, *words, *options)
    assert "`--num-processes` must be an integer of at least 1; got 0" in refused(
        capsys, "resume", tmp_path, "--num-processes", "0"
    )


def test_sample_with_resume_can_be_run_again(user_file, tmp_path, capsys):
    def words(num_steps):
        return [*arguments(user_file, tmp_path / "run", **{"num-steps": str(num_steps)}), "--resume"]

    main(words(200))
    first = iso.load(tmp_path / "run").draws[:]
    main(words(400))
    second = iso.load(tmp_path / "run").draws[:]
    assert (first.shape[1], second.shape[1]) == (20, 40)
    np.testing.assert_array_equal(first, second[:, :20])
    assert "Pass `resume=True` to continue it" in refused(capsys, *words(400)[:-1])
    user_file.write_text(FILE + "\n# changed\n")
    assert "`--out` must be one whose" in refused(capsys, *words(400))


SAMPLE = ["isotherm", "sample", "mine.py:energy", "--init", "0", "0", "--out", "my run"]


def script(capsys, *words):
    main(["slurm", *words])
    return capsys.readouterr().out


def test_a_slurm_script_runs_again_until_it_is_done(capsys, tmp_path):
    text = script(capsys, "--nodes", "2", "--time", "8:00:00", "--grace", "120", "--", *SAMPLE)
    assert text.startswith("#!/bin/bash\n#SBATCH --job-name=isotherm\n#SBATCH --nodes=2\n")
    for line in ("--time=8:00:00", "--signal=B:USR1@120", "--open-mode=append", "--requeue", "--ntasks-per-node=1"):
        assert f"\n#SBATCH {line}\n" in text
    # All options precede the first command, or Slurm ignores them.
    assert text.rindex("#SBATCH") < text.index("is_out_of_time=no")
    run = "srun --kill-on-bad-exit=1 --label isotherm sample mine.py:energy --init 0 0 --out 'my run' --resume &"
    assert f"\n{run}\n" in text
    assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0
    assert script(capsys, "--", *SAMPLE, "--resume").count("--resume") == 1
    assert "--resume" not in script(capsys, "--", "python", "mine.py")
    assert "--label" not in script(capsys, "--", *SAMPLE)
    more = script(capsys, "--set", "account=physics", "constraint=a100", "--cpus-per-task", "4", "--", "true")
    assert "#SBATCH --account=physics\n#SBATCH --constraint=a100\n" in more
    assert "--cpus-per-task=4 true &" in more


# A stand-in for srun: it sends the shell the signal of the time limit, and ends with a status.
SRUN = '#!/bin/sh\n[ "$1" = --kill-on-bad-exit=1 ] && shift\n{signal}\nsleep 0.3\nexit {status}\n'


@pytest.mark.parametrize(
    ("sends", "status", "restarts", "is_requeued"),
    [(True, 143, 0, True), (True, 0, 0, False), (True, 2, 0, False), (False, 143, 0, False), (True, 143, 100, False)],
)
def test_a_script_queues_again_only_at_its_time_limit(capsys, tmp_path, sends, status, restarts, is_requeued):
    text = script(capsys, "--", "true").replace("sleep 60", "true")
    told = "kill -USR1 $PPID" if sends else ":"
    programs = {"srun": SRUN.format(signal=told, status=status), "scontrol": "#!/bin/sh\necho scontrol $@\n"}
    for name, content in (programs | {"scancel": "#!/bin/sh\necho scancel $@\n"}).items():
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o755)
    own = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": str(restarts)}
    done = subprocess.run(
        ["bash"], input=text, text=True, capture_output=True, env=os.environ | own, timeout=20, check=False
    )
    assert done.returncode == status, done.stderr
    assert ("scancel --signal=TERM 7" in done.stdout) == sends
    assert ("scontrol requeue 7" in done.stdout) == is_requeued


def test_wrong_slurm_options_are_refused(capsys, monkeypatch):
    cases = {
        ("--nodes", "0", "--", "true"): "`--nodes` must be an integer of at least 1; got 0",
        ("--time", "soon", "--", "true"): "`--time` must be minutes, H:MM:SS or D-HH:MM:SS; got 'soon'",
        ("--set", "account", "--", "true"): "`--set` must be of the form NAME=VALUE; got 'account'",
        ("--job-name", "a\nb", "--", "true"): "`an option of sbatch` must be one line",
        ("--nodes", "1"): "`command` must be given after --; got nothing",
        ("--max-requeues", "-1", "--", "true"): "`--max-requeues` must be an integer of at least 0; got -1",
    }
    for words, message in cases.items():
        assert message in refused(capsys, "slurm", *words)
    monkeypatch.setenv("PATH", "/nowhere")
    assert "`--submit` must be given on a machine with Slurm; got no sbatch" in refused(
        capsys, "slurm", "--submit", "--", "true"
    )


def test_sbatch_gets_the_script(capsys, tmp_path, monkeypatch):
    (tmp_path / "sbatch").write_text(
        f'#!/bin/sh\ncat > {tmp_path}/script\n[ "$1" = --parsable ] && echo "812;cluster"\n'
    )
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    main(["slurm", "--submit", "--", *SAMPLE])
    told = " ".join(capsys.readouterr().out.split())
    assert told == "Submitted job 812. Its log: isotherm-812.log. Stop it with: scancel 812"
    assert re.search(r"^srun .*--resume &$", (tmp_path / "script").read_text(), re.MULTILINE)
    (tmp_path / "sbatch").write_text("#!/bin/sh\necho 'invalid partition' >&2\nexit 1\n")
    assert "sbatch refused the script: invalid partition" in refused(capsys, "slurm", "--submit", "--", "true")
