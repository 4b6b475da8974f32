"""The kernel's high-water mark: how far the resident set rose."""

from __future__ import annotations

import pytest

from dlprof.worker.instruments import peak_memory

pytestmark = pytest.mark.unit

MIB = 1 << 20


@pytest.mark.parametrize(
    ("high", "risen"),
    [(1000, 0), (1100, 100), (1200, 200), (900, 0)],
    ids=["a view", "a copy", "a copy of a copy", "memory that shrank"],
)
def test_what_was_new_at_once_is_what_rose(monkeypatch, high, risen):
    monkeypatch.setattr(peak_memory, "high_water_bytes", lambda: high * MIB)
    assert peak_memory.risen_bytes(1000 * MIB) == risen * MIB


def test_a_mark_begins_with_what_is_resident(monkeypatch):
    asked = []
    monkeypatch.setattr(peak_memory, "LOOK_S", 0)
    monkeypatch.setattr(peak_memory, "resident_bytes", lambda: 7 * MIB)
    monkeypatch.setattr(peak_memory, "reset_mark", lambda: asked.append("reset"))
    assert peak_memory.begin_mark() == 7 * MIB
    assert asked == ["reset"]


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
