"""Deliberate faults fit the source and the tests that should see them."""

import dataclasses

from tests.mutants.run import read_faults


def test_every_fault_has_its_text_and_its_tests():
    assert len(read_faults()) > 100


def test_a_fault_that_the_source_has_left_behind_is_named():
    fault = dataclasses.replace(read_faults()[0], old="a text of before", tests=("tests/unit/test_tilt.py::test_gone",))
    text, test = fault.obsolete()
    assert "occurs 0 times" in text
    assert "no test tests/unit/test_tilt.py::test_gone" in test
