"""`sweep`: many samplers on one potential, with as few programs as they have structures."""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from isotherm.api.sample import ARGUMENTS
from isotherm.driver.drive import HostOptions, ResumePoint, drive
from isotherm.driver.layout import Layout
from isotherm.driver.prepare import prepare
from isotherm.driver.settings import Settings, check_devices, collect_of, settings_of
from isotherm.engine.program import identity
from isotherm.foundation.calls import checked_call
from isotherm.foundation.docstrings import documented
from isotherm.foundation.errors import refuse, short
from isotherm.foundation.user_functions import check_function
from isotherm.pilots.resolve import Resolved, checked_start, resolve_at
from isotherm.potentials.potential import Potential
from isotherm.potentials.start import choose_init, start_positions
from isotherm.run.run import Run
from isotherm.samplers.sampler import AnySampler, Sampler, as_potential, check_sampler


@checked_call()
@documented(arguments=ARGUMENTS)
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
    devices: Any = None,
    progress: bool | None = None,
    throw: bool = False,
    on_divergence: str = "freeze",
) -> dict[Any, Run]:
    """Run many samplers on a potential, those of one structure as one program.

    Samplers that differ in numbers alone, such as step sizes, temperatures or correction factors, have one structure. All use the
    same random numbers, so that paired differences are meaningful.

    Args:
        samplers: by name, or a list, whose names are then 0, 1, and so on.

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
    named = dict(enumerate(samplers)) if isinstance(samplers, Sequence) else samplers
    if not isinstance(named, Mapping) or not named:
        got = short(samplers) if not isinstance(named, Mapping) else "none"
        refuse("samplers", "a dict or a list of samplers", got, "Give {0.01: iso.sgld(0.01), ...}.")
    check_function("collect", collect, "lambda x: x")
    for sampler in named.values():
        check_sampler(sampler)
    init = choose_init(init, potential)
    given: dict[str, Any] = {"num_steps": num_steps, "num_chains": num_chains, "num_runs": num_runs}
    given |= {"num_ladders": num_ladders, "seed": seed, "thinning": thinning, "burn_in": burn_in}
    given |= {"track_best": track_best, "chain_mode": chain_mode, "devices": check_devices(devices)}
    given["on_divergence"] = on_divergence
    # All samplers are checked before the first pilot.
    checked = {name: checked_start(potential, sampler, init, collect, **given) for name, sampler in named.items()}
    resolved: dict[Any, Resolved] = {}
    groups: dict[Any, list[tuple[Any, Sampler, Settings]]] = {}
    for name, sampler in named.items():
        settings, position = checked[name]
        resolved[name] = resolve_at(potential, sampler, settings, position, progress)
        settled = resolved[name].sampler
        if settled is not sampler:
            settings = settings_of(settled, init, **given)
        leaves, structure = jax.tree.flatten(dataclasses.replace(settled, name=""))
        shapes = tuple(np.shape(leaf) for leaf in leaves)
        # One sampler must not end the run of another.
        own = name if settings.on_divergence == "stop" else None
        groups.setdefault((structure, shapes, own), []).append((name, settled, settings))
    runs: dict[Any, Run] = {}
    for group in groups.values():
        began = time.perf_counter()
        names, settled, (settings, *_) = (list(part) for part in zip(*group, strict=True))
        layout = Layout(len(group), settings.num_runs, settings.num_ladders)
        position = start_positions(init, settings.seed_words(), layout.run_numbers, settings.num_chains)
        prepared = prepare(potential, settled, settings, layout, position, collect_of(collect, potential))
        choices = [[dataclasses.asdict(choice) for choice in resolved[name].choices] for name in names]
        configs = tuple({**old, "choices": chosen} for old, chosen in zip(prepared.configs, choices, strict=True))
        pilots = sum(resolved[name].seconds for name in names)
        prepared = dataclasses.replace(prepared, configs=configs, pilot_seconds=pilots)
        found = drive(prepared, HostOptions(progress=progress, throw=throw), ResumePoint(), began - pilots)
        runs |= dict(zip(names, found, strict=True))
    return {name: runs[name] for name in named}
