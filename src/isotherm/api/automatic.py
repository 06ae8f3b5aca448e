"""`iso.sample(problem)`: everything that a run needs is found first, from the problem alone."""

import dataclasses
import re
from typing import Any, NamedTuple

import jax
import numpy as np

from isotherm.coupling import Independent
from isotherm.driver.progress import say
from isotherm.driver.settings import Settings
from isotherm.exchange import Ladder
from isotherm.foundation.errors import check_integer, check_real, refuse, short
from isotherm.foundation.positions import tree_like
from isotherm.kernels import SGLD
from isotherm.kernels.wrapped import scaled
from isotherm.pilots.exact import Found, find_all
from isotherm.pilots.noisy import FoundNoisy, find_for_noise, ladder_of_noise
from isotherm.pilots.rounds import ROOM, THINNING, Budget, Setup
from isotherm.potentials.likelihood import LikelihoodPotential
from isotherm.potentials.potential import Potential
from isotherm.potentials.reference import Normal, ReferencedPotential
from isotherm.potentials.start import PerChain, start_positions
from isotherm.samplers.sampler import Choice, Sampler

NAME = "automatic"
# Gradients of a run without a budget; exact gradients from which on a budget has room for all data in every iteration.
DEFAULT_BUDGET, _MIN_BUDGET, _MIN_EXACT = 1_000_000, 10_000, 20_000
# Chains or ladders; the share of a run before its first draw; its least iterations, and the most draws of a noisy one.
NUM_LADDERS, _BURN_IN, _BURN_IN_OF_NOISY, _MIN_STEPS, _MAX_DRAWS = 4, 0.05, 0.2, 200, 5_000
_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}


class Automatic(NamedTuple):
    """A run that was found for a problem.

    Attributes:
        potential: with the reference that was fitted, and with all data in every iteration where the budget has room for that.
        sampler: complete.
        settings: of the run.
        position: its starts, leaves (run, chain, ...).
        choices: what was chosen and why.
    """

    potential: Potential
    sampler: Sampler
    settings: Settings
    position: Any
    choices: tuple[Choice, ...]


def limits_of(potential: Potential, budget: Any, num_chains: int | None, num_runs: int | None) -> Budget:
    """The budget of `iso.sample(problem)`, after refusals of what it cannot do."""
    if potential.is_streamed or potential.is_network:
        remedy = "Give one, such as `iso.sghmc(step_size)`."
        refuse("sampler", "given for networks and for data that stream", "None", remedy)
    for name, value in (("num_chains", num_chains), ("num_runs", num_runs)):
        if value is not None:
            refuse(
                name, "left out without a sampler", value, "Give `num_ladders`, which are compared with one another."
            )
    return _budget_of(budget)


def _budget_of(given: Any) -> Budget:
    """A budget from gradients, or from a text such as "30 s"."""
    if given is None:
        return Budget(DEFAULT_BUDGET)
    if isinstance(given, str):
        found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(s|min|h)\s*", given)
        if found is None:
            remedy = 'Write `budget=500_000` for gradients, or `budget="60 s"`.'
            refuse("budget", 'a number of gradients, or a time such as "60 s"', short(given), remedy)
        return Budget(None, check_real("budget", float(found[1]) * _UNITS[found[2]], "Give seconds.", above=0.0))
    number = check_integer("budget", given, 1, "Give a number of gradients.")
    if number < _MIN_BUDGET:
        refuse("budget", f"at least {_MIN_BUDGET:,} gradients", number, "The rounds before a run need some.")
    return Budget(number)


class Wanted(NamedTuple):
    """Settings that the user may have chosen: None, a thinning of 1 and a burn-in of 0 leave them open."""

    num_steps: int | None
    num_ladders: int | None
    thinning: int
    burn_in: int


