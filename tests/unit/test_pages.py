"""Whether memory may be written, and whether it is a file's; real mappings."""

from __future__ import annotations

import ctypes
import mmap
import sys
from dataclasses import replace

import numpy
import pytest
from builders import make_subject

from dlprof.probes.base import ArraySpec, Export, Import, Protocol, Unsupported
from dlprof.probes.numpy import NumPy
from dlprof.worker.instruments import early_write, lifetime, ownership
from dlprof.worker.memory import is_read_only, is_shared
from dlprof.worker.subject import OneArray

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


class Mapped(NumPy):
    """Arrays that are files in memory."""

    def __init__(self, path, mode):
        self.text = f"x = numpy.load({str(path)!r}, mmap_mode={mode!r})"

    def create(self, spec):
        return self.text


class OnesOwn(OneArray, Mapped):
    """The user's own."""


def subject(tmp_path, mode, kind=OnesOwn, code="numpy.array({x})"):
    mapped(tmp_path, mode)
    way = Import("any", (Protocol.NATIVE,), code)
    return make_subject(
        export=Export("array", Protocol.NATIVE, "{x}"),
        import_=way,
        producer=kind(tmp_path / "a.npy", mode),
        spec=ArraySpec((8,), "float64"),
    )


@pytest.mark.parametrize(("code", "verdict"), [("numpy.array({x})", "copy"), ("{x}[...]", "view")])
def test_memory_that_cannot_be_written_is_not_when_ownership_is_looked_at(tmp_path, code, verdict):
    found = ownership.measure(subject(tmp_path, "r", code=code))
    assert found["evidence"]["source_write_shows"] is None
    assert found["evidence"]["not_written"] == ownership.NOT_WRITTEN
    assert found["verdict"] == verdict


@pytest.mark.parametrize("instrument", [early_write, lifetime])
def test_a_file_of_the_users_is_not_written(tmp_path, instrument):
    case = subject(tmp_path, "r+")
    before = (tmp_path / "a.npy").read_bytes()
    with pytest.raises(Unsupported, match="a file's, or shared"):
        instrument.measure(case)
    del case
    assert (tmp_path / "a.npy").read_bytes() == before


class Fills(NumPy):
    """Writes without asking whether the memory can be written, as some frameworks do."""

    def write(self, array, value):
        ctypes.memset(array.ctypes.data, value, array.nbytes)


def test_no_framework_is_let_write_what_cannot_be_written(tmp_path):
    """The process would die of it."""
    case = subject(tmp_path, "r", code="{x}[...]")
    assert ownership.measure(replace(case, consumer=Fills()))["verdict"] == "view"


def test_whose_a_file_of_the_users_is_is_found_without_a_write(tmp_path):
    case = subject(tmp_path, "r+", code="{x}[...]")
    found = ownership.measure(case)
    assert found["verdict"] == "view"
    assert found["evidence"]["reason"].endswith("both begin at the same address")
