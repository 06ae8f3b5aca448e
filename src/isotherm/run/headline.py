"""A run in five lines, from what is known without a look at its draws."""

import html
from typing import Any

from isotherm.foundation.positions import shapes_of
from isotherm.foundation.printable import printable
from isotherm.run.run import Run
from isotherm.run.storage.saving import TIMINGS

_MAX_LEAVES = 4


def lines_of(run: Run) -> list[str]:
    """Sampler and potential, sizes, what a draw holds, time, and notes."""
    *runs, chains, draws = run.log_weights.shape
    settings = run.config.get("settings", {})
    sizes = [f"{chains} chains x {draws} draws"]
    sizes = [f"{runs[0]} runs", *sizes] if runs else sizes
    thinning, burn_in = settings.get("thinning", 1), settings.get("burn_in", 0)
    steps = f"{run.num_steps} steps, thinning {thinning}, burn-in {burn_in}"
    sampler, potential = _texts(run.config)
    lines = [
        f"Run of {sampler} on {potential}",
        f"{' x '.join(sizes)} of {_leaves(run)}",
        steps,
        time_of(run),
        _notes(run),
    ]
    # Texts and names of a run that was loaded are those of its folder, whoever wrote it.
    return [printable(line) for line in lines]


def html_of(run: Run) -> str:
    """The same as a small table for notebooks."""
    first, *others = (html.escape(line) for line in lines_of(run))
    names = ("draws", "steps", "time", "notes")
    rows = "".join(
        f'<tr><th style="text-align:left">{name}</th><td style="text-align:left">{line}</td></tr>'
        for name, line in zip(names, others, strict=True)
    )
    return f"<div><strong>{first}</strong><table>{rows}</table></div>"


def _texts(config: dict[str, Any]) -> tuple[str, str]:
    """Sampler and potential in a few words."""
    texts = config.get("texts", {})
    return (
        texts.get("sampler") or config["sampler"].get("name") or "a sampler",
        texts.get("potential") or config.get("potential", {}).get("class", "a potential"),
    )


def _leaves(run: Run) -> str:
    lead = run.log_weights.ndim
    shapes = shapes_of(run.draws, lead)
    shown = [f"{name}{list(shape)}" if shape else name for name, shape in shapes.items()]
    return ", ".join(shown[:_MAX_LEAVES]) + f" and {len(shown) - _MAX_LEAVES} more" * (len(shown) > _MAX_LEAVES)


def _notes(run: Run) -> str:
    from isotherm.diagnostics.chains import checks_at_once

    number = len(checks_at_once(run))
    if number == 0:
        return "no warnings so far: summary() reads the draws too"
    return f"{number} warning{'s' * (number > 1)} so far: see summary(), which reads the draws too"


def time_of(run: Any) -> str:
    """The seconds of a run, each with what they were spent on. What took no time is left out, but for sampling.

    Example:
        >>> from types import SimpleNamespace
        >>> time_of(SimpleNamespace(seconds=2.5, compile_seconds=1.25, pilot_seconds=0.0, earlier_seconds=60.0))
        '2.5 s of sampling, 1.25 s of compiling, 60 s before it was resumed'
    """
    told = {name: getattr(run, name) for name in TIMINGS}
    return ", ".join(f"{value:.3g} s {TIMINGS[name]}" for name, value in told.items() if value or name == "seconds")
