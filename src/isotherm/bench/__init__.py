"""Speed beside peers on the same machine, in turns."""

import importlib.util
import json
import pathlib

from rich.console import Console
from rich.table import Table

from isotherm.bench.contour import csgld_rows, icsgld_rows
from isotherm.bench.coupling import contour_rows, swap_rows
from isotherm.bench.network import overhead_rows
from isotherm.bench.tempering import exchange_rows
from isotherm.bench.timing import Measurement
from isotherm.bench.toy import sgld_rows
from isotherm.foundation.errors import refuse

_PEERS = {"blackjax": "BlackJAX", "tensorflow_probability": "TensorFlow Probability"}


def run_bench(peers: bool, out: pathlib.Path | None, console: Console) -> list[Measurement]:
    """Measure, print a table, and write JSON where asked."""
    for module, name in _PEERS.items() if peers else ():
        if importlib.util.find_spec(module) is None:
            refuse("peers", "used where they are installed", f"no {name}", 'Run: pip install "isotherm[peers]"')
    console.print("Measuring; a few minutes ..." if peers else "Measuring; a minute or two ...", highlight=False)
    rows = overhead_rows() + swap_rows() + contour_rows()
    if peers:
        rows += sgld_rows(1, 5_000_000) + sgld_rows(16, 1_000_000) + exchange_rows(1) + exchange_rows(10)
        rows += csgld_rows(512, 2_000_000, 200_000) + csgld_rows(100_000, 1_000_000, 5_000) + icsgld_rows()
    table = Table(title="Work per second, medians of 5, in turns; a ratio above 1 means isotherm is faster")
    for column in ("work", "peer", "ours", "theirs", "ratio"):
        table.add_column(column, justify="left" if column in ("work", "peer") else "right")
    for row in rows:
        table.add_row(row.work, row.peer, f"{row.ours:.4g}", f"{row.theirs:.4g}", f"{row.ratio:.2f}")
    console.print(table)
    if out is not None:
        out.write_text(json.dumps([row.as_json() for row in rows], indent=1))
    return rows
