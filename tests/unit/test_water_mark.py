"""The kernel's marks: what rose, and what was used again."""

from __future__ import annotations

import pytest

from dlprof.worker import water_mark
from dlprof.worker.water_mark import LEAST_REUSED_BYTES, Mark

pytestmark = pytest.mark.unit

MIB = 1 << 20
SOURCE = 100 * MIB


@pytest.fixture
def now(monkeypatch):
    """Say what the kernel says now: high-water mark, resident set and touched pages."""

    def say(high, resident, touched):
        monkeypatch.setattr(water_mark, "high_water_bytes", lambda: high)
        monkeypatch.setattr(water_mark, "resident_bytes", lambda: resident)
        monkeypatch.setattr(water_mark, "touched_bytes", lambda: touched)

    return say


BEFORE = Mark(1000 * MIB, 0)


@pytest.mark.parametrize(
    ("high", "resident", "touched", "needed"),
    [
        (1000, 1000, 0, 0),  # a view
        (1100, 1100, 200, 100),  # a copy into new memory
        (1200, 1100, 200, 200),  # a copy of a copy, which is gone
        (1000, 1000, 200, 100),  # a copy into memory that was there
        (1100, 1100, 300, 200),  # a new copy, by way of memory that was there
        (1100, 1100, 200 + 30, 100),  # and some pages of code
    ],
)
def test_what_is_new_and_what_is_used_again_is_needed(now, high, resident, touched, needed):
    now(high * MIB, resident * MIB, touched * MIB)
    assert water_mark.needed_bytes(BEFORE, SOURCE) == needed * MIB


def test_touched_pages_of_a_small_array_are_code(now):
    now(1000 * MIB, 1000 * MIB, LEAST_REUSED_BYTES)
    assert water_mark.needed_bytes(BEFORE, MIB) == 0


def test_where_touched_pages_are_not_counted_only_new_ones_are_known(now):
    now(1100 * MIB, 1100 * MIB, None)
    assert water_mark.needed_bytes(BEFORE, SOURCE) == 100 * MIB
