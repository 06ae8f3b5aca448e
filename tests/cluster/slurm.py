"""A Slurm cluster of two nodes, on the hosts of `hosts.py`: munged, slurmctld and two slurmd of Debian's packages."""

import contextlib
import os
import shutil
import subprocess
import time

from tests.cluster import hosts

_CONFIGURATION = """
ClusterName=isotherm
SlurmctldHost={head}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# A requeued job waits until its credential has expired, by default for two minutes.
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0
MpiDefault=none
ReturnToService=2
SlurmdTimeout=300
KillWait=10
OverTimeLimit=0
InactiveLimit=0
{nodes}
PartitionName=main Nodes={names} Default=YES MaxTime=INFINITE State=UP
"""
_PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch")


def missing():
    """Why there can be no cluster, in a line; None if there can."""
    absent = [name for name in _PROGRAMS if shutil.which(name, path=_path()) is None]
    return f"needs {', '.join(absent)}: apt-get install slurm-wlm munge" if absent else hosts.missing()


def _path():
    return os.environ["PATH"] + ":/usr/sbin:/sbin"


class Cluster:
    """Commands on the head node."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": _path()}

    def start(self, *words, **options):
        return subprocess.Popen(hosts.command(hosts.HEAD, *words), env=self.environment, **options)

    def run(self, *words, timeout=120, **options):
        """Output and exit status of a command."""
        options = {"capture_output": True, "text": True, "env": self.environment, **options}
        return subprocess.run(hosts.command(hosts.HEAD, *words), timeout=timeout, check=False, **options)

    def state(self, job):
        """State of a job, such as RUNNING."""
        shown = self.run("scontrol", "show", "job", job).stdout
        return shown.partition("JobState=")[2].split(" ")[0].strip()

    def wait(self, job, *states, timeout=90.0):
        """Wait for a state of a job; returns the seconds that it took."""
        began = time.monotonic()
        while (state := self.state(job)) not in states:
            if time.monotonic() - began > timeout:
                raise TimeoutError(f"job {job} is {state}, not {states}: {self.run('squeue', '-l').stdout}")
            time.sleep(0.5)
        return time.monotonic() - began


@contextlib.contextmanager
def cluster(folder):
    """The cluster, until the end of the context."""
    made = Cluster(folder)
    with hosts.hosts(), contextlib.ExitStack() as stack:
        (folder / "state").mkdir()
        for node in hosts.NODES:
            (folder / f"spool-{node}").mkdir()
        nodes = [f"NodeName={name} NodeAddr={hosts.ADDRESSES[name]} CPUs=4 State=UNKNOWN" for name in hosts.NODES]
        texts = {"folder": folder, "nodes": "\n".join(nodes), "names": ",".join(hosts.NODES)}
        (folder / "slurm.conf").write_text(_CONFIGURATION.format(head=hosts.HEAD, **texts))
        (folder / "munge.key").write_bytes(os.urandom(1024))
        (folder / "munge.key").chmod(0o600)
        folder.chmod(0o755)
        munged = ["munged", "--foreground", "--force", f"--key-file={folder}/munge.key"]
        munged += [f"--socket={folder}/munge.socket", f"--pid-file={folder}/munge.pid", f"--seed-file={folder}/seed"]
        munged += [f"--log-file={folder}/munge.log"]
        daemons = [(hosts.HEAD, munged), (hosts.HEAD, ["slurmctld", "-D"])]
        daemons += [(node, ["slurmd", "-D", "-N", node]) for node in hosts.NODES]
        for host, words in daemons:
            log = stack.enter_context((folder / f"{host}-{words[0]}.out").open("wb"))
            started = subprocess.Popen(
                hosts.command(host, *words), env=made.environment, stdout=log, stderr=log, start_new_session=True
            )
            stack.callback(_end, started)
            time.sleep(0.5)
        _wait_for_nodes(made)
        yield made
        made.run("scancel", "--user=root", "--signal=KILL", "--full")
        made.run("scancel", "--user=root")


def _wait_for_nodes(made):
    deadline = time.monotonic() + 60
    while made.run("sinfo", "-h", "-N", "-o", "%T").stdout.split() != ["idle"] * len(hosts.NODES):
        if time.monotonic() > deadline:
            raise TimeoutError(made.run("sinfo", "-N", "-l").stdout + (made.folder / "slurmctld.log").read_text())
        time.sleep(0.5)


def _end(process):
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
