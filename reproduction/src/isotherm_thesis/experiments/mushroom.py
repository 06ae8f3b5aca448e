"""Six agents on the mushrooms: cumulative regret (Deng 2021, chapter 6, L2205, figure of cumulative regret).

The thesis prints no numbers, only a figure and remarks. Agents, step sizes and temperatures are those of its table; the author's
code gives what it leaves open: contexts one-hot, energies of 4,096 examples whatever the buffer holds, contours learned after a
tenth of the steps, weights theta^zeta + 0.001.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from isotherm.bandits import Agent, BanditSettings, Play, play, psgld_agent
from isotherm.demo.result import Row
from isotherm_thesis.bandits import Mushrooms, const_sgd, dropout, eps_greedy, pcsgld_agent, picsgld_agent
from isotherm_thesis.data import load
from isotherm_thesis.experiments import small_sets
from isotherm_thesis.experiments.figures import color_of, legend_below, page, styled
from isotherm_thesis.experiments.reproduce import Outcome
from isotherm_thesis.experiments.scoring import differences

TITLE = "Mushrooms: cumulative regret"
_EARLY = 0.1
_OWN = "pICSGLD x P4"


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings of the experiment.

    Attributes:
        num_runs: independent repeats.
        data_dir: where the mushrooms lie; None plays with scikit-learn's digits, of which those from 5 on are poisonous.
        num_steps: of 20 pulls each.
        num_initial: random pulls before them.
        capacity: of the buffer.
        batch_size: of an update.
        hidden: widths of the networks.
        rules: by which sampling agents act; the thesis' is "average".
        agents: which of them.
    """

    num_runs: int = 10
    data_dir: str | None = "data"
    num_steps: int = 2_000
    num_initial: int = 1_024
    capacity: int = 4_096
    batch_size: int = 512
    hidden: tuple[int, ...] = (100, 100)
    rules: tuple[str, ...] = ("average",)
    agents: tuple[str, ...] = ("EpsGreedy", "ConstSGD", "Dropout", "pCSGLD", "pSGLD", "pICSGLD")


FULL = Config()
QUICK = Config(num_runs=2, data_dir=None, num_steps=60, num_initial=256, capacity=1_024, batch_size=64, hidden=(32,))


def run(config: Config, seed: int, log: Callable[[str], None]) -> Outcome:
    """Regret of every agent."""
    environment = _environment(config)
    settings = BanditSettings(
        config.num_steps,
        num_initial=config.num_initial,
        capacity=config.capacity,
        batch_size=config.batch_size,
        hidden=tuple(config.hidden),
    )
    rows, plays = [], {}
    for name, agent in agents(config).items():
        played = play(environment, agent, settings, num_runs=config.num_runs, seed=seed, log=log)
        plays[name] = played
        rows += _rows(name, played)
    for metric in ("regret", "regret of the first tenth", "regret of the second half"):
        rows += differences(rows, metric, [(_OWN, name) for name in plays if name != _OWN])
    return Outcome(rows, {"regret": _picture(plays)})


def agents(config: Config) -> dict[str, Agent]:
    """The thesis' six agents, and the sampling ones by Thompson's own rule."""
    warm_up = config.num_steps // 10
    found = {
        "EpsGreedy x P4": eps_greedy(),
        "ConstSGD x P4": const_sgd(),
        "Dropout x P4": dropout(),
        "pCSGLD x T4": pcsgld_agent(warm_up=64 * warm_up),
        "pSGLD x P4": psgld_agent(),
        "pICSGLD x P4": picsgld_agent(warm_up=16 * warm_up),
    }
    if "single" in config.rules:
        found["pSGLD x P4, single draws"] = psgld_agent(rule="single")
        found["pICSGLD x P4, single draws"] = picsgld_agent(warm_up=16 * warm_up, rule="single")
    return {name: agent for name, agent in found.items() if agent.name in config.agents}


def _environment(config: Config) -> Mushrooms:
    if config.data_dir is None:
        inputs, labels = small_sets.digits()
        return Mushrooms(inputs, (labels >= 5).astype(np.int32))
    data = load("mushroom", config.data_dir)
    return Mushrooms(data["inputs"], data["labels"])


def _rows(name: str, played: Play) -> list[Row]:
    early = max(int(_EARLY * played.regret.shape[1]) - 1, 0)
    late = played.regret[:, -1] - played.regret[:, played.regret.shape[1] // 2]
    return [
        Row.of_runs(name, "regret", played.regret[:, -1]),
        Row.of_runs(name, "regret of the first tenth", played.regret[:, early]),
        Row.of_runs(name, "regret of the second half", late),
        Row.of_runs(name, "mean multiplier, lowest", played.multipliers.min(axis=1)),
        Row.of_runs(name, "mean multiplier, highest", played.multipliers.max(axis=1)),
        Row(name, "seconds for all runs", None, played.seconds, None, len(played.regret)),
    ]


@styled
def _picture(plays: dict[str, Play]) -> Figure:
    figure, ((regrets, gaps), (energies, multipliers)) = page(2, 2, 2.9)
    for name, played in plays.items():
        style: dict[str, Any] = {"color": color_of(name), "linestyle": "--" if "single" in name else "-"}
        steps = np.arange(1, played.regret.shape[1] + 1)
        _draw_mean(regrets, steps, played.regret, name, style)
        energies.plot(steps, _smooth(played.energies.mean(axis=0)), **style)
        if _OWN in plays and name != _OWN and "SGLD" in name:
            _draw_mean(gaps, steps, played.regret - plays[_OWN].regret, name, style)
        if not np.all(played.multipliers == 1.0):
            multipliers.plot(steps, _smooth(played.multipliers.mean(axis=0)), **style)
    gaps.axhline(0.0, color=color_of(_OWN))
    multipliers.axhline(1.0, color="black", linewidth=0.8)
    regrets.set(xlabel="step", ylabel="cumulative regret", title="regret, mean and standard error")
    gaps.set(xlabel="step", ylabel="regret beyond pICSGLD's", title="paired difference from pICSGLD")
    energies.set(xlabel="step", ylabel="energy", yscale="log", title="energy of the networks, smoothed")
    multipliers.set(xlabel="step", ylabel="multiplier", title="multiplier of the contours, smoothed")
    legend_below(figure, regrets)
    return figure


def _draw_mean(axis: Any, steps: np.ndarray, values: np.ndarray, name: str, style: dict[str, Any]) -> None:
    mean = values.mean(axis=0)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0 * mean
    axis.plot(steps, mean, label=name, **style)
    axis.fill_between(steps, mean - error, mean + error, color=style["color"], alpha=0.2, linewidth=0)


def _smooth(values: np.ndarray) -> np.ndarray:
    """Means over a fiftieth of the steps, over fewer at the ends."""
    window = np.ones(max(len(values) // 50, 1))
    return np.convolve(values, window, "same") / np.convolve(np.ones(len(values)), window, "same")
