"""Installs what the tests on clusters start: Slurm, munge and Open MPI, from Debian's packages."""

import os
import shutil
import subprocess

PROGRAMS = {"slurmctld": "slurm-wlm", "munged": "munge", "mpirun": "openmpi-bin", "ip": "iproute2"}


def main():
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    packages = [package for program, package in PROGRAMS.items() if shutil.which(program, path=path) is None]
    if not packages:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(f"Tests that need {', '.join(packages)} will be skipped: installing them needs root and apt-get.")
        return
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update"], env=environment, check=False)
    install = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    if subprocess.run(install, env=environment, check=False).returncode:
        print(f"Tests that need {', '.join(packages)} will be skipped: apt-get could not install them.")


if __name__ == "__main__":
    main()
