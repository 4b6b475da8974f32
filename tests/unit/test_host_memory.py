"""How much memory this process uses."""

from __future__ import annotations

import ctypes

import numpy
import pytest

from dlprof.worker import memory

pytestmark = pytest.mark.unit

BLOCK_BYTES = 64 << 10


def test_the_resident_set_is_measured_in_bytes():
    before = memory.resident_bytes()
    block = numpy.ones(64 << 20, "uint8")
    assert memory.resident_bytes() - before > 32 << 20
    del block


@pytest.mark.parametrize("size_bytes", [BLOCK_BYTES, 64 << 20])
def test_what_malloc_hands_out_is_counted_to_the_byte_but_for_its_headers(size_bytes):
    malloc_bytes = memory.malloc_meter()
    if malloc_bytes is None:
        pytest.skip("the C library has no mallinfo2")
    numpy.empty(size_bytes, "uint8")
    before = malloc_bytes()
    block = numpy.empty(size_bytes, "uint8")
    held = malloc_bytes() - before
    assert size_bytes <= held < size_bytes + 16384
    del block
    assert malloc_bytes() - before < 16384


def test_a_c_library_without_mallinfo2_has_no_meter(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert memory.malloc_meter() is None
