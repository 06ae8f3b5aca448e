"""From a specification to a sampler: the only caller of pilots."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from isotherm.contour.partition import FoundPartition
from isotherm.driver.settings import Settings, check_run, settings_of, starts_of
from isotherm.engine.program import identity
from isotherm.exchange import Ladder, LadderSearch
from isotherm.foundation.calls import checked_call
from isotherm.foundation.transfers import transfers_on_purpose
from isotherm.pilots.ladder import find_ladder_of
from isotherm.pilots.partition import find_partition
from isotherm.potentials.potential import Potential
from isotherm.potentials.start import choose_init
from isotherm.samplers.sampler import Choice, Sampler, Specification, as_potential, check_sampler


class Resolved(NamedTuple):
    """A complete sampler.

    Attributes:
        sampler: with the ladder or partition that pilots found.
        choices: what pilots chose and why; empty without pilots.
        seconds: of the pilots.
    """

    sampler: Sampler
    choices: tuple[Choice, ...] = ()
    seconds: float = 0.0


@transfers_on_purpose
def resolve_at(
    potential: Potential,
    sampler: Sampler | Specification,
    settings: Settings,
    position: Any,
    progress: bool | None = None,
    stored: Any = (),
) -> Resolved:
    """The sampler, by pilots from `position` (run, chain, ...), or by the `stored` choices of an earlier run, in JSON."""
    if isinstance(sampler, Sampler):
        return Resolved(sampler)
    began, is_ladder = time.perf_counter(), isinstance(sampler.search, LadderSearch)
    if stored:
        choices = tuple(Choice(**choice) for choice in stored)
        build = Ladder.from_json if is_ladder else FoundPartition.from_json
        return Resolved(sampler.completed(build(choices[0].value)), choices)
    find = find_ladder_of if is_ladder else find_partition
    found, choice = find(potential, sampler, settings, position, progress)
    return Resolved(sampler.completed(found), (choice,), time.perf_counter() - began)


def checked_start(
    potential: Potential,
    sampler: Sampler | Specification,
    init: Any,
    collect: Callable[[Any], Any] = identity,
    **given: Any,
) -> tuple[Settings, Any]:
    """The settings of a run and its positions at the start, leaves (run, chain, ...), after all checks that need no work."""
    settings = settings_of(sampler, init, **given)
    position = starts_of(init, settings)
    check_run(potential, sampler, settings, position, collect)
    return settings, position


@checked_call()
def resolve(
    potential: Any,
    sampler: Sampler | Specification,
    *,
    init: Any = None,
    num_chains: int | None = None,
    seed: Any = 0,
    progress: bool | None = None,
) -> Resolved:
    """Complete a sampler with `ladder="auto"` or `partition="auto"` by pilot runs.

    `iso.sample`, `resume`, `sweep`, `advise` and `to_blackjax` do this themselves; call it for a loop by hand.

    Args:
        potential: as in `sample`.
        sampler: any sampler; a complete one is returned as it is.
        init: as in `sample`.
        num_chains: as in `sample`.
        seed: of the pilots.
        progress: as in `sample`.

    Returns:
        The sampler, what was chosen and why, and the seconds of the pilots.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> resolved = iso.resolve(lambda x: x @ x / 2, iso.csgld(0.1), init=jnp.zeros(2))
        >>> state = resolved.sampler.init(lambda x: x @ x / 2, jnp.zeros(2))
    """
    potential, sampler = as_potential(potential), check_sampler(sampler)
    init = choose_init(init, potential)
    settings, position = checked_start(potential, sampler, init, num_chains=num_chains, num_steps=1, seed=seed)
    return resolve_at(potential, sampler, settings, position, progress)
