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
    """Evaluations of the function, at most."""
    target: float | None = None
    """Stop once a value is at most this; by default once independent searchers agree."""
    noise: bool = False
    """Whether the function gives another value every time."""
    seed: int = 0
    """Seed of all randomness."""

    def run(self, console: Console) -> None:
        """Search, and print what was found."""
        from isotherm.cli.user_file import load_object
        from isotherm.minimization import minimize

        fun, pairs = load_object(self.fun, "fun"), self._pairs()
        options = {"scale": self.scale, "target": self.target, "noise": self.noise, "seed": self.seed}
        try:
            found = minimize(fun, self.init or None, bounds=pairs, max_evaluations=self.budget, **options)
        except InputError as error:
            raise InputError(_in_words_of_the_shell(str(error))) from error
        lines = {
            "x": " ".join(f"{value:.10g}" for value in found.x),
            "fun": f"{found.fun:.10g}",
            **({"std error": f"{found.fun_std_error:.2g}"} if "fun_std_error" in found else {}),
            "evaluations": str(found.nfev),
            "success": str(found.success),
            "message": _in_words_of_the_shell(found.message),
        }
        for name, text in lines.items():
            console.print(f"{name:11}  {text}", soft_wrap=True)

    def _pairs(self) -> list[tuple[float, float]] | None:
        if not self.bounds and not self.init:
            refuse(
                "--bounds", "given where there is no --init", "neither", "Write --bounds -5 5 0 1 for two coordinates."
            )
        if self.dimension is not None and (len(self.bounds) != 2 or self.dimension < 1):
            remedy = "It repeats the one pair of --bounds: write --bounds -5 5 --dimension 20."
            refuse("--dimension", "positive, and given with one pair LOW HIGH", _counted(self.bounds), remedy)
        if len(self.bounds) % 2:
            remedy = "For two coordinates write --bounds -5 5 0 1."
            refuse("--bounds", "LOW HIGH for every coordinate", _counted(self.bounds), remedy)
        pairs = list(zip(self.bounds[::2], self.bounds[1::2], strict=True))
        return pairs * (self.dimension or 1) or None


def _in_words_of_the_shell(message: str) -> str:
    for argument, option in (
        ("`max_evaluations`", "--budget"),
        ("`noise=True`", "--noise"),
        ("`x0`", "--init"),
        ("`bounds=[(low, high), ...]`", "--bounds"),
        ("`bounds`", "--bounds"),
        ("`target`", "--target"),
        ("`scale`", "--scale"),
        ("`seed`", "--seed"),
    ):
        message = message.replace(argument, option)
    return message


def _counted(bounds: tuple[float, ...]) -> str:
    return f"{len(bounds)} number{'s' * (len(bounds) != 1)}"
