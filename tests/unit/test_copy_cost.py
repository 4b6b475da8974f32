"""The best cost of a copy: one memcpy of the array, or shares of it on several processors."""

import pytest

from dlprof.worker.instruments import copy_cost
from dlprof.worker.timer import Timing


@pytest.fixture
def _timed_by_bytes(monkeypatch):
    """Simulate a memcpy of 1, 2 or 3 ns per byte, with the work shared by four processors."""
    monkeypatch.setattr(copy_cost, "_cache", {})
    monkeypatch.setattr(copy_cost.os, "sched_getaffinity", lambda _: set(range(4)))
    monkeypatch.setattr(copy_cost.timer, "compile_loop", lambda _, names: names["_size"])
    samples = lambda size, *_: Timing(1, [1.0 * size, 2.0 * size, 3.0 * size])  # noqa: E731
    monkeypatch.setattr(copy_cost.timer, "sample", samples)


@pytest.mark.usefixtures("_timed_by_bytes")
@pytest.mark.parametrize("size", [64 << 10, 4 * copy_cost.LARGEST])
def test_no_copy_is_faster_than_the_fastest_memcpy_of_one_processors_share(size):
    found = copy_cost.measure(size, 1)
    assert found["size_bytes"] == size
    assert found["memcpy_gb_per_s"] == 1 / 2
    assert found["least_ns"] == size / 4
