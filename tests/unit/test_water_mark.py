"""The kernel's high-water mark: how far the resident set rose."""

from __future__ import annotations

import pytest

from dlprof.worker.instruments import peak_memory

pytestmark = pytest.mark.unit


def test_it_waits_until_the_resident_set_falls_no_more(monkeypatch):
    seen = iter([9, 9, 8, 8, 7, 7, 7, 7, 1])
    monkeypatch.setattr(peak_memory, "LOOK_S", 0)
    monkeypatch.setattr(peak_memory, "resident_bytes", lambda: next(seen))
    assert peak_memory.settled_bytes() == 7


def test_it_does_not_wait_for_ever(monkeypatch):
    falling = iter(range(1000, 0, -1))
    monkeypatch.setattr(peak_memory, "LOOK_S", 0)
    monkeypatch.setattr(peak_memory, "resident_bytes", lambda: next(falling))
    assert peak_memory.settled_bytes() == 1000 - peak_memory.MOST_LOOKS
