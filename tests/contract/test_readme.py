"""The README: its tables come from the records, and its program runs."""

import json
import pathlib
import re

from docs.tables import ROOT, TABLES, pages, rendered


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


def test_the_first_program_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert program is not None
    names: dict = {}
    exec(program[1], names)
    assert 0.0 < names["mass_near_origin"] < 0.3
    assert (tmp_path / "density.png").stat().st_size > 5_000
