"""Round trips on a ladder whose pairs reject with a fixed probability: simulated, beside the expected time in closed form."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.ticker import NullFormatter

from isotherm.coupling import CouplingInputs
from isotherm.demo.result import Row
from isotherm.exchange import (
    Adjacent,
    Corrected,
    DeterministicEvenOdd,
    Exchange,
    Ladder,
    StochasticEvenOdd,
    expected_round_trip,
    optimal_window,
)
from isotherm.exchange.schemes import Scheme
from isotherm_thesis.experiments.figures import color_of, legend_below, page, styled
from isotherm_thesis.experiments.reproduce import Outcome

TITLE = "Iterations per round trip; the column of the thesis is its expected time where there is one"


@dataclasses.dataclass(frozen=True)
class Config:
    """What is simulated.

    Attributes:
        num_iterations: of each run, in which trips are counted.
        burn_in: iterations before them: the first trips of replicas begin in the middle.
        num_runs: independent repeats.
        rejection: r of the studies over P and W.
        rungs: P of the study of schemes.
        num_rungs: P of the studies over W and r.
        windows: W.
        rejections: r.
    """

    num_iterations: int = 200_000
    burn_in: int = 50_000
    num_runs: int = 40
    rejection: float = 0.6
    rungs: tuple[int, ...] = (4, 8, 16, 32, 64)
    num_rungs: int = 16
    windows: tuple[int, ...] = (1, 2, 4, 6, 7, 8, 10, 12, 16)
    rejections: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8, 0.9)


FULL = Config()
QUICK = Config(
    num_iterations=20_000,
    burn_in=5_000,
    num_runs=4,
    rungs=(4, 8, 16),
    windows=(1, 4, 8, 12),
    rejections=(0.4, 0.6, 0.8),
)


@dataclasses.dataclass(frozen=True, eq=False)
class Bernoulli(Corrected):
    """Rejects with a fixed probability, whatever the energies are."""

    correction_factor: float = np.inf
    rejection: float = 0.0

    def accept(self, state: Any, pairs: Any, uniform: jax.Array, iteration: jax.Array) -> jax.Array:
        return uniform >= self.rejection


def travel(scheme: Scheme, num_rungs: int, rejection: float, num_iterations: int, key: jax.Array) -> Any:
    """The state of an exchange after many iterations without any chains; rungs and round trips of its replicas on the way."""
    rising = tuple(float(rung) for rung in range(1, num_rungs + 1))
    exchange = Exchange(Ladder((0.1,) * num_rungs, rising), scheme, Bernoulli(rejection=rejection))
    draws = exchange.draw(key, jnp.arange(num_iterations), num_rungs)
    nothing, alive, one = jnp.zeros(num_rungs), jnp.ones(num_rungs, bool), jnp.ones(())

    def iterate(state, inputs):
        iteration, drawn = inputs
        seen = state.rung, jnp.sum(state.trips.num_strict)
        after, _ = exchange.update(state, drawn, CouplingInputs(nothing, nothing, alive, one, one, iteration))
        return after, seen

    state, (rungs, trips) = jax.lax.scan(iterate, exchange.init(num_rungs), (jnp.arange(num_iterations), draws))
    return state, rungs, trips


def run(config: Config, seed: int, log: Callable[[str], None]) -> Outcome:
    """Schemes against P, DEO against W, and the optimal window against r."""
    rows: list[Row] = []
    simulate = functools.partial(simulate_trips, config=config, seed=seed)
    for num_rungs in config.rungs:
        for name, scheme, expected in _schemes(num_rungs, config.rejection):
            log(f"{name}, P = {num_rungs}")
            times = simulate(scheme, num_rungs, config.rejection)
            rows.append(_row(name, num_rungs, config.rejection, times, expected))
    for window in config.windows:
        log(f"DEO, W = {window}")
        times = simulate(DeterministicEvenOdd(window), config.num_rungs, config.rejection)
        expected = expected_round_trip(config.num_rungs, config.rejection, window)
        rows.append(_row(f"DEO, W = {window}", config.num_rungs, config.rejection, times, expected))
    for rejection in config.rejections:
        log(f"DEO and DEO*, r = {rejection}")
        for name, scheme, expected in _schemes(config.num_rungs, rejection)[2:]:
            rows.append(
                _row(name, config.num_rungs, rejection, simulate(scheme, config.num_rungs, rejection), expected)
            )
    unique = list({(row.method, row.metric): row for row in rows}.values())
    return Outcome(unique, {"round-trips": _draw(unique, config, seed)})


def _schemes(num_rungs: int, rejection: float) -> list[tuple[str, Scheme, float | None]]:
    window = optimal_window(num_rungs, rejection)
    expected = functools.partial(expected_round_trip, num_rungs, rejection)
    return [
        ("ADJ", Adjacent(), None),
        ("SEO", StochasticEvenOdd(), expected(scheme="seo")),
        ("DEO", DeterministicEvenOdd(), expected()),
        (f"DEO*, W = {window}", DeterministicEvenOdd(window), expected(window)),
    ]


def simulate_trips(scheme: Scheme, num_rungs: int, rejection: float, config: Config, seed: int) -> np.ndarray:
    """Iterations per round trip of a replica, for each run."""
    keys = jax.vmap(jax.random.key_data)(jax.random.split(jax.random.key(seed), config.num_runs))
    length = config.burn_in + config.num_iterations + 1
    count = jax.jit(jax.vmap(lambda key: travel(scheme, num_rungs, rejection, length, key)[2]))
    trips = np.asarray(count(keys))
    return num_rungs * config.num_iterations / np.maximum(trips[:, -1] - trips[:, config.burn_in], 1)


def _row(name: str, num_rungs: int, rejection: float, times: np.ndarray, expected: float | None) -> Row:
    return Row.of_runs(name, f"round trip, P = {num_rungs}, r = {rejection:g}", times, expected)


@styled
def _draw(rows: list[Row], config: Config, seed: int) -> Any:
    """Left: times against P, W and r, dots simulated, lines expected. Right: paths of two replicas under three schemes."""
    figure, axes = page(3, 2, 2.5)
    (by_rungs, by_window, by_rejection), paths = axes[:, 0], axes[:, 1]
    found = {(row.method.split(",")[0], row.method, row.metric): row for row in rows}
    metric = f"round trip, P = {config.num_rungs}, r = {config.rejection:g}"
    for scheme in ("ADJ", "SEO", "DEO", "DEO*"):
        ours = [_first(found, scheme, f"round trip, P = {p}, r = {config.rejection:g}") for p in config.rungs]
        _draw_times(by_rungs, config.rungs, ours, scheme)
    windows = [found["DEO", f"DEO, W = {w}", metric] for w in config.windows]
    _draw_times(by_window, config.windows, windows, "DEO*")
    for scheme in ("DEO", "DEO*"):
        ours = [_first(found, scheme, f"round trip, P = {config.num_rungs}, r = {r:g}") for r in config.rejections]
        _draw_times(by_rejection, config.rejections, ours, scheme)
    by_rungs.set(title=f"rejection rate {config.rejection:g}", xlabel="rungs P", xscale="log", yscale="log")
    by_rungs.set_xticks(config.rungs, [str(number) for number in config.rungs], minor=False)
    by_rungs.xaxis.set_minor_formatter(NullFormatter())
    by_window.set(title=f"{config.num_rungs} rungs, rejection rate {config.rejection:g}", xlabel="window W", ylim=0)
    by_rejection.set(title=f"{config.num_rungs} rungs", xlabel="rejection rate r", yscale="log")
    for axis in axes[:, 0]:
        axis.set_ylabel("iterations per trip")
    key = jax.random.key_data(jax.random.key(seed))
    for axis, (name, scheme, _) in zip(paths, _schemes(config.num_rungs, config.rejection)[1:], strict=True):
        rungs = np.asarray(travel(scheme, config.num_rungs, config.rejection, 1_000, key)[1])
        axis.plot(rungs[:, config.num_rungs // 2], linewidth=0.9, color="#bbbbbb")
        axis.plot(rungs[:, 0], linewidth=1.2, color=color_of(name))
        axis.set(title=f"{name}: two replicas", ylabel="rung")
    paths[-1].set_xlabel("iteration")
    legend_below(figure, by_rungs)
    return figure


def _draw_times(axis: Any, places: tuple[float, ...], rows: list[Row], scheme: str) -> None:
    """Simulated times as dots with three standard errors, expected ones as a line."""
    color = color_of(scheme)
    errors = [3 * (row.std_error or 0.0) for row in rows]
    axis.errorbar(places, [row.ours for row in rows], errors, fmt="o", markersize=4, color=color, label=scheme)
    if rows[0].thesis is not None:
        axis.plot(places, [row.thesis for row in rows], color=color, linewidth=1.0)


def _first(found: dict[tuple[str, str, str], Row], scheme: str, metric: str) -> Row:
    return next(row for (short, _, which), row in found.items() if short == scheme and which == metric)
