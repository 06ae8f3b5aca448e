"""The variance of theta for P interacting chains against one chain of P times the length: the thesis' ratio P^(1 - alpha)."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from isotherm.api import sweep
from isotherm.contour import Partition
from isotherm.demo.result import Row
from isotherm.foundation.gains import PolynomialGain
from isotherm.potentials import from_energy
from isotherm.samplers import icsgld, thesis
from isotherm_thesis.experiments.figures import legend_below, page, styled
from isotherm_thesis.experiments.reproduce import Outcome

TITLE = "Variance of theta: one long chain over P interacting chains, at equal budgets"


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings; the thesis proves the ratio, and has no experiment on it.

    Attributes:
        num_steps: iterations of P chains; the single chain has P times as many.
        num_runs: independent repeats, from which variances are estimated.
        chains: P.
        powers: alpha of the gain k^-alpha.
        step_size: epsilon.
        zeta: how far to flatten.
        num_bins: of width 0.5, from 0.5 on.
        gain_scale: of the gain, gain_scale / (k^alpha + 100).
    """

    num_steps: int = 40_000
    num_runs: int = 1_600
    chains: tuple[int, ...] = (2, 4, 8)
    powers: tuple[float, ...] = (0.6, 0.8, 1.0)
    step_size: float = 0.3
    zeta: float = 0.75
    num_bins: int = 8
    gain_scale: float = 5.0


FULL = Config()
QUICK = Config(num_steps=4_000, num_runs=100, chains=(4,), powers=(0.6, 1.0))


def run(config: Config, seed: int, log: Callable[[str], None]) -> Outcome:
    """Ratios of variances for every P and alpha."""
    rows: list[Row] = []
    ratios: dict[float, list[tuple[int, float, float]]] = {}
    thetas = {}
    for number in config.chains:
        log(f"P = {number}")
        thetas[number] = _thetas(config, number, config.num_steps, seed)
        thetas[number, "alone"] = _thetas(config, 1, number * config.num_steps, seed + 1)
    for power in config.powers:
        for number in config.chains:
            together, alone = thetas[number][power], thetas[number, "alone"][power]
            ratio, error = _ratio(alone, together)
            ratios.setdefault(power, []).append((number, ratio, error))
            name = f"alpha = {power:g}, P = {number}"
            rows.append(Row(name, "ratio of variances", number ** (1 - power), ratio, error, config.num_runs))
            gap = np.abs(together.mean(axis=0) - alone.mean(axis=0)).max()
            rows.append(Row(name, "largest difference of the means", None, float(gap), None, config.num_runs))
    return Outcome(rows, {"interaction": _draw(ratios)})


def _energy(position: Any) -> Any:
    """Two coordinates of a standard normal: energies are exponential."""
    return 0.5 * (position**2).sum()


def _thetas(config: Config, num_chains: int, num_steps: int, seed: int) -> dict[float, np.ndarray]:
    """Theta at the end for every alpha, shape (runs, bins)."""
    samplers = {
        power: icsgld(
            config.step_size,
            partition=Partition(0.5, 0.5, config.num_bins),
            zeta=config.zeta,
            **thesis.icsgld(field="psi", gain=PolynomialGain(config.gain_scale, power, 100.0)),
        )
        for power in config.powers
    }
    found = sweep(
        from_energy(_energy),
        samplers,
        num_steps=num_steps,
        num_chains=num_chains,
        num_runs=config.num_runs,
        thinning=num_steps,
        seed=seed,
        init=np.zeros(2, np.float32),
    )
    return {power: np.asarray(run.stats["theta"], np.float64)[:, 0] for power, run in found.items()}


def _ratio(alone: np.ndarray, together: np.ndarray) -> tuple[float, float]:
    """The ratio of the Frobenius norms of the covariances, and its standard error by the bootstrap over runs."""
    rng = np.random.default_rng(0)

    def norm(values):
        return np.linalg.norm(np.cov(values, rowvar=False))

    count = len(alone)
    chosen = rng.integers(count, size=(200, 2, count))
    pairs = [(norm(alone[first]), norm(together[second])) for first, second in chosen]
    draws = [above / below for above, below in pairs if below > 0]
    return float(norm(alone) / norm(together)), float(np.std(draws)) if len(draws) > 1 else 0.0


@styled
def _draw(ratios: dict[float, list[tuple[int, float, float]]]) -> Any:
    figure, ((axis,),) = page(1, 1, 3.4)
    for number, (power, found) in enumerate(ratios.items()):
        chains, values, errors = (np.array(column) for column in zip(*found, strict=True))
        color = ("#7d2e00", "#d55e00", "#f4b183")[number % 3]
        axis.errorbar(chains, values, 2 * errors, fmt="o", color=color, label=f"gain k^-{power:g}")
        line = np.linspace(1, chains.max(), 50)
        axis.plot(line, line ** (1 - power), color=color, linewidth=1)
    axis.set(title="dots: simulated, lines: P^(1 - alpha)", xlabel="interacting chains P", ylim=0)
    axis.set_ylabel("variance of one long chain / of P chains")
    legend_below(figure, axis)
    return figure
