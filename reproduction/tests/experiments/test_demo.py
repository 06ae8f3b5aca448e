"""The demonstration at a small size."""

import json

from isotherm.demo.demo import Config, run_demo


def test_demo_writes_its_files_and_knows_the_truth(tmp_path):
    rows = run_demo(tmp_path, Config(num_steps=8_000, num_runs=2, burn_in=100))
    record = json.loads((tmp_path / "result.json").read_text())
    assert set(record) == {"experiment", "scale", "rows", "config", "seed", "environment", "seconds"}
    assert set(record["rows"][0]) - {"values"} == {"method", "metric", "thesis", "ours", "std_error", "runs"}
    found = {(row.method, row.metric): row.ours for row in rows}
    assert {method for method, _ in found} == {"SGLD", "SVGD", "DEO*", "reSGLD", "ICSGLD"}
    for method in ("SGLD", "reSGLD", "ICSGLD"):
        assert 0.0 < found[method, "total variation"] < 0.45
        assert found[method, "modes found"] > 9
    assert found["SVGD", "total variation"] > found["SGLD", "total variation"]
    assert (tmp_path / "landscape.png").read_bytes()[:4] == b"\x89PNG"
    page = (tmp_path / "report.html").read_text()
    assert "landscape.png" in page
    assert "ICSGLD" in page
