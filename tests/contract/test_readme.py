"""The README: its tables come from the records, and its programs run, as do those of the docs."""

import json
import pathlib
import re
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm_thesis.ledger.tables import ROOT, TABLES, pages, rendered

# Its programs are as long as a reader's, most of their time is spent in loops.
IS_OPTIMIZED = True
DOCS = sorted(path for path in (ROOT / "docs").glob("*.md") if "```python" in path.read_text())


def test_tables_are_those_of_the_records():
    texts = {path: path.read_text() for path in pages()}
    assert pages() == texts
    for name in TABLES:
        assert sum(f"<!-- {name} -->" in text for text in texts.values()) == 1


def test_links_lead_somewhere():
    for path in pages():
        links = re.findall(r"\]\(([^)#]+)\)", path.read_text())
        missing = [link for link in links if "://" not in link and not (path.parent / link).exists()]
        assert not missing


def test_a_changed_record_would_be_seen(monkeypatch):
    original = pathlib.Path.read_text

    def doubled(path, *arguments, **options):
        text = original(path, *arguments, **options)
        if path.name != "result.json":
            return text
        record = json.loads(text)
        for row in record["rows"]:
            row["ours"] *= 2
        return json.dumps(record)

    monkeypatch.setattr(pathlib.Path, "read_text", doubled)
    readme = (ROOT / "README.md").read_text()
    assert rendered(readme) != readme


def given():
    """What the programs of the pages leave to their readers."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, 400)
    images = rng.normal(size=(400, 64)).astype(np.float32) + labels[:, None]
    return {
        "iso": iso,
        "start": jnp.zeros(2),
        "energy": lambda x: 0.2 * jnp.sum(x**2) - 2.0 * jnp.sum(jnp.cos(2 * jnp.pi * x)),
        "fun": lambda x: jnp.sum(x**2),
        "log_likelihood": lambda w, rows: -jnp.logaddexp(0.0, -(2.0 * rows[1] - 1.0) * (rows[0] @ w)),
        "log_prior": lambda w: -0.5 * jnp.sum(w**2),
        "inputs": images,
        "labels": (labels > 2).astype(np.float32),
        "init_weights": jnp.zeros(64),
        "x": images,
        "y": labels,
        "x_test": images,
        "y_test": labels,
        "x_unknown": images[::-1] + 3.0,
    }


@pytest.mark.parametrize("page", [path.relative_to(ROOT).as_posix() for path in (ROOT / "README.md", *DOCS)])
def test_every_program_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = given()
    programs = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    for program in programs:
        exec(program, names)
    if page == "README.md":
        found = names["mass_near_origin"]
        assert abs(found.mean - 0.0629) < 5 * found.std_error  # By quadrature.
        assert abs(names["log_z"].mean - 4.402) < 5 * names["log_z"].std_error
        assert (tmp_path / "density.png").stat().st_size > 5_000
        assert names["found"].success
