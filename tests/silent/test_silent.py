"""Wrong runs are named, right ones are not: most take seconds, so that they run with the long tests."""

import pytest

from tests.silent import blind_cases, cases

pytestmark = pytest.mark.long

ALL = [*cases.CASES, *blind_cases.CASES]
WRONG = [case for case in ALL if not case.is_good]
# A single chain is always told that nothing can be compared with it.
ALONE = [case for case in ALL if case.name == "sgld, one long chain"]
GOOD = [case for case in ALL if case.is_good and case not in ALONE]


def notes_of(case, seed):
    return case.run(seed).summary().notes[1:]


def test_there_are_enough():
    assert len(WRONG) >= 55
    assert len(GOOD) >= 45


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.name)
def test_a_wrong_run_is_named(case, seed):
    assert notes_of(case, seed), case.why


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("case", ALONE, ids=lambda case: case.name)
def test_a_good_run_of_one_chain_is_told_that_alone(case, seed):
    (note,) = notes_of(case, seed)
    assert note.startswith("One chain: convergence cannot be checked")


@pytest.mark.parametrize("seed", [0, 1])
def test_good_runs_are_left_alone(seed):
    alarms = {case.name: notes for case in GOOD if (notes := notes_of(case, seed))}
    assert len(alarms) <= 1, alarms
