"""Every option of every constructor reaches a part of the sampler, and the law of that part is judged."""

import pathlib

import pytest

from isotherm.samplers import METHODS
from tests.laws.options import ELSEWHERE, changed_by, judged, options_of, value_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Options that a constructor shares with others, and refuses.
REFUSED = {("cvr_resghmc", "ladder")}
ALL = [(method, option) for method in METHODS for option in options_of(method) if (method, option) not in REFUSED]
# Fields without a law of their own, and why.
EXCEPTIONS: dict[tuple[str, str], str] = {}


def test_every_option_sets_a_field_and_every_field_is_judged():
    known = judged()
    for method, option in ALL:
        fields = changed_by(method, option, value_of(method, option))
        assert fields, f"`{option}` of `{method}` changes nothing"
        missing = fields - known - set(EXCEPTIONS)
        assert not missing, (
            f"`{option}` of `{method}` sets {missing}, whose law no cell of tests/laws/options.py judges"
        )
    assert not set(EXCEPTIONS) & known


def test_an_option_without_a_cell_is_noticed():
    without = judged() - {("Exchange", "cooling")}
    fields = {method: changed_by(method, "cooling", 5) for method in METHODS if "cooling" in options_of(method)}
    assert len(fields) == 7
    assert all(found - without for found in fields.values())


@pytest.mark.parametrize("test", sorted({one.test for one in ELSEWHERE}))
def test_tests_elsewhere_are_there(test):
    path, _, function = test.partition("::")
    assert f"\ndef {function}(" in (ROOT / path).read_text()
