"""Phases on a fake clock: export, import and release told apart."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from builders import make_subject

from dlprof.probes.base import Export, Import, Protocol
from dlprof.worker import timer
from dlprof.worker.instruments import times

pytestmark = pytest.mark.unit

READ_NS = 25


class Clock:
    def __init__(self):
        self.now_ns = 0

    def perf_counter_ns(self):
        self.now_ns += READ_NS
        return self.now_ns

    def advance(self, ns):
        self.now_ns += ns


class Result:
    """Takes its time to be released."""

    def __init__(self, clock, ns):
        self.clock = clock
        self.ns = ns

    def __del__(self):
        self.clock.advance(self.ns)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    for module in (times, timer):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter_ns=clock.perf_counter_ns))
    return clock


def measured(clock, host_ns=1000.0, budget_ns=10_000, export="(spend(100), {x})[1]"):
    def convert(handed):
        clock.advance(2_000)
        return Result(clock, 30_000)

    return times.phases(
        make_subject(
            Export("out", Protocol.DLPACK, export),
            Import("in", (Protocol.DLPACK,), "convert({x})"),
            spend=clock.advance,
            convert=convert,
        ),
        host_ns,
        budget_ns,
    )


def test_each_phase_has_its_own_time_without_the_clocks(clock):
    found = measured(clock)
    assert (found["export_ns"], found["import_ns"], found["release_ns"]) == (100, 2_000, 30_000)


@pytest.mark.parametrize(
    ("host_ns", "budget_ns", "count"),
    [
        (1000.0, 10_000, 10),
        (1e9, 10_000, times.LEAST_LAPS),
        (1.0, 10**9, times.MOST_LAPS),
        (-3.0, 100, 100),
    ],
)
def test_the_budget_says_how_many_conversions_within_bounds(clock, host_ns, budget_ns, count):
    assert measured(clock, host_ns, budget_ns)["count"] == count
