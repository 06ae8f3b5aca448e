"""When draws are taken, against a list of all iterations."""

import dataclasses
import json

import numpy as np
import pytest

from isotherm.foundation.schedules import CollectionWindow
from isotherm.run.record_times import RecordTimes


@pytest.mark.parametrize(
    "window", [None, CollectionWindow(10, 0.7), CollectionWindow(7, 0.3), CollectionWindow(100, 0.99)]
)
@pytest.mark.parametrize(
    ("num_steps", "burn_in", "thinning"), [(1, 0, 1), (200, 0, 1), (203, 13, 4), (500, 7, 10), (95, 90, 7)]
)
def test_times_are_those_of_a_list(num_steps, burn_in, thinning, window):
    listed = np.arange(burn_in, num_steps, thinning)
    listed = listed if window is None else listed[window.holds(listed)]
    times = RecordTimes(num_steps, burn_in, thinning, window)
    assert len(times) == len(listed)
    np.testing.assert_array_equal(times[:], listed)
    np.testing.assert_array_equal(times[2:5], listed[2:5])
    np.testing.assert_array_equal(times[-3:], listed[-3:])
    assert [times.before(k) for k in range(num_steps + 3)] == [int(np.sum(listed < k)) for k in range(num_steps + 3)]
    if len(listed):
        assert (times[0], times[-1]) == (listed[0], listed[-1])
        np.testing.assert_array_equal(times[np.array([0, -1])], listed[[0, -1]])
    assert RecordTimes.from_json(json.loads(json.dumps(dataclasses.asdict(times)))) == times


def test_very_many_times_cost_nothing():
    times = RecordTimes(10**9, 100, 1, CollectionWindow(1_000, 0.5))
    assert len(times) == 500_000_000
    assert (times[0], times[-1]) == (500, 999_999_999)
    with pytest.raises(IndexError, match="There are 500000000 draws"):
        times[500_000_000]
    assert times[400_000_000:400_000_002].tolist() == [800_000_500, 800_000_501]
