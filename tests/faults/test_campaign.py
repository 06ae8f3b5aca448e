"""A short campaign of faults, and the parts of it that decide what a fault did."""

import collections
import random
import sys

import pytest

from tests.faults import campaign


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs fork and /proc")
def test_disturbed_runs_end_equal_or_are_refused(tmp_path):
    found = campaign.run(8, 5, tmp_path)
    assert campaign.failures(found) == []
    assert {kind: ends.total() for kind, ends in found.items() if ends} == {
        "kill": 2,
        "terminate": 1,
        "kill in a checkpoint": 1,
        "disk full": 1,
        "cut": 1,
        "flip": 2,
    }
    # Only damaged files are refused.
    assert all(not ends["refused"] for kind, ends in found.items() if kind not in ("cut", "flip"))


def test_other_ends_are_failures():
    found = {"kill": collections.Counter({"equal": 3, "WRONG DRAWS": 1}), "cut": collections.Counter({"refused": 2})}
    assert campaign.failures(found) == ["kill: WRONG DRAWS"]
    assert "| kill | 4 | 3 | 0 | 1 |" in campaign.table(found)
    assert "| cut | 2 | 0 | 2 | 0 |" in campaign.table(found)


def test_ends_are_judged():
    judge = campaign.Campaign.__new__(campaign.Campaign)
    judge.digest = "a"
    assert judge._judged({"digest": "a"}) == "equal"
    assert judge._judged({"digest": "b"}) == "WRONG DRAWS"
    assert judge._judged({"error": "isotherm.foundation.errors.InputError"}) == "refused"
    assert judge._judged({"error": "builtins.KeyError"}).startswith("FOREIGN")
    assert judge._judged({"error": "hung"}).startswith("FOREIGN")


def test_files_are_damaged(tmp_path):
    path = tmp_path / "file"
    for damage in (campaign.cut, campaign.flip):
        path.write_bytes(b"content")
        damage(path, random.Random(0))
        assert path.read_bytes() != b"content"
        assert len(path.read_bytes()) <= len(b"content")
