"""From a specification to a sampler: the only caller of pilots."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from isotherm.contour.partition import FoundPartition, PartitionSearch
from isotherm.driver.settings import Settings, check_run, settings_of, starts_of
from isotherm.engine.program import identity
from isotherm.exchange import Ladder, LadderSearch
from isotherm.foundation.calls import checked_call
from isotherm.foundation.transfers import transfers_on_purpose
from isotherm.pilots.ladder import find_ladder_of
from isotherm.pilots.partition import find_partition
from isotherm.pilots.step import find_step, step_from_json
from isotherm.potentials.potential import Potential
from isotherm.potentials.start import choose_init
from isotherm.samplers.sampler import Choice, Sampler, Specification, StepSearch, as_potential, check_sampler


class Resolved(NamedTuple):
    """A complete sampler.

    Attributes:
        sampler: with what pilots found.
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
    began, choices = time.perf_counter(), []
    while isinstance(sampler, Specification):
        if stored:
            choice = Choice(**stored[len(choices)])
            found = _rebuilt(sampler.search, choice.value, position)
        else:
            find = _PILOTS[type(sampler.search)]
            found, choice = find(potential, sampler, settings, position, progress)
        sampler = sampler.completed(found)
        choices.append(choice)
    return Resolved(sampler, tuple(choices), time.perf_counter() - began if choices and not stored else 0.0)


_PILOTS: dict[type, Callable[..., Any]] = {
    StepSearch: find_step,
    LadderSearch: find_ladder_of,
    PartitionSearch: find_partition,
}


def _rebuilt(search: Any, value: dict[str, Any], position: Any) -> Any:
    """What a pilot found, from the JSON of its choice."""
    if isinstance(search, StepSearch):
        return step_from_json(value, position)
    return (Ladder if isinstance(search, LadderSearch) else FoundPartition).from_json(value)


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
    """Complete a sampler with `step_size="auto"`, `ladder="auto"` or `partition="auto"` by pilot runs.

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
