"""Whether memory may be written, and whether it is a file's; real mappings."""

from __future__ import annotations

import mmap
import sys

import numpy
import pytest

from dlprof.worker.pages import is_read_only, is_shared, mapping_of

pytestmark = [
    pytest.mark.unit,
    pytest.mark.skipif(sys.platform != "linux", reason="told by Linux only"),
]


def address(buffer):
    return numpy.frombuffer(buffer, "uint8").ctypes.data


def mapped(tmp_path, mode):
    path = tmp_path / "a.npy"
    numpy.save(path, numpy.arange(8.0))
    return numpy.load(path, mmap_mode=mode)


@pytest.mark.parametrize(
    ("mode", "read_only", "shared"), [("r", True, True), ("r+", False, True), ("c", False, False)]
)
def test_what_is_a_file_s_is_told_from_what_is_not(tmp_path, mode, read_only, shared):
    array = mapped(tmp_path, mode)
    found = is_read_only(array.ctypes.data), is_shared(array.ctypes.data)
    assert found == (read_only, shared)


def test_memory_of_the_heap_and_without_a_file_is_its_own():
    for begins in (numpy.ones(8).ctypes.data, address(mmap.mmap(-1, 4096))):
        assert (is_read_only(begins), is_shared(begins)) == (False, False)


@pytest.mark.parametrize("nowhere", [None, 1])
def test_of_memory_that_is_not_there_nothing_is_known(nowhere):
    assert mapping_of(nowhere) is None
    assert (is_read_only(nowhere), is_shared(nowhere)) == (False, False)
