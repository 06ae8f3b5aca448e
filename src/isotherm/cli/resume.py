"""`isotherm resume`."""

import dataclasses
import pathlib

import tyro
from rich.console import Console

from isotherm.cli.show import show
from isotherm.foundation.errors import refuse


@dataclasses.dataclass(frozen=True)
class Resume:
    """Continue a run of `isotherm sample` that was stopped. Runs the file it was started with, if that has not changed."""

    folder: tyro.conf.Positional[pathlib.Path]
    """The folder that was given as --out."""
    num_steps: int | None = None
    """A new, larger number of iterations."""

    def run(self, console: Console) -> None:
        """Go on."""
        from isotherm.cli.user_file import build_sampler, load_potential
        from isotherm.sampling import resume
        from isotherm.sampling.resume import read_configuration

        config, _ = read_configuration(self.folder)
        source = config["source"]
        if source is None:
            refuse(
                "folder", "a run of `isotherm sample`", str(self.folder), "It was started in Python: use iso.resume."
            )
        potential, now = load_potential(f"{source['file']}:{source['name']}")
        if now["sha256"] != source["sha256"]:
            remedy = "The file has changed since the run was started: put it back, or start a new run."
            refuse("folder", f"one whose {source['file']} is unchanged", "another checksum", remedy)
        options = {name: tuple(v) if isinstance(v, list) else v for name, v in source["options"].items()}
        sampler = build_sampler(source["method"], options)
        show(resume(self.folder, potential, sampler, num_steps=self.num_steps), self.folder, console)
