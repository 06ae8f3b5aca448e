"""How the limit of AWSGLD's displacement changes its hitting times: the thesis has none, and `ten-functions` chose 0.3 and 1.

Functions and settings are those of `ten-functions`. With a limit of ten widths of the domain moves are practically free.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from isotherm.demo.result import Row
from isotherm_thesis.experiments import ten_functions
from isotherm_thesis.experiments.figures import page, styled
from isotherm_thesis.experiments.reproduce import Outcome
from isotherm_thesis.functions import ten_functions as all_functions

TITLE = "AW-10 with other limits of its displacement: thousands of iterations until the target is hit"


@dataclasses.dataclass(frozen=True)
class Config:
    """What is varied.

    Attributes:
        num_steps: the most iterations.
        num_runs: independent repeats; the thesis has 10.
        functions: which of the ten.
        limits: of displacements, in widths of the domain.
    """

    num_steps: int = 100_000
    num_runs: int = 10
    functions: tuple[str, ...] = ("Griewank", "Rosenbrock", "Powell", "Dixon-Price", "Levy")
    limits: tuple[float, ...] = (0.1, 0.3, 1.0, 10.0)


FULL = Config()
QUICK = Config(num_steps=5_000, num_runs=3, functions=("Powell",), limits=(0.3, 1.0))


def run(config: Config, seed: int, log: Callable[[str], None]) -> Outcome:
    """SGLD at its better temperature, then AW-10 with every limit."""
    rows: list[Row] = []
    for function in (each for each in all_functions() if each.name in config.functions):
        log(function.name)
        best = "SGLD, high" if function.name == "Levy" else "SGLD, low"
        found = ten_functions.hits_of(function, ten_functions.sampler_of(best, function), config, seed)
        rows += ten_functions.rows_of_hits(f"{function.name}, {best}", found, config, None)
        for limit in config.limits:
            sampler = ten_functions.sampler_of("AW-10", function, limit)
            found = ten_functions.hits_of(function, sampler, config, seed)
            rows += ten_functions.rows_of_hits(f"{function.name}, AW-10, limit {limit:g}", found, config, None)
    return Outcome(rows, {"limits": _draw(rows, config)})


@styled
def _draw(rows: list[Row], config: Config) -> Any:
    figure, ((axis,),) = page(1, 1, 3.2)
    times = {row.method: row for row in rows if row.metric.startswith("thousands")}
    for number, name in enumerate(config.functions):
        found = [times[f"{name}, AW-10, limit {limit:g}"] for limit in config.limits]
        axis.errorbar(
            config.limits,
            [row.ours for row in found],
            [row.std_error or 0.0 for row in found],
            fmt="o-",
            color=f"C{number}",
            label=name,
        )
        plain = next(row for method, row in times.items() if method.startswith(f"{name}, SGLD"))
        axis.axhline(plain.ours, color=f"C{number}", linestyle=":", linewidth=0.9)
    axis.set(
        xscale="log",
        yscale="log",
        xlabel="limit of displacements, widths of the domain",
        ylabel="thousands of iterations",
    )
    axis.set_title("AW-10; dotted: SGLD at its better temperature")
    axis.legend(ncols=len(config.functions), fontsize=8)
    return figure
