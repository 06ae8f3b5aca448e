"""`isotherm demo`: five samplers on the 25-mode landscape, compared with the truth.

Step sizes are not tuned: 0.003 as in the thesis, larger for hot replicas, 0.3 for SVGD. The experiments `modes25-icsgld` and
`modes25-deo` tune them. DEO* explores by gradient noise, which is low here.
"""

import dataclasses
import pathlib
import time
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from isotherm.api import sample
from isotherm.contour import uniform_partition
from isotherm.demo.result import Row, masses_in_box, write_result
from isotherm.foundation.terminal import PlainConsole
from isotherm.potentials import with_noise
from isotherm.run import Run
from isotherm.samplers import deo_star_sgd, icsgld, resgld, sgld, svgd
from isotherm.samplers.sampler import AnySampler
from isotherm.targets import Target, modes25

# Share of its true mass with which a mode counts as found.
_FOUND = 0.1


@dataclasses.dataclass(frozen=True)
class Config:
    """Sizes of the demonstration, and the standard deviation of the noise on energies and gradients.

    Every method has `num_chains * num_steps` gradients per run; SVGD and DEO* have more chains and fewer iterations.
    """

    num_steps: int = 80_000
    num_chains: int = 5
    num_runs: int = 10
    thinning: int = 20
    burn_in: int = 1_000
    noise: float = 0.25


def methods(target: Target, config: Config) -> dict[str, tuple[AnySampler, dict[str, Any]]]:
    """Samplers by name, each with the settings of its run that differ from `config`."""
    box, total = target.box, config.num_steps * config.num_chains
    rungs = np.arange(1.0, config.num_chains + 1)
    num_particles, num_replicas = 50, 16
    steps = total // num_particles
    particles = {"num_chains": num_particles, "num_steps": steps, "burn_in": steps - 1, "thinning": 1}
    ladder = {"num_chains": None, "num_ladders": 1}
    explorers = {**ladder, "num_steps": total // num_replicas, "burn_in": config.burn_in // 4}
    return {
        "SGLD": (sgld(step_size=3e-3, box=box), {}),
        "SVGD": (svgd(step_size=0.3, box=box), particles),
        "DEO*": (deo_star_sgd((3e-3, 0.6), num_replicas=num_replicas), explorers),
        "reSGLD": (resgld(tuple(1e-3 * rungs), temperatures=tuple(rungs), box=box), ladder),
        "ICSGLD": (icsgld(3e-3, partition=uniform_partition(-3.5, 7.5, 88), box=box), {}),
    }


def run_demo(
    out: pathlib.Path, config: Config | None = None, seed: int = 0, console: Console | None = None
) -> list[Row]:
    """Sample, print the table, and write `result.json`, `landscape.png` and `report.html` to `out`."""
    began = time.perf_counter()
    config = config or Config()
    console = console or PlainConsole()
    target = modes25()
    potential = with_noise(target.potential, energy_scale=config.noise, gradient_scale=config.noise)
    settings = {name: value for name, value in dataclasses.asdict(config).items() if name != "noise"}
    rows: list[Row] = []
    runs: dict[str, Run] = {}
    for name, (sampler, options) in methods(target, config).items():
        console.print(f"{name}: sampling ...", soft_wrap=True)
        runs[name] = sample(potential, sampler, seed=seed, init=target.init, **(settings | options))
        rows += _rows(name, runs[name], target)
    seconds = time.perf_counter() - began
    cells: dict[str, list[str]] = {}
    for row in rows:
        text = f"{row.ours / 1e6:.2f} M" if row.metric == "steps/s" else row.text
        cells.setdefault(row.method, []).append(text)
    console.print(_table(cells, config))
    out.mkdir(parents=True, exist_ok=True)
    picture = out / "landscape.png"
    # Imported late, because Matplotlib is slow to load.
    from isotherm.demo.plots import draw_maps

    draw_maps(runs, target).savefig(picture, dpi=110)
    _write_report(out / "report.html", cells, config, seconds)
    write_result(out / "result.json", "demo", "full", rows, dataclasses.asdict(config), seed, seconds)
    console.print(f"{seconds:.1f} s. Wrote {out / 'report.html'}, {picture} and {out / 'result.json'}.", soft_wrap=True)
    return rows


def _rows(name: str, run: Run, target: Target) -> list[Row]:
    masses = [masses_in_box(np.asarray(one.draws), np.asarray(one.log_weights), target) for one in run.split_runs()]
    found = [float(np.sum(mass > _FOUND * target.mode_masses)) for mass in masses]
    replicas = run.stats["num_swaps"].shape[-1] + 1 if "num_swaps" in run.stats else run.draws.shape[1]
    gradients = run.num_steps * len(masses) * replicas
    return [
        Row.of_runs(name, "total variation", [target.total_variation(mass) for mass in masses]),
        Row.of_runs(name, "modes found", found),
        Row(name, "steps/s", None, gradients / run.seconds, None, 1),
    ]


def _table(cells: dict[str, list[str]], config: Config) -> Table:
    table = Table(title=f"25 modes, noise {config.noise}, {config.num_runs} runs, equal gradients")
    for column in ("method", "total variation", "modes found (of 25)", "steps/s"):
        table.add_column(column, justify="left" if column == "method" else "right")
    for name, row in cells.items():
        table.add_row(name, *row)
    return table


def _write_report(path: pathlib.Path, cells: dict[str, list[str]], config: Config, seconds: float) -> None:
    lines = "".join(f"<tr><td>{name}{''.join(f'<td>{cell}' for cell in row)}</tr>" for name, row in cells.items())
    settings = ", ".join(f"{key} {value}" for key, value in dataclasses.asdict(config).items())
    path.write_text(
        f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>isotherm demo</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}}
table{{border-collapse:collapse}}td,th{{padding:.3rem 1rem;border-bottom:1px solid #ccc;text-align:right}}
td:first-child,th:first-child{{text-align:left}}img{{max-width:100%}}</style>
<h1>25 modes</h1><p>Every method has the same number of gradients. Total variation is half the absolute difference between
estimated and true probabilities of the 25 cells; a mode is found when its cell holds a tenth of its true mass. Speed is
gradients per second over all chains and runs. Mean and standard error over {config.num_runs} runs.</p>
<table><tr><th>method<th>total variation<th>modes found<th>steps/s</tr>{lines}</table>
<p><img src="landscape.png" alt="Densities: truth and each method"></p>
<p>Settings: {settings}. {seconds:.1f} s.</p></html>
"""
    )
