"""Where records and pages are in the repository."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
RESULTS = ROOT / "reproduction" / "results"
