"""`isotherm resume`."""

import dataclasses
import pathlib
from typing import Any

import tyro
from rich.console import Console

from isotherm.cli.counts import Count
from isotherm.cli.show import show
from isotherm.foundation.errors import check_folder, refuse


@dataclasses.dataclass(frozen=True)
class Resume:
    """Continue a run of `isotherm sample` that was stopped. Runs the file it was started with, if that has not changed."""

    folder: tyro.conf.Positional[pathlib.Path]
    """The folder that was given as --out."""
    num_steps: Count | None = None
    """A new, larger number of iterations."""

    def run(self, console: Console) -> None:
        """Go on."""
        from isotherm.api import resume
        from isotherm.api.sample import read_configuration
        from isotherm.cli.user_file import build_sampler, read_file, run_file
        from isotherm.samplers.sampler import as_potential

        folder = check_folder("folder", self.folder, "Give the folder that was passed as --out.")
        config, _ = read_configuration(folder)
        source = config["source"]
        if source is None:
            refuse("folder", "a run of `isotherm sample`", str(folder), "It was started in Python: use iso.resume.")
        _check_source(source, folder)
        file = read_file(f"{source['file']}:{source['name']}", "potential")
        if file.source["sha256"] != source["sha256"]:
            remedy = "The file has changed since the run was started: put it back, or start a new run."
            refuse("folder", f"one whose {source['file']} is unchanged", "another checksum", remedy)
        options = {name: tuple(v) if isinstance(v, list) else v for name, v in source["options"].items()}
        sampler = build_sampler(source["method"], options)
        # The folder says which file: whoever resumes a folder of somebody else's should see it before it runs.
        console.print(f"Running {file.path} for `{file.name}`, as {folder / 'run.json'} says.", soft_wrap=True)
        potential = as_potential(run_file(file, "potential"))
        show(resume(folder, potential, sampler, num_steps=self.num_steps), folder, console)


def _check_source(source: Any, folder: pathlib.Path) -> None:
    """Refuse what `isotherm sample` cannot have written."""
    kinds = {"file": str, "name": str, "sha256": str, "method": str, "options": dict}
    if not isinstance(source, dict) or not all(isinstance(source.get(name), kind) for name, kind in kinds.items()):
        rule, remedy = "a run of `isotherm sample`", "Its run.json is damaged: start a new run."
        refuse("folder", rule, f"{folder}, which does not say what was run", remedy)
