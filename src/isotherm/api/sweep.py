"""`sweep`: many samplers on one potential, with as few programs as they have structures."""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from isotherm.driver.choose import check_run, collect_of, settings_of, starts_of
from isotherm.driver.drive import HostOptions, ResumePoint, drive
from isotherm.driver.layout import Layout
from isotherm.driver.prepare import prepare
from isotherm.driver.settings import Settings
from isotherm.engine.program import identity
from isotherm.foundation.calls import checked_call
from isotherm.foundation.errors import refuse, short
from isotherm.foundation.user_functions import check_function
from isotherm.pilots.resolve import Resolved, resolve_at
from isotherm.potentials.potential import Potential
from isotherm.potentials.start import choose_init, start_positions
from isotherm.run.run import Run
from isotherm.samplers.sampler import AnySampler, Sampler, as_potential, check_sampler


@checked_call()
def sweep(
    potential: Potential | Callable[[Any], Any],
    samplers: Mapping[Any, AnySampler] | Sequence[AnySampler],
    *,
    num_steps: int,
    num_chains: int | None = None,
    num_runs: int | None = None,
    num_ladders: int | None = None,
    seed: Any = 0,
    thinning: int = 1,
    burn_in: int = 0,
    init: Any = None,
    collect: Callable[[Any], Any] = identity,
    track_best: bool | None = None,
    chain_mode: str = "auto",
    progress: bool | None = None,
    throw: bool = False,
) -> dict[Any, Run]:
    """Run many samplers on a potential, those of one structure as one program.

    Samplers that differ in numbers alone, such as step sizes, temperatures or correction factors, have one structure. All see the
    same random numbers, so that their differences can be compared pair by pair.

    Args:
        potential: as in `sample`.
        samplers: by name, or a list, whose names are then 0, 1, and so on.
        num_steps: as in `sample`, as are all that follow.
        num_chains: as in `sample`.
        num_runs: as in `sample`.
        num_ladders: as in `sample`.
        seed: as in `sample`.
        thinning: as in `sample`.
        burn_in: as in `sample`.
        init: as in `sample`.
        collect: as in `sample`.
        track_best: as in `sample`.
        chain_mode: as in `sample`.
        progress: as in `sample`.
        throw: as in `sample`.

    Returns:
        The runs by name, in the order of the samplers.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> samplers = {step: iso.sgld(step) for step in (0.01, 0.02, 0.04)}
        >>> runs = iso.sweep(lambda x: x @ x / 2, samplers, num_steps=500, num_chains=2, init=jnp.zeros(3))
        >>> {step: run.draws.shape for step, run in runs.items()}
        {0.01: (2, 500, 3), 0.02: (2, 500, 3), 0.04: (2, 500, 3)}
    """
    potential = as_potential(potential)
    if not isinstance(samplers, (Mapping, Sequence)):
        refuse("samplers", "a dict or a list of samplers", short(samplers), "Give {0.01: iso.sgld(0.01), ...}.")
    named = dict(samplers) if isinstance(samplers, Mapping) else dict(enumerate(samplers))
    if not named:
        refuse("samplers", "a dict or a list of samplers", "none", "Give {0.01: iso.sgld(0.01), ...}.")
    check_function("collect", collect, "lambda x: x")
    for sampler in named.values():
        check_sampler(sampler)
    init = choose_init(init, potential)
    given = {"num_steps": num_steps, "num_runs": num_runs, "num_ladders": num_ladders, "seed": seed}
    given |= {"thinning": thinning, "burn_in": burn_in, "track_best": track_best, "chain_mode": chain_mode}
    resolved: dict[Any, Resolved] = {}
    groups: dict[Any, list[tuple[Any, Sampler, Settings]]] = {}
    # All of them are checked before the first pilot.
    checked = {}
    for name, sampler in named.items():
        settings = settings_of(sampler, init, num_chains=num_chains, **given)
        position = starts_of(init, settings)
        check_run(potential, sampler, settings, position, collect)
        checked[name] = settings, position
    for name, sampler in named.items():
        settings, position = checked[name]
        resolved[name] = resolve_at(potential, sampler, settings, position, progress)
        settled = resolved[name].sampler
        if settled is not sampler:
            settings = settings_of(settled, init, num_chains=num_chains, **given)
        leaves, structure = jax.tree.flatten(dataclasses.replace(settled, name=""))
        shapes = tuple(np.shape(leaf) for leaf in leaves)
        groups.setdefault((structure, shapes), []).append((name, settled, settings))
    runs: dict[Any, Run] = {}
    for group in groups.values():
        tick = time.perf_counter()
        names, settled, (settings, *_) = (list(part) for part in zip(*group, strict=True))
        layout = Layout(len(group), settings.num_runs, settings.num_ladders)
        position = start_positions(init, settings.seed_words(), layout.run_numbers, settings.num_chains)
        prepared = prepare(potential, settled, settings, layout, position, collect_of(collect, potential))
        configs = zip(prepared.configs, names, strict=True)
        chosen = [
            {**config, "choices": [dataclasses.asdict(c) for c in resolved[name].choices]} for config, name in configs
        ]
        host = HostOptions(progress=progress, throw=throw)
        pilots = sum(resolved[name].seconds for name in names)
        prepared = dataclasses.replace(prepared, configs=tuple(chosen), pilot_seconds=pilots)
        found = drive(prepared, host, ResumePoint(), tick - pilots)
        runs |= dict(zip(names, found, strict=True))
    return {name: runs[name] for name in named}
