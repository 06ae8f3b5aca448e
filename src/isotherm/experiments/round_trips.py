"""Round trips on a ladder whose pairs reject with a fixed probability: simulated, beside the expected time in closed form."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.coupling import CouplingInputs
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
from isotherm.experiments.plots import panels
from isotherm.experiments.reproduce import Outcome
from isotherm.experiments.result import Row

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
    num_runs: int = 10
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
    simulate = functools.partial(_simulate, config=config, seed=seed)
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


def _simulate(scheme: Scheme, num_rungs: int, rejection: float, config: Config, seed: int) -> np.ndarray:
    """Iterations per round trip of a replica, for each run."""
    keys = jax.vmap(jax.random.key_data)(jax.random.split(jax.random.key(seed), config.num_runs))
    length = config.burn_in + config.num_iterations + 1
    count = jax.jit(jax.vmap(lambda key: travel(scheme, num_rungs, rejection, length, key)[2]))
    trips = np.asarray(count(keys))
    return num_rungs * config.num_iterations / np.maximum(trips[:, -1] - trips[:, config.burn_in], 1)


def _row(name: str, num_rungs: int, rejection: float, times: np.ndarray, expected: float | None) -> Row:
    return Row.of_runs(name, f"round trip, P = {num_rungs}, r = {rejection:g}", times, expected)


def _draw(rows: list[Row], config: Config, seed: int) -> Any:
    """Times against P, W and r, and the paths of replicas under a reversible and a non-reversible scheme."""
    figure, (tops, bottoms) = panels(2, 3, (4.2, 3.2))
    found = {(row.method.split(",")[0], row.method, row.metric): row for row in rows}
    metric = f"round trip, P = {config.num_rungs}, r = {config.rejection:g}"
    for scheme in ("ADJ", "SEO", "DEO", "DEO*"):
        ours = [_first(found, scheme, f"round trip, P = {p}, r = {config.rejection:g}") for p in config.rungs]
        (line,) = tops[0].loglog(config.rungs, [row.ours for row in ours], "o", label=scheme)
        if ours[0].thesis is not None:
            tops[0].loglog(config.rungs, [row.thesis for row in ours], color=line.get_color())
    tops[0].set(title=f"schemes, r = {config.rejection:g}", xlabel="P", ylabel="iterations per round trip")
    by_window = [
        next(row for (_, m, k), row in found.items() if m == f"DEO, W = {w}" and k == metric) for w in config.windows
    ]
    tops[1].errorbar(
        config.windows,
        [row.ours for row in by_window],
        [row.std_error or 0.0 for row in by_window],
        fmt="o",
        label="simulated",
    )
    tops[1].plot(config.windows, [row.thesis for row in by_window], label="expected")
    tops[1].set(title=f"window, P = {config.num_rungs}, r = {config.rejection:g}", xlabel="W")
    for scheme in ("DEO", "DEO*"):
        ours = [_first(found, scheme, f"round trip, P = {config.num_rungs}, r = {r:g}") for r in config.rejections]
        (line,) = tops[2].semilogy(config.rejections, [row.ours for row in ours], "o", label=scheme)
        tops[2].semilogy(config.rejections, [row.thesis for row in ours], color=line.get_color())
    tops[2].set(title=f"rejection, P = {config.num_rungs}", xlabel="r")
    for axis in tops:
        axis.legend(fontsize=8)
    key = jax.random.key_data(jax.random.key(seed))
    for axis, (name, scheme, _) in zip(bottoms, _schemes(config.num_rungs, config.rejection)[1:], strict=True):
        rungs = travel(scheme, config.num_rungs, config.rejection, 1_000, key)[1]
        axis.plot(np.asarray(rungs)[:, [0, config.num_rungs // 2]], linewidth=0.9)
        axis.set(title=f"{name}: two replicas", xlabel="iteration", ylabel="rung")
    return figure


def _first(found: dict[tuple[str, str, str], Row], scheme: str, metric: str) -> Row:
    return next(row for (short, _, which), row in found.items() if short == scheme and which == metric)
