"""Which chains are written out in one program."""

import pytest

from isotherm.engine.chain_mode import group_size


@pytest.mark.parametrize(("number", "size"), [(1, 1), (4, 4), (5, 5), (6, 3), (7, 1), (8, 4), (10, 2), (16, 4)])
def test_up_to_five_are_written_out_at_once(number, size):
    """Five are the usual number of repeats; one after another they would take five times as long."""
    assert group_size(number) == size