def find_run(
    potential: Potential, init: Any, budget: Budget, given: Settings, wanted: Wanted, progress: bool | None
) -> Automatic:
    """Rounds, and the run that follows them."""
    number = wanted.num_ladders or NUM_LADDERS
    if isinstance(init, PerChain):
        number = wanted.num_ladders or init.number
        first = jax.tree.map(
            lambda leaf: leaf[0], start_positions(init, given.seed_words(), np.zeros(1, np.int32), number)
        )
    else:
        starts = start_positions(init, given.seed_words(), np.arange(number, dtype=np.int32), 1)
        first = jax.tree.map(lambda leaf: leaf[:, 0], starts)
    potential, budget, why = _with_all_data(potential, budget)
    if potential.is_exact:
        found = find_all(potential, first, budget, given.seed, progress)
        sampler = found.setup.sampler(records_all=False, name=NAME)
        position, stored, lines, thinning, room = found.position, _as_json(found), found.lines, THINNING, ROOM
        rounds, burn_in = found.rounds, _BURN_IN
        potential = found.potential
    else:
        if isinstance(potential, ReferencedPotential):
            # Its ladder would need a pilot along the path.
            potential = potential.inner
        noisy = find_for_noise(potential, first, budget, given.seed, progress)
        sampler = dataclasses.replace(noisy.sampler, name=NAME)
        position = jax.tree.map(
            lambda leaf: np.repeat(leaf[:, None], sampler.choose_num_chains(None), axis=1), noisy.position
        )
        stored, lines, thinning, room = _noisy_as_json(noisy), noisy.lines, 0, 0
        rounds, burn_in = noisy.rounds, _BURN_IN_OF_NOISY
    num_chains = sampler.choose_num_chains(None)
    has_ladder = sampler.has_ladder(num_chains)
    if not has_ladder:
        num_chains, position = number, jax.tree.map(lambda leaf: np.swapaxes(leaf, 0, 1), position)
    left = budget.left(rounds) / (number * (num_chains if has_ladder else 1))
    length = int(max(left, _MIN_STEPS)) if wanted.num_steps is None else wanted.num_steps
    settings = dataclasses.replace(
        given,
        num_steps=length,
        num_chains=num_chains,
        room=room,
        num_ladders=number if has_ladder else None,
        thinning=(min(thinning, length) or max(length // _MAX_DRAWS, 1)) if wanted.thinning == 1 else wanted.thinning,
        burn_in=wanted.burn_in or int(burn_in * length),
    )
    sizes = f"{number} ladders of {num_chains} replicas" if has_ladder else f"{number} chains"
    said = (*why, *lines, f"Run: {length:,} iterations of {sizes}; the first {settings.burn_in:,} give no draws.")
    say("\n".join(f"- {line}" for line in said), progress)
    stored |= {"has_all_data": bool(why), "evaluations": rounds.evaluations}
    stored |= {"code": _code(stored, settings)}
    return Automatic(potential, sampler, settings, position, (Choice(NAME, stored, " ".join(said)),))


def rebuilt(potential: Potential, stored: dict[str, Any], position: Any) -> tuple[Potential, Sampler]:
    """The potential and the sampler of a stored choice, for positions like `position`."""
    if stored["has_all_data"]:
        potential = _whole(potential)
    factor = _factor_from(stored, position)
    if "step_size" in stored:
        potential = potential.inner if isinstance(potential, ReferencedPotential) else potential
        kernel = scaled(SGLD(), factor)
        plain = Sampler(kernel, stored["step_size"], 1.0, coupling=Independent(), name=NAME)
        if stored["ladder"] is None:
            return potential, plain
        completed = ladder_of_noise(stored["step_size"], factor).completed(Ladder.from_json(stored["ladder"]))
        assert isinstance(completed, Sampler)
        return potential, dataclasses.replace(completed, name=NAME)
    temperatures = np.array([np.inf if value is None else value for value in stored["temperatures"]])
    setup = Setup(temperatures, np.array(stored["step_sizes"]), factor, True, stored["is_dense"])
    if stored["reference"] is not None:
        mean, own = tree_like(stored["reference"]["mean"], position), stored["reference"]["factor"]
        potential = ReferencedPotential(potential, Normal(mean, np.array(own, np.float32)))
    return potential, setup.sampler(records_all=False, name=NAME)


def _with_all_data(potential: Potential, budget: Budget) -> tuple[Potential, Budget, tuple[str, ...]]:
    """The potential with all data in every iteration, if the budget has room for that; it then counts such gradients."""
    inner = potential.inner if isinstance(potential, ReferencedPotential) else potential
    if not isinstance(inner, LikelihoodPotential) or inner.batch_size is None or inner.augment is not None:
        return potential, budget, ()
    cost = inner.num_data / inner.batch_size
    if budget.evaluations is None or inner.is_streamed or budget.evaluations / cost < _MIN_EXACT:
        return potential, budget, ()
    number = int(budget.evaluations / cost)
    text = f"All {inner.num_data:,} examples in every iteration: the budget is worth {number:,} such gradients."
    return _whole(potential), Budget(number), (text,)


def _whole(potential: Potential) -> Potential:
    if isinstance(potential, ReferencedPotential):
        return dataclasses.replace(potential, inner=_whole(potential.inner))
    assert isinstance(potential, LikelihoodPotential)
    return dataclasses.replace(potential, batch_size=None)


def _as_json(found: Found) -> dict[str, Any]:
    """What rounds found for exact energies, in types that JSON can hold."""
    reference = None
    if found.hottest is not None:
        assert isinstance(found.potential, ReferencedPotential)
        own = found.potential.reference
        assert isinstance(own, Normal)
        reference = {"mean": _lists(own.mean), "factor": np.asarray(own.factor).tolist(), "temperature": found.hottest}
    return {
        "temperatures": [None if np.isinf(value) else float(value) for value in found.setup.temperatures],
        "step_sizes": [float(value) for value in found.setup.step_sizes],
        "factor": found.setup.factor.tolist() if found.setup.is_dense else _lists(found.setup.factor),
        "is_dense": found.setup.is_dense,
        "friction": found.setup.friction,
        "barrier": found.barrier,
        "reference": reference,
    }


def _noisy_as_json(found: FoundNoisy) -> dict[str, Any]:
    ladder = None if found.ladder is None else found.ladder.as_json()
    return {"step_size": found.step_size, "factor": _lists(found.factor), "is_dense": False, "ladder": ladder}


def _code(stored: dict[str, Any], settings: Settings) -> str:
    """The calls that would repeat a run with what was chosen, but for the positions at which rounds ended."""
    lines = ['found = run.choices[0]["value"]']
    if stored["has_all_data"]:
        lines.append("# The problem with all data in every iteration, `batch_size=None`, is meant.")
    lines.append("like = lambda leaves: jax.tree.unflatten(jax.tree.structure(start), map(jnp.asarray, leaves))")
    if "step_size" in stored:
        steps = 'jax.tree.map(lambda a: found["step_size"] * a**2, like(found["factor"]))'
        ladder = stored["ladder"]
        rungs = "" if ladder is None else f", temperatures={tuple(ladder['temperatures'])!r}"
        lines.append(f"sampler = iso.{'sgld' if ladder is None else 'resgld'}({steps}{rungs})")
    else:
        if stored["reference"] is not None:
            lines.append('reference = found["reference"]')
            lines.append('normal = iso.potentials.Normal(like(reference["mean"]), jnp.asarray(reference["factor"]))')
            lines.append("problem = iso.with_reference(problem, normal)")
        lines.append(f'scales = {"jnp.asarray" if stored["is_dense"] else "like"}(found["factor"])')
        lines.append(
            'rungs = {"temperatures": tuple(t or jnp.inf for t in found["temperatures"]), "path": "reference"}'
        )
        lines.append('steps, friction = tuple(found["step_sizes"]), found["friction"]')
        lines.append("sampler = iso.reghmc(steps, friction=friction, scales=scales, **rungs)")
    number = f"num_ladders={settings.num_ladders}" if settings.num_ladders else f"num_chains={settings.num_chains}"
    lines.append(
        f"times = {{'num_steps': {settings.num_steps}, 'thinning': {settings.thinning}, 'burn_in': {settings.burn_in}}}"
    )
    return "\n".join([*lines, f"iso.sample(problem, sampler, init=start, {number}, **times)"])


def _lists(tree: Any) -> list[Any]:
    return [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(tree)]


def _factor_from(stored: dict[str, Any], position: Any) -> Any:
    """Scales: a matrix, or a tree like the position."""
    if stored["is_dense"]:
        return np.array(stored["factor"], np.float32)
    return tree_like(stored["factor"], position, np.float32)
