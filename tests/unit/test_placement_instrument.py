"""Conversions in loops, on a fake clock: exact times per iteration, and refusals."""

from types import SimpleNamespace

import pytest
from builders import Clock

from dlprof.probes.base import ArraySpec, Export, Import, Probe, Protocol, Use
from dlprof.runner.axes import PLACEMENTS
from dlprof.worker import timer
from dlprof.worker.instruments import placement
from dlprof.worker.subject import LoadedPath, run_setups

ALL = tuple(PLACEMENTS)
BUDGET_NS = 10**6
CONVERT_NS, USE_NS, BOTH_NS, WAIT_NS = 30_000, 100_000, 500_000, 4_000


class Watch(Clock):
    """Records the use of time."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def spend(self, what, ns, result=None):
        self.calls.append(what)
        self.advance(ns)
        return result


@pytest.fixture
def clock(monkeypatch):
    clock = Watch()
    monkeypatch.setattr(timer, "time", SimpleNamespace(perf_counter_ns=clock.perf_counter_ns))
    monkeypatch.setattr(timer, "counted", lambda: timer.Counted(0, 0, 0))
    monkeypatch.setattr(timer, "foreign_ns", lambda: 0)
    monkeypatch.setattr(timer, "loop_cost_ns", lambda: 0.0)
    return clock


class Foreign(Probe):
    name = "foreign"
    module = "array"
    distributions = ()
    exports = (Export("array", Protocol.NATIVE, "{x}"),)

    def create(self, spec):
        return f"x = make({spec.shape})"

    def pointer(self, array):
        return None

    def dtype(self, array):
        return "float32"


class Home(Probe):
    """A framework that charges time for importing foreign arrays."""

    name = "home"
    module = "array"
    distributions = ()
    imports = (
        Import("take", (Protocol.NATIVE,), "take({x})"),
        Import("launch", (Protocol.NATIVE,), "take({x})", returns_array=False),
    )

    def __init__(self, operation="use({x})", many=None):
        self.operation, self.many = operation, many

    def use(self, device):
        return self.operation

    def use_many(self, spec):
        return self.many

    def wait(self, device):
        return "wait({x})"


def subject_for(clock, consumer=None, way=0, strict=False):
    consumer, producer = consumer or Home(), Foreign()

    def use(array):
        if array.home:
            return clock.spend("use", USE_NS, "used")
        if strict:
            raise TypeError("x is foreign")
        return clock.spend("use foreign", USE_NS + BOTH_NS, "used")

    def array(shape, home):
        return SimpleNamespace(shape=shape, home=home)

    names = run_setups(producer, consumer, consumer.imports[way]) | {
        "make": lambda shape: array(shape, home=False),
        "take": lambda x: clock.spend("take", CONVERT_NS, array(x.shape, home=True)),
        "use": use,
        "wait": lambda x: clock.spend(f"wait {x}" if x == "used" else "wait", WAIT_NS),
        "mix": lambda x, w: clock.spend((x.home, w.home, w.shape), USE_NS, "used"),
    }
    path = LoadedPath(producer, consumer, Foreign.exports[0], consumer.imports[way], names)
    return path.subject(ArraySpec((4, 4), "float32"))


def measured(clock, *consumer, placements=ALL, **options):
    return placement.measure(subject_for(clock, *consumer, **options), BUDGET_NS, placements)


def times(found):
    return {name: timing["samples_ns"][0] for name, timing in found["times"].items()}


def test_the_loops_cost_the_sum_of_their_calls_and_each_iteration_waits(clock):
    found = measured(clock)
    assert times(found) == {
        "in-loop": CONVERT_NS + USE_NS + WAIT_NS,
        "hoisted": USE_NS + WAIT_NS,
        "implicit": BOTH_NS + USE_NS + WAIT_NS,
    }
    assert (found["use"], found["refused"]) == ("use(x)", {})
    measured(clock, placements=("in-loop",))
    assert clock.calls[-9:] == ["take", "use", "wait used"] * 3


def test_a_placement_that_does_not_work_is_refused_with_a_message(clock):
    found = measured(clock, strict=True)
    assert found["refused"] == {"implicit": "TypeError: x is foreign"}
    assert set(found["times"]) == {"in-loop", "hoisted"}
    found = measured(clock, way=1)
    assert "leaves no array behind" in found["refused"]["hoisted"]
    assert set(found["times"]) == {"implicit"}
    found = measured(clock, Home("missing({x})"), placements=("hoisted",))
    assert (found["use"], found["times"]) == (None, {})
    assert "NameError" in found["refused"]["hoisted"]


def test_all_arrays_of_a_richer_operation_are_converted(clock):
    found = measured(clock, Home(many=Use("mix({x}, {w})", {"w": (3, 3)})))
    assert found["use"] == "mix(x, w)"
    assert times(found)["in-loop"] == 2 * CONVERT_NS + USE_NS + WAIT_NS
    assert (True, True, (3, 3)) in clock.calls
    assert (False, False, (3, 3)) in clock.calls
