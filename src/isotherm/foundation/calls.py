"""Calls with wrong arguments: messages that name the intended argument, in place of Python's."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

from isotherm.foundation.errors import closest, refuse

F = TypeVar("F", bound=Callable[..., Any])

# Names in other libraries.
_SYNONYMS = {
    "step_size": ("lr", "learning_rate", "eps", "epsilon"),
    "temperature": ("tau",),
    "friction": ("alpha", "momentum"),
    "partition": ("bins",),
    "num_steps": ("num_samples", "draws"),
    "burn_in": ("num_warmup", "warmup", "tune"),
    "seed": ("rng_key", "key", "rng"),
    "init": ("x0", "initial_position"),
    "energy": ("function",),
    "weight_decay": ("l2", "prior_precision"),
    "compute_dtype": ("dtype", "mixed_precision"),
    "augment": ("transform",),
    "max_evaluations": ("maxiter", "maxfun", "budget"),
}
_ALIASES = {alias: name for name, aliases in _SYNONYMS.items() for alias in aliases}
_OF_SAMPLE = ("num_steps", "num_chains", "num_runs", "num_ladders", "seed", "thinning", "burn_in", "init", "out")


def checked_call(options: Iterable[str] = (), prefix: str = "iso.") -> Callable[[F], F]:
    """A decorator that refuses a call which does not fit the signature, with the argument that was probably meant.

    Args:
        options: names that the function takes through `**options`.
        prefix: of the function's name in user code.

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
        known = [*(p.name for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD), *options]

        @functools.wraps(function)
        def checked(*arguments: Any, **given: Any) -> Any:
            for option in given:
                if option not in known:
                    refuse(option, f"an option of `{name}`", "an unknown name", _remedy(option, known))
            try:
                signature.bind(*arguments, **given)
            except TypeError:
                _refuse_call(name, signature, arguments, given)
            return function(*arguments, **given)

        return checked  # pyright: ignore[reportReturnType]

    return decorate


def _remedy(option: str, known: list[str]) -> str:
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
    parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    by_place = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    if len(arguments) > len(by_place):
        rule = f"called with at most {len(by_place)} arguments by position ({', '.join(by_place)})"
        others = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        remedy = f"Name the others: `{name}({', '.join(by_place)}, {others[0]}=...)`." if others else "Leave some out."
        refuse(name, rule, len(arguments), remedy)
    placed = by_place[: len(arguments)]
    for repeated in set(placed) & set(given):
        refuse(repeated, "given once", "it by position and by name", "Leave one of them out.")
    needed = [p.name for p in parameters if p.default is p.empty]
    missing = next(argument for argument in needed if argument not in given and argument not in placed)
    call = ", ".join(argument if argument in by_place else f"{argument}=..." for argument in needed)
    refuse(missing, f"given to `{name}`", "nothing", f"Call `{name}({call})`.")
