"""A run in five lines, from what is known without a look at its draws."""

import html
from typing import Any

from isotherm.foundation.printable import printable
from isotherm.run.names import shapes_of
from isotherm.run.run_data import RunData
from isotherm.run.spent import time_of

_MOST_LEAVES = 4


def lines_of(run: RunData) -> list[str]:
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


def html_of(run: RunData) -> str:
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


def _leaves(run: RunData) -> str:
    lead = run.log_weights.ndim
    shapes = shapes_of(run.draws, lead)
    shown = [f"{name}{list(shape)}" if shape else name for name, shape in shapes.items()]
    return ", ".join(shown[:_MOST_LEAVES]) + f" and {len(shown) - _MOST_LEAVES} more" * (len(shown) > _MOST_LEAVES)


def _notes(run: RunData) -> str:
    from isotherm.diagnostics.summary import notes_at_once

    number = len(notes_at_once(run))
    if number == 0:
        return "no notes so far: summary() looks at the draws too"
    return f"{number} note{'s' * (number > 1)} so far: see summary(), which looks at the draws too"
