"""The page of promises, docs/promises.md, from the matrix of laws."""

from isotherm.samplers import METHODS
from tests.laws.matrix import SETTINGS, promise_of

MEANINGS = {
    "law": "means and variances of exp(-U / T), with the weights of draws, up to discretization bias",
    "exact": "the same without discretization bias, at every step size",
    "noisy law": "the same, up to half the variance of swaps or weights from energy noise",
    "within": "means and variances within a mode; the masses of modes depend on the cycles",
    "mean": "means within a tenth of a standard deviation, and variances within a quarter",
    "descends": "draws are near a minimum, with the spread from minibatch noise",
    "low": "every run reaches an energy within 0.05 of the lowest after its burn-in",
    "inside": "draws stay in the box; nothing else",
    "refused": "mini-batches are an error",
}


def page() -> str:
    """The text of docs/promises.md: the table of promises."""
    lines = [
        "# What each sampler promises",
        "",
        "Tested by `pytest tests/laws/test_matrix.py` (a selection in `make test`, all in `make test-long`) on targets of one",
        "coordinate with quadrature truth: a skewed well at temperature 2, in a box, with mini-batches of 10 out of 53 (energies",
        "and gradients), after an interrupt and a resume, thinned, and in double precision; and two modes of unequal mass and",
        "width. `psgld` and `picsgld` are frozen after half of the burn-in; while they adapt they promise no distribution.",
        "`awsgld` and the `deo_*` samplers explore; `sgd`, `msgd` and `swag` descend.",
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
