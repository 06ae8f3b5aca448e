"""`isotherm minimize`."""

import dataclasses

import tyro
from rich.console import Console

from isotherm.cli.counts import Count
from isotherm.foundation.errors import InputError, refuse


@dataclasses.dataclass(frozen=True)
class Minimize:
    """Search for the global minimum of a function of your own."""

    fun: tyro.conf.Positional[str]
    """FILE.py:NAME, a function from an array to a number. The file is run."""
    bounds: tuple[float, ...] = ()
    """LOW HIGH for every coordinate in turn, such as --bounds -5 5 0 1; or one pair, with --dimension."""
    dimension: Count | None = None
    """Number of coordinates that share the one pair of --bounds."""
    init: tuple[float, ...] = ()
    """Coordinates of the first start, such as --init 0 0; needed without --bounds."""
    scale: float = 1.0
    """Without --bounds: standard deviation of further starts around --init."""
    budget: Count = 100_000
    """Maximum number of evaluations of the function."""
    target: float | None = None
    """Stop once a value is at most this; by default, once independent searchers agree."""
    noise: bool = False
    """Whether values of the function are noisy."""
    seed: int = 0
    """Seed of all randomness."""

    def run(self, console: Console) -> None:
        """Search, and print the result."""
        from isotherm.cli.user_file import read_file
        from isotherm.minimization import minimize

        fun, pairs = read_file(self.fun, "fun").load(), self._pairs()
        options = {"scale": self.scale, "target": self.target, "noise": self.noise, "seed": self.seed}
        try:
            found = minimize(fun, self.init or None, bounds=pairs, max_evaluations=self.budget, **options)
        except InputError as error:
            raise InputError(_with_options(str(error))) from error
        lines = {
            "x": " ".join(f"{value:.10g}" for value in found.x),
            "fun": f"{found.fun:.10g}",
            **({"std error": f"{found.fun_std_error:.2g}"} if "fun_std_error" in found else {}),
            "evaluations": str(found.nfev),
            "success": str(found.success),
            "message": _with_options(found.message),
        }
        for name, text in lines.items():
            console.print(f"{name:11}  {text}", soft_wrap=True)

    def _pairs(self) -> list[tuple[float, float]] | None:
        if not self.bounds and not self.init:
            remedy = "Write --bounds -5 5 0 1 for two coordinates."
            refuse("--bounds", "given if there is no --init", "neither", remedy)
        if self.dimension is not None and (len(self.bounds) != 2 or self.dimension < 1):
            remedy = "It repeats the one pair of --bounds: write --bounds -5 5 --dimension 20."
            refuse("--dimension", "positive, and given with one pair LOW HIGH", _counted(self.bounds), remedy)
        if len(self.bounds) % 2:
            remedy = "For two coordinates write --bounds -5 5 0 1."
            refuse("--bounds", "LOW HIGH for every coordinate", _counted(self.bounds), remedy)
        pairs = list(zip(self.bounds[::2], self.bounds[1::2], strict=True))
        return pairs * (self.dimension or 1) or None


def _with_options(message: str) -> str:
    """`message` with the options of the command line instead of arguments."""
    names = {"max_evaluations": "budget", "noise=True": "noise", "x0": "init", "bounds=[(low, high), ...]": "bounds"}
    for argument, option in (names | {name: name for name in ("bounds", "target", "scale", "seed")}).items():
        message = message.replace(f"`{argument}`", f"--{option}")
    return message


def _counted(bounds: tuple[float, ...]) -> str:
    return f"{len(bounds)} number{'s' * (len(bounds) != 1)}"
