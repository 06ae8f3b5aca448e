"""`isotherm slurm`: a batch script for Slurm that continues over time limits, preemption and lost nodes."""

import dataclasses
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
from typing import Annotated, ClassVar

import tyro
from rich.console import Console

from isotherm.cli.counts import Count
from isotherm.foundation.errors import check_integer, refuse

_SCRIPT = """\
#!/bin/bash
{options}

# {grace} s before the time limit Slurm sends USR1 to this shell: the tasks save and stop, and the job queues again. The same
# command then continues the run, as it does after a preemption or a lost node. A cancelled job (TERM) saves, stops and stays ended.
is_out_of_time=no
stop() {{
    is_out_of_time=yes
    scancel --signal=TERM "$SLURM_JOB_ID"
}}
trap stop USR1

srun {srun}{command} &
task=$!
wait "$task"
status=$?
if [ "$is_out_of_time" = yes ]; then # The signal ended the wait.
    wait "$task"
    status=$?
fi
if [ "$is_out_of_time" = yes ] && [ "$status" -eq 143 ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt {requeues} ]; then
    echo "Time limit: queueing again to continue (restart $((${{SLURM_RESTART_COUNT:-0}} + 1)) of at most {requeues})."
    scontrol requeue "$SLURM_JOB_ID" && sleep 60 # Slurm ends this shell.
fi
exit "$status"
"""


@dataclasses.dataclass(frozen=True)
class Slurm:
    """Print or submit a Slurm script that resumes a run until it is done, for a command such as `isotherm sample ...`."""

    # Nothing is compiled here.
    compiles: ClassVar[bool] = False

    command: tyro.conf.Positional[tuple[str, ...]]
    """The command, after --. A script of your own must continue when it is run again, as iso.sample(out=..., resume=True) does."""
    nodes: Count = 1
    """Number of nodes."""
    tasks_per_node: Count = 1
    """Processes on each node."""
    time: str = "1:00:00"
    """Time limit of one turn, as for sbatch: minutes, H:MM:SS or D-HH:MM:SS."""
    partition: str | None = None
    """Partition; by default that of the cluster."""
    gpus_per_node: Count | None = None
    """GPUs on each node, shared out between its processes."""
    cpus_per_task: Count | None = None
    """Processor cores of each process."""
    job_name: str = "isotherm"
    """Name of the job."""
    output: pathlib.Path = pathlib.Path("isotherm-%j.log")
    """Log file; %j is the number of the job."""
    grace: Count = 90
    """Seconds before the time limit at which the run saves and stops."""
    max_requeues: Count = 100
    """Maximum number of turns after the first."""
    set: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE")] = ()
    """Further options of sbatch, such as --set account=physics."""
    submit: bool = False
    """Submit the script with sbatch, instead of printing it."""

    def run(self, console: Console) -> None:
        """Print the script, or submit it."""
        script = self._script()
        if not self.submit:
            sys.stdout.write(script)
            return
        if shutil.which("sbatch") is None:
            refuse("--submit", "given on a machine with Slurm", "no sbatch", "Leave it out to print the script.")
        done = subprocess.run(["sbatch", "--parsable"], input=script, text=True, capture_output=True, check=False)
        if done.returncode:
            raise OSError(f"sbatch refused the script: {done.stderr.strip()}")
        job = done.stdout.strip().partition(";")[0]
        log = str(self.output).replace("%j", job)
        console.print(f"Submitted job {job}. Its log: {log}. Stop it with: scancel {job}", soft_wrap=True)

    def _script(self) -> str:
        counts = {"nodes": self.nodes, "tasks-per-node": self.tasks_per_node, "grace": self.grace}
        counts |= {"gpus-per-node": self.gpus_per_node, "cpus-per-task": self.cpus_per_task}
        for name, value in counts.items():
            if value is not None:
                check_integer(f"--{name}", value, 1, "Give a number, such as 2.")
        check_integer("--max-requeues", self.max_requeues, 0, "Give a number, such as 100.")
        if not re.fullmatch(r"\d+|(\d+-)?\d+(:\d+){0,2}", self.time):
            refuse("--time", "minutes, H:MM:SS or D-HH:MM:SS", repr(self.time), "Write --time 8:00:00, say.")
        options = {"job-name": self.job_name, "nodes": self.nodes, "ntasks-per-node": self.tasks_per_node}
        options |= {"time": self.time, "output": self.output, "open-mode": "append", "signal": f"B:USR1@{self.grace}"}
        options |= {"partition": self.partition, "gpus-per-node": self.gpus_per_node}
        options |= {"cpus-per-task": self.cpus_per_task} | dict(_pair(pair) for pair in self.set)
        lines = [f"#SBATCH --{name}={value}" for name, value in options.items() if value is not None]
        for line in lines:
            if "\n" in line:
                refuse("an option of sbatch", "one line", repr(line), "Remove the line break.")
        srun = "--kill-on-bad-exit=1 " + "--label " * (self.nodes * self.tasks_per_node > 1)
        if self.cpus_per_task is not None:
            srun += f"--cpus-per-task={self.cpus_per_task} "  # srun does not take it from sbatch.
        texts = {"options": "\n".join([*lines, "#SBATCH --requeue"]), "srun": srun, "command": self._command()}
        return _SCRIPT.format(**texts, grace=self.grace, requeues=self.max_requeues)

    def _command(self) -> str:
        """The command, in a form that continues when it is run again."""
        if not self.command:
            remedy = "isotherm slurm -- isotherm sample FILE.py:energy --init 0 0 --out my-run, say."
            refuse("command", "given after --", "nothing", remedy)
        words = list(self.command)
        is_sample = words[1:2] == ["sample"] and pathlib.Path(words[0]).name == "isotherm"
        if is_sample and "--resume" not in words:
            words.append("--resume")
        return shlex.join(words)


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.lstrip("-").partition("=")
    if not separator or not name:
        refuse("--set", "of the form NAME=VALUE", repr(text), "Write --set account=physics, say.")
    return name, value
