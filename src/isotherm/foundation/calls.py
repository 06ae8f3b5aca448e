"""Calls with wrong arguments: messages that name what was meant, in place of Python's."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

from isotherm.foundation.errors import closest, refuse

F = TypeVar("F", bound=Callable[..., Any])

# What other libraries call it.
_ALIASES = {
    "lr": "step_size",
    "learning_rate": "step_size",
    "eps": "step_size",
    "epsilon": "step_size",
    "tau": "temperature",
    "alpha": "friction",
    "momentum": "friction",
    "bins": "partition",
    "num_samples": "num_steps",
    "draws": "num_steps",
    "num_warmup": "burn_in",
    "warmup": "burn_in",
    "tune": "burn_in",
    "rng_key": "seed",
    "key": "seed",
    "x0": "init",
    "initial_position": "init",
    "function": "energy",
    "l2": "weight_decay",
    "prior_precision": "weight_decay",
    "dtype": "compute_dtype",
    "mixed_precision": "compute_dtype",
    "transform": "augment",
    "maxiter": "max_evaluations",
    "maxfun": "max_evaluations",
    "budget": "max_evaluations",
    "rng": "seed",
}
_OF_SAMPLE = ("num_steps", "num_chains", "num_runs", "num_ladders", "seed", "thinning", "burn_in", "init", "out")


def checked_call(options: Iterable[str] = (), prefix: str = "iso.") -> Callable[[F], F]:
    """A decorator: a call that does not fit the signature is refused with the argument that was probably meant.

    Args:
        options: names that the function takes through `**options`.
        prefix: what users write before the function's name.

    Example:
        >>> @checked_call()
        ... def heat(*, temperature):
        ...     return temperature
        >>> heat(temprature=2.0)
        Traceback (most recent call last):
        isotherm.foundation.errors.InputError: `temprature` must be an option of `iso.heat`; got an unknown name. Did you mean \
`temperature`?
    """

    def decorate(function: F) -> F:
        signature, name = inspect.signature(function), prefix + function.__name__
        named = [p.name for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        known = [*named, *options]

        @functools.wraps(function)
        def checked(*arguments: Any, **given: Any) -> Any:
            check_options(name, given, known)
            try:
                signature.bind(*arguments, **given)
            except TypeError:
                _refuse_call(name, signature, arguments, given)
            return function(*arguments, **given)

        return checked  # pyright: ignore[reportReturnType]

    return decorate


def check_options(name: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse an option that `name` does not take, with the one that was probably meant."""
    known = list(known)
    for option in given:
        if option not in known:
            refuse(option, f"an option of `{name}`", "an unknown name", _meant(option, known))


def _meant(option: str, known: list[str]) -> str:
    alias = _ALIASES.get(option)
    if alias in known:
        return f"Did you mean `{alias}`?" + (" It is one minus the momentum." if option == "momentum" else "")
    if option in _OF_SAMPLE and "step_size" in known:
        return f"Pass it to `iso.sample(..., {option}=...)`."
    close = closest(option, known)
    return f"Did you mean `{close}`?" if close else f"It takes: {', '.join(known)}."


def _refuse_call(
    name: str, signature: inspect.Signature, arguments: tuple[Any, ...], given: dict[str, Any]
) -> NoReturn:
    parameters = list(signature.parameters.values())
    by_place = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    needed = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    call = ", ".join(p.name if p.kind is p.POSITIONAL_OR_KEYWORD else f"{p.name}=..." for p in needed)
    if len(arguments) > len(by_place):
        rule = f"called with at most {len(by_place)} arguments by position ({', '.join(by_place)})"
        others = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        remedy = f"Name the others: `{name}({', '.join(by_place)}, {others[0]}=...)`." if others else "Leave some out."
        refuse(name, rule, len(arguments), remedy)
    for repeated in set(by_place[: len(arguments)]) & set(given):
        refuse(repeated, "given once", "it by position and by name", "Leave one of them out.")
    missing = [p.name for p in needed if p.name not in given and p.name not in by_place[: len(arguments)]]
    refuse(missing[0], f"given to `{name}`", "nothing", f"Call `{name}({call})`.")
