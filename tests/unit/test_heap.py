"""Where on the heap the next large block begins."""

import sys

import numpy
import pytest

from dlprof.runner.schedule import offset_of
from dlprof.worker.heap import PAGE_BYTES, next_block_at

SIZE_BYTES = 100_000  # glibc maps larger blocks by themselves at first


def begins_at():
    return numpy.empty(SIZE_BYTES, "int8").ctypes.data % PAGE_BYTES


@pytest.mark.skipif(sys.platform != "linux", reason="the heap is glibc's")
@pytest.mark.parametrize("offset", [0, 16, 32, 48, 2064])
def test_the_next_copy_begins_where_it_is_asked_to(offset):
    with next_block_at(offset, SIZE_BYTES):
        found = [begins_at() for _ in range(3)]
    assert found == [offset] * 3


def test_four_rounds_in_a_row_meet_all_places_in_a_line():
    offsets = [offset_of(round_) for round_ in range(256)]
    assert sorted(offsets) == list(range(0, PAGE_BYTES, 16))
    for first in range(253):
        assert {offset % 64 for offset in offsets[first : first + 4]} == {0, 16, 32, 48}
