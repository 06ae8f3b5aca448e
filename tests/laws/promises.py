"""The page of promises, docs/promises.md, from the matrix of laws."""

from isotherm.samplers import METHODS
from tests.laws.matrix import SETTINGS, promise_of

MEANINGS = {
    "law": "means and variances of exp(-U / T), weighted where draws carry weights, up to discretization",
    "noisy law": "the same, up to half the variance that energy noise gives to swaps or weights",
    "within": "means and variances given the mode; the masses of modes are those of the cycles",
    "mean": "means within a tenth of a standard deviation, and variances within a quarter",
    "descends": "draws come to lie around a minimum, with what spread batches leave",
    "low": "every run comes within 0.05 of the lowest energy after its burn-in",
    "inside": "draws stay in the box; nothing more",
}


def page() -> str:
    """The text of docs/promises.md: the table of promises."""
    lines = [
        "# What each sampler promises",
        "",
        "Tested by `pytest tests/laws/test_matrix.py` (a selection in `make test`, all in `make test-long`) on targets of one",
        "coordinate with quadrature truth: a skewed well at temperature 2, the same cut off by a box, seen through mini-batches of",
        "10 out of 53 (energies and gradients), after a stop and a resume, thinned, and in double precision; and two modes of",
        "unequal mass and width. `psgld` and `picsgld` are frozen after half of the burn-in: while they adapt they promise no",
        "distribution. `awsgld` and the `deo_*` samplers are made to explore, `sgd`, `msgd` and `swag` to descend.",
        "",
        "| sampler | " + " | ".join(SETTINGS) + " |",
        "|---" * (1 + len(SETTINGS)) + "|",
    ]
    for method in METHODS:
        lines.append(
            f"| `{method}` | " + " | ".join(_shown(promise_of(method, setting)) for setting in SETTINGS) + " |"
        )
    lines += ["", *(f"- *{_shown(name)}*: {meaning}." for name, meaning in MEANINGS.items()), ""]
    return "\n".join(lines)


def _shown(promise: str) -> str:
    """What users read for what the tests call a law."""
    return {"law": "samples", "noisy law": "samples, noisy"}.get(promise, promise)
