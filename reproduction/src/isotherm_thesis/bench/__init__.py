"""Speed beside peers on the same machine, in turns."""

import importlib.util
import json
import pathlib
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from isotherm.foundation.errors import refuse
from isotherm_thesis.bench.contour import csgld_rows, icsgld_rows
from isotherm_thesis.bench.coupling import contour_rows, swap_rows
from isotherm_thesis.bench.network import overhead_rows
from isotherm_thesis.bench.tempering import exchange_rows
from isotherm_thesis.bench.timing import Measurement
from isotherm_thesis.bench.toy import sgld_rows
from isotherm_thesis.part_progress import PartProgress

_OWN_PARTS: dict[str, Callable[[], list[Measurement]]] = {
    "SGHMC on a network": overhead_rows,
    "exchange between networks": swap_rows,
    "contours over networks": contour_rows,
}
_PARTS_BESIDE_PEERS: dict[str, Callable[[], list[Measurement]]] = {
    "SGLD, 1 chain": lambda: sgld_rows(1, 5_000_000),
    "SGLD, 16 chains": lambda: sgld_rows(16, 1_000_000),
    "exchange, every sweep kept": lambda: exchange_rows(1),
    "exchange, thinned by 10": lambda: exchange_rows(10),
    "CSGLD, 512 bins": lambda: csgld_rows(512, 2_000_000, 200_000),
    "CSGLD, 100000 bins": lambda: csgld_rows(100_000, 1_000_000, 5_000),
    "ICSGLD": icsgld_rows,
}
_REMEDY = "Run: pip install blackjax tfp-nightly. In the repository, `make bench` takes the versions that we measure."
_PEERS = {"blackjax": "BlackJAX", "tensorflow_probability": "TensorFlow Probability"}


def run_bench(peers: bool, out: pathlib.Path | None, console: Console) -> list[Measurement]:
    """Measure, print a table, and write JSON where asked."""
    for module, name in _PEERS.items() if peers else ():
        if importlib.util.find_spec(module) is None:
            refuse("peers", "used where they are installed", f"no {name}", _REMEDY)
    parts = _OWN_PARTS | (_PARTS_BESIDE_PEERS if peers else {})
    rows: list[Measurement] = []
    with PartProgress(console, len(parts)) as log:
        for name, measure in parts.items():
            log(name)
            rows += measure()
    table = Table(title="Work per second, medians of 5, in turns; a ratio above 1 means isotherm is faster")
    for column in ("work", "peer", "ours", "theirs", "ratio"):
        table.add_column(column, justify="left" if column in ("work", "peer") else "right")
    for row in rows:
        table.add_row(row.work, row.peer, f"{row.ours:.4g}", f"{row.theirs:.4g}", f"{row.ratio:.2f}")
    console.print(table)
    if out is not None:
        out.write_text(json.dumps([row.as_json() for row in rows], indent=1))
    return rows
