"""Times of a case: phases on a fake clock."""

from types import SimpleNamespace

import pytest
from builders import Clock, make_subject

from dlprof.probes.base import Export, Import, Protocol
from dlprof.worker import timer
from dlprof.worker.instruments import times

READ_NS = 25


class Result:
    """Takes its time to be released."""

    def __init__(self, clock):
        self.clock = clock

    def __del__(self):
        self.clock.advance(30_000)


@pytest.mark.parametrize(
    ("host_ns", "budget_ns", "count"),
    [
        (1000.0, 10_000, 10),
        (1e9, 10_000, times.LEAST_LAPS),
        (1.0, 10**9, times.MOST_LAPS),
        (-3.0, 100, 100),
    ],
)
def test_each_phase_has_its_own_time_without_the_clocks(monkeypatch, host_ns, budget_ns, count):
    clock = Clock(READ_NS)
    for module in (times, timer):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter_ns=clock.perf_counter_ns))

    def convert(handed):
        clock.advance(2_000)
        return Result(clock)

    subject = make_subject(
        Export("out", Protocol.DLPACK, "(spend(100), {x})[1]"),
        Import("in", (Protocol.DLPACK,), "convert({x})"),
        spend=clock.advance,
        convert=convert,
    )
    found = times.phases(subject, host_ns, budget_ns)
    assert (found["export_ns"], found["import_ns"], found["release_ns"]) == (100, 2_000, 30_000)
    assert found["count"] == count
