"""Random programs of queue, convert and read, against a model that knows what is ordered.

The model knows no times: it keeps, for every stream and for the host, which writes are certain to
have landed before whatever comes next there, by the rules of the CUDA driver's documentation.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_device import (
    STREAM_KINDS,
    Behaviour,
    FakeFramework,
    SimulatedDevice,
    pair,
    stream_of,
)

from dlprof.worker.instruments import ordering
from dlprof.worker.instruments.ordering import SEVERITY

pytestmark = pytest.mark.unit

MS = 1_000_000
ORDERS = ("host", "device", "event", "legacy", "nothing")
COPIES = (None, "in turn", "at once")
"""None for a view; a copy at once is made before anything is ordered or waited for."""
FRAMEWORKS = 4
HOST_NS = 100_000  # more than any call costs the host that does not wait


class Model:
    """Which writes are certain to be seen by what is queued next on each stream."""

    def __init__(self, kinds):
        self.kinds = dict(enumerate(kinds)) | {"legacy": "legacy"}
        # Frameworks on the legacy or the per-thread default stream share it.
        self.stream = {
            one: kind if kind in ("legacy", "per-thread") else one
            for one, kind in self.kinds.items()
        }
        self.landed = {stream: set() for stream in self.stream.values()}
        self.host = set()
        self.writes = 0

    def certain(self, one):
        """What has landed for certain before work that is queued now."""
        stream = self.stream[one]
        seen = self.host | self.landed[stream]
        if self.kinds[one] == "legacy":
            seen |= set().union(*(self.landed[self.stream[other]] for other in self.blocking()))
        elif self.kinds[one] != "non-blocking":
            seen |= self.landed["legacy"]
        return seen

    def blocking(self):
        return [one for one, kind in self.kinds.items() if kind != "non-blocking"]

    def write(self, one):
        """Queue a write; returns its number and what it was certain to see."""
        seen = self.certain(one)
        self.writes += 1
        self.landed[self.stream[one]] = seen | {self.writes}
        return self.writes, seen

    def turn(self, order, giver, taker):
        """What a conversion does before it touches the array."""
        before = self.certain(giver)
        if order == "host":
            self.host |= before
        elif order == "device":
            self.host |= set().union(*self.landed.values())
        elif order in ("event", "legacy"):
            # The event itself is work on the giver's stream, and its wait work on the other.
            self.landed[self.stream[giver]] = before
            waits = taker if order == "event" else "legacy"
            self.landed[self.stream[waits]] = self.certain(waits) | before


step = st.one_of(
    st.tuples(st.just("queue"), st.integers(0, 3), st.integers(0, 9), st.integers(1, 50)),
    st.tuples(
        st.just("convert"),
        st.integers(0, 3),
        st.integers(0, 9),
        st.sampled_from(ORDERS),
        st.sampled_from(COPIES),
    ),
    st.tuples(st.just("read"), st.integers(0, 3), st.integers(0, 9)),
    st.tuples(st.just("work on the host"), st.integers(1, 60)),
)


def behaviour(order, copies):
    return Behaviour(order=order, copies=copies is not None, hasty=copies == "at once")


class Program:
    """Runs steps on the simulated device and in the model at once."""

    def __init__(self, kinds):
        self.device = SimulatedDevice()
        self.model = Model(kinds)
        self.frameworks = [
            FakeFramework(self.device, stream_of(self.device, kind), name=f"f{one}")
            for one, kind in enumerate(kinds)
        ]
        # Each array with its framework, its write, whether it is certain to be right, its value.
        self.arrays = [(self.frameworks[0].array(8), 0, 0, True, 0)]

    def run(self, steps):
        for name, *arguments in steps:
            getattr(self, name.split()[0])(*arguments)

    def queue(self, one, which, length_ms):
        array, _, write, right, value = self.arrays[which % len(self.arrays)]
        number, seen = self.model.write(one)
        right = right and write in seen | {0}
        result = self.frameworks[one].compute(array, length_ms * MS)
        self.arrays.append((result, one, number, right, value + 1))

    def convert(self, one, which, order, copies):
        array, giver, write, right, value = self.arrays[which % len(self.arrays)]
        framework = self.frameworks[one]
        framework.behaviour = behaviour(order, copies)
        began, end = self.device.now_ns, self.device.end_of(array.stream)
        result = framework.from_dlpack(array)
        if order in ("host", "device"):
            assert self.device.now_ns >= end
        else:
            assert self.device.now_ns - began < HOST_NS
        if copies != "at once":
            self.model.turn(order, giver, one)
        if copies:
            number, seen = self.model.write(one)
            right, write = right and write in seen | {0}, number
        if copies == "at once":
            self.model.turn(order, giver, one)
        self.arrays.append((result, one, write, right, value))

    def read(self, one, which):
        array, _, write, right, value = self.arrays[which % len(self.arrays)]
        certain = right and write in self.model.certain(one) | {0}
        seen = self.frameworks[one].to_numpy(array)
        self.model.host |= self.model.certain(one)
        if certain:
            assert seen[0] == value

    def work(self, length_ms):
        self.device.spend(length_ms * MS)


@settings(max_examples=300)
@given(
    kinds=st.tuples(*[st.sampled_from(STREAM_KINDS)] * FRAMEWORKS),
    steps=st.lists(step, max_size=30),
)
def test_what_is_ordered_is_read_right_and_only_host_waits_take_time(kinds, steps):
    Program(kinds).run(steps)


def reaches(order, giver, taker, copies=None):
    """What is true of an order between two streams of these kinds, each with its own stream."""
    waits = {"host": "host-sync", "device": "device-sync", "event": "stream-ordered"}
    model = Model([giver, taker])
    write, _ = model.write(0)
    if copies == "at once" and write not in model.certain(1):
        return "unordered"
    if order in waits:
        return waits[order]
    model.turn(order, 0, 1)
    return "stream-ordered" if write in model.certain(1) else "unordered"


def true_verdict(order, kinds, movable, copies=None):
    """The worse of the verdicts on default streams and on those they can be moved to."""
    moved = ["non-blocking" if moves else kind for kind, moves in zip(kinds, movable, strict=True)]
    found = [reaches(order, *kinds, copies)]
    if any(movable):
        found.append(reaches(order, *moved, copies))
    return max(found, key=SEVERITY.index)


kind = st.sampled_from(STREAM_KINDS)
background = st.lists(st.tuples(kind, st.integers(1, 500)), max_size=4)


@settings(max_examples=150)
@given(
    order=st.sampled_from(ORDERS),
    kinds=st.tuples(kind, kind),
    private=st.tuples(st.booleans(), st.booleans()),
    copies=st.sampled_from(COPIES),
    host_us=st.integers(1, 2_000),
    others=background,
)
def test_the_verdict_is_the_true_one(order, kinds, private, copies, host_us, others):
    device = SimulatedDevice()
    case, _ = pair(
        device,
        kinds,
        Behaviour(private=private[0]),
        order=order,
        copies=copies is not None,
        hasty=copies == "at once",
        private=private[1],
        host_ns=1_000 * host_us,
    )
    for one, length_ms in others:
        device.spin(stream_of(device, one), length_ms * MS)
    found = ordering.measure(case, device)
    truth = true_verdict(order, kinds, [not one for one in private], copies)
    assert found["verdict"] == truth
    waits = {"host": "host-sync", "device": "device-sync"}.get(order)
    assert found["evidence"].get("waits") == (waits if truth == "unordered" else None)


@settings(max_examples=100)
@given(
    order=st.sampled_from((*ORDERS, "half")),
    kinds=st.tuples(kind, kind),
    mute=st.booleans(),
    blocks=st.booleans(),
)
def test_where_it_cannot_tell_it_says_so_and_nothing_else(order, kinds, mute, blocks):
    producer = Behaviour(private=True, blocks=blocks)
    case, device = pair(None, kinds, producer, order=order, private=True, mute=mute)
    found = ordering.measure(case, device)
    if order == "half":
        truths = {"unknown", reaches("nothing", *kinds)}
    else:
        truths = {"unknown", true_verdict(order, kinds, [False, False])}
    assert found["verdict"] in truths
    assert found["verdict"] != "unknown" or found["evidence"]["reason"]
