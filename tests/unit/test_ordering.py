"""Ordering: the judgement on slopes, and every verdict on a simulated device."""

from __future__ import annotations

import dataclasses
import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_device import STREAM_KINDS, Behaviour, FakeFramework, SimulatedDevice, pair

from dlprof.device.cuda import LEGACY_STREAM
from dlprof.worker.instruments import ordering
from dlprof.worker.instruments.ordering import LENGTHS_NS, Fit, Slopes, fit, grows, judge
from dlprof.worker.load import default_sides, load_of, own_sides, stream_for

pytestmark = pytest.mark.unit

MS = 1_000_000
WAITS, FREE, HALF = Fit(1.0, 0, (0.9, 1.1)), Fit(0.0, 0, (-0.1, 0.1)), Fit(0.5, 0, (0.4, 0.6))

# host, ready, unrelated, values; the first row that fits decides, and * is anything.
TRUTH = [
    ("*", "*", "*", False, "unordered"),
    (HALF, "*", "*", "*", "unknown"),
    (WAITS, "*", WAITS, "*", "device-sync"),
    (WAITS, "*", HALF, "*", "unknown"),
    (WAITS, "*", FREE, "*", "host-sync"),
    (WAITS, "*", None, "*", "host-sync"),
    (FREE, WAITS, "*", "*", "stream-ordered"),
    (FREE, FREE, "*", "*", "unordered"),
    (FREE, HALF, "*", "*", "unknown"),
    (FREE, None, "*", "*", "unknown"),
]


def true_verdict(*seen):
    for *row, verdict in TRUTH:
        if all(want in ("*", got) for want, got in zip(row, seen, strict=True)):
            return verdict
    raise AssertionError(f"no row for {seen}")


SLOPES = [WAITS, FREE, HALF, None]
EVERYTHING = list(itertools.product(SLOPES[:3], SLOPES, SLOPES, [True, False, None]))


@pytest.mark.parametrize("seen", EVERYTHING, ids=range(len(EVERYTHING)))
def test_the_verdict_on_everything_that_can_be_seen(seen):
    verdict, reason = judge(Slopes(*seen))
    assert verdict == true_verdict(*seen)
    assert (reason is not None) == (verdict == "unknown")


@pytest.mark.parametrize(
    ("slope", "interval", "answer"),
    [
        (1.0, (0.9, 1.1), True),
        (0.8, (0.51, 1.1), True),
        (0.79, (0.7, 0.9), None),
        (1.0, (0.5, 1.5), None),
        (0.0, (-0.1, 0.1), False),
        (0.2, (0.1, 0.49), False),
        (0.21, (0.1, 0.3), None),
        (0.0, (-0.5, 0.5), None),
        (-3.0, (-4.0, 0.0), False),
    ],
)
def test_a_slope_is_settled_by_its_value_and_its_interval(slope, interval, answer):
    assert grows(Fit(slope, 0, interval)) is answer


def test_too_few_points_settle_nothing():
    assert fit([(5, 5), (15, 15), (45, 45)]) == ordering.NOTHING_KNOWN
    assert grows(ordering.NOTHING_KNOWN) is None


def test_queues_of_about_the_same_length_settle_nothing():
    assert fit([(100 + i, i) for i in range(9)]) == ordering.NOTHING_KNOWN


@given(slope=st.floats(-1, 2), intercept=st.integers(0, 100 * MS))
def test_points_on_a_line_give_that_line(slope, intercept):
    line = fit([(x, intercept + slope * x) for x in LENGTHS_NS * 3])
    assert line.slope == pytest.approx(slope, abs=1e-6)
    assert line.intercept_ns == pytest.approx(intercept, abs=100)
    assert line.interval == pytest.approx((slope, slope), abs=1e-6)


outliers = st.dictionaries(st.integers(0, 35), st.integers(0, 1_000 * MS), max_size=5)


@given(outliers)
def test_five_outliers_of_36_do_not_change_a_wait(wild):
    points = [(x, wild.get(i, x + MS)) for i, x in enumerate(LENGTHS_NS * 12)]
    assert grows(fit(points)) is True


RANKED = ["unordered", "device-sync", "host-sync", "unknown", "stream-ordered"]


@pytest.mark.parametrize(("bad", "good"), list(itertools.combinations_with_replacement(RANKED, 2)))
def test_of_two_runs_the_worse_one_counts_and_both_are_kept(bad, good):
    runs = {
        "default": {"verdict": good, "evidence": {"mark": good}},
        "own streams": {"verdict": bad, "evidence": {"mark": bad}},
    }
    found = ordering.worse(runs)
    assert (found["verdict"], found["evidence"]["mark"]) == (bad, bad)
    assert found["evidence"]["streams"] == ("default" if bad == good else "own streams")
    assert found["evidence"]["by_streams"] == runs


# On a simulated device


def on_default_streams(*arguments, **options):
    case, device = pair(*arguments, **options)
    load = load_of(case, case.producer.enqueue(case.spec), device, default_sides(case))
    return ordering.measure_load(load)


def implicitly_ordered(giver, taker):
    return "legacy" in (giver, taker) and "non-blocking" not in (giver, taker)


BOTH = list(itertools.product(STREAM_KINDS, repeat=2))


@pytest.mark.parametrize("copies", [True, False], ids=["copy", "view"])
@pytest.mark.parametrize("streams", BOTH, ids="-".join)
@pytest.mark.parametrize("order", ["host", "device", "event", "nothing", "half"])
def test_every_order_is_found_on_every_kind_of_stream(streams, copies, order):
    found = on_default_streams(streams=streams, order=order, copies=copies)
    ordered = implicitly_ordered(*streams) or streams == ("per-thread", "per-thread")
    by_driver = "stream-ordered" if ordered else "unordered"
    truth = TRUE | {"nothing": by_driver, "half": "unknown" if ordered else "unordered"}
    assert found["verdict"] == truth[order]
    assert found["evidence"]["values_right"] is (ordered or order not in ("nothing", "half"))


def test_evidence_holds_the_wait_as_a_slope_of_one():
    found = on_default_streams(order="host")["evidence"]
    assert found["host"]["slope"] == pytest.approx(1, abs=0.01)
    assert found["loaded"]["host_ns"] == pytest.approx(found["loaded"]["queued_ns"], rel=0.01)


def test_an_event_shows_a_race_that_the_consumers_own_wait_hides():
    """Its own wait waits for the whole device, so that every result looks ordered."""
    case, device = pair(order="nothing")
    wait = "consumer.gpu.synchronize_device()"
    case = dataclasses.replace(case, wait=wait)
    load = load_of(case, case.producer.enqueue(case.spec), device, default_sides(case))
    load = dataclasses.replace(load, look=lambda result: None)
    assert ordering.measure_load(load)["verdict"] == "unordered"


class TestPrivateStreams:
    """Frameworks whose streams cannot be reached, as TensorFlow's and JAX's."""

    PRIVATE = Behaviour(private=True)

    @pytest.mark.parametrize(
        ("order", "verdict"),
        [
            ("host", "host-sync"),
            ("device", "device-sync"),
            ("event", "stream-ordered"),
            ("nothing", "unordered"),
        ],
    )
    def test_every_verdict_is_found_by_the_frameworks_own_means(self, order, verdict):
        found = on_default_streams(producer=self.PRIVATE, private=True, order=order)
        assert found["verdict"] == verdict

    def test_a_consumer_that_cannot_be_asked_is_unknown(self):
        found = on_default_streams(private=True, mute=True, order="event")
        assert found["verdict"] == "unknown"
        assert "cannot be asked" in found["evidence"]["reason"]

    def test_a_consumer_that_cannot_be_asked_is_convicted_by_stale_values(self):
        found = on_default_streams(private=True, mute=True, order="nothing")
        assert found["verdict"] == "unordered"

    def test_a_queue_that_runs_in_its_caller_is_unknown(self):
        found = on_default_streams(producer=Behaviour(private=True, blocks=True))
        assert found["verdict"] == "unknown"
        assert "runs it" in found["evidence"]["reason"]


class TestValues:
    def test_a_conversion_that_changes_values_is_not_taken_for_a_race(self):
        case, device = pair(order="event")
        load = load_of(case, case.producer.enqueue(case.spec), device, default_sides(case))
        load = dataclasses.replace(load, is_right=lambda seen, array: False)
        found = ordering.measure_load(load)
        assert (found["verdict"], found["evidence"]["values_right"]) == ("stream-ordered", None)


class TestBothStreams:
    """As :func:`measure` does it: on default streams, and on non-blocking ones."""

    def measured(self, **options):
        case, device = pair(**options)
        return ordering.measure(case, device)

    def by_streams(self, found):
        return {name: run["verdict"] for name, run in found["evidence"]["by_streams"].items()}

    def test_an_order_that_only_the_default_stream_gives_is_found_missing(self):
        found = self.measured(streams=("legacy", "legacy"), order="nothing")
        assert found["verdict"] == "unordered"
        assert found["evidence"]["streams"] == "own streams"
        assert self.by_streams(found) == {"default": "stream-ordered", "own streams": "unordered"}

    def test_one_framework_alone_is_put_on_a_stream_if_the_other_refuses(self):
        found = self.measured(streams=("legacy", "legacy"), order="nothing", private=True)
        assert self.by_streams(found) == {"default": "stream-ordered", "own streams": "unordered"}

    def test_frameworks_that_both_refuse_are_measured_once(self):
        found = self.measured(producer=Behaviour(private=True), private=True)
        assert "by_streams" not in found["evidence"]

    def test_a_framework_that_converts_its_own_arrays_has_one_stream(self):
        case, device = pair()
        same = dataclasses.replace(case, consumer=case.producer)
        first, second = own_sides(same, device)
        assert first.stream == second.stream != case.producer.stream

    def test_the_frameworks_are_back_on_their_streams_afterwards(self):
        case, device = pair(streams=("legacy", "legacy"))
        ordering.measure(case, device)
        assert (case.producer.stream, case.consumer.stream) == (LEGACY_STREAM, LEGACY_STREAM)

    def test_a_producer_without_a_queue_is_synchronous(self, monkeypatch):
        monkeypatch.setattr(FakeFramework, "enqueue", lambda self, spec: None)
        case, device = pair()
        found = ordering.measure(case, device)
        assert found["verdict"] == "synchronous"
        assert "producer finishes its work" in found["evidence"]["reason"]


class OneQueue(SimulatedDevice):
    """All non-blocking streams share a queue of the device, but for the first few."""

    def __init__(self, free):
        super().__init__()
        self.free = free

    def new_stream(self, *, blocking):
        if len(self._streams) >= self.free:
            return max(self._streams)
        return super().new_stream(blocking=blocking)


def test_streams_that_share_a_queue_are_not_taken_for_apart():
    device = OneQueue(free=4)
    first, second = stream_for(device, "a"), stream_for(device, "b")
    assert stream_for(device, "a") == first
    assert stream_for(device, "b", first) == second != first
    assert stream_for(device, "c", first, second) is None


def test_without_a_free_queue_nobody_knows_whether_the_whole_device_is_waited_for():
    assert on_default_streams(OneQueue(free=2), order="device")["verdict"] == "unknown"


# With noise


class NoisyDevice(SimulatedDevice):
    """Now and then, anything that the host does takes up to 200 ms longer."""

    def __init__(self, seed, share):
        super().__init__()
        self.random, self.share = random.Random(seed), share

    def spend(self, host_ns):
        super().spend(host_ns)
        if self.random.random() < self.share:
            self.now_ns += self.random.randrange(200 * MS)


TRUE = {
    "host": "host-sync",
    "device": "device-sync",
    "event": "stream-ordered",
    "nothing": "unordered",
}


@pytest.mark.parametrize("share", [0.01, 0.05, 0.1, 0.2, 0.35, 0.5])
@pytest.mark.parametrize("order", TRUE)
def test_a_busy_machine_makes_no_wrong_verdict(order, share):
    found = [
        on_default_streams(NoisyDevice(seed, share), order=order)["verdict"] for seed in range(25)
    ]
    assert set(found) <= {TRUE[order], "unknown"}


@pytest.mark.parametrize("order", TRUE)
@pytest.mark.parametrize("share", [0.5, 0.9, 2])
def test_a_queue_that_is_fed_slowly_makes_no_wrong_verdict(order, share):
    """As frameworks do that launch one kernel for each unit of work."""
    case, device = pair(order=order, producer=Behaviour(private=True))
    plain = case.producer.compute

    def slow(source, work_ns):
        result = plain(source, work_ns)
        device.spend(round(share * work_ns))
        return result

    case.producer.compute = slow
    load = load_of(case, case.producer.enqueue(case.spec), device, default_sides(case))
    assert ordering.measure_load(load)["verdict"] in (TRUE[order], "unknown")


class TestQueuesOfUnequalLength:
    """The same work takes a few percent longer or less each time it is queued."""

    def load(self, order, seed, host_ns=lambda: 0):
        case, device = pair(order=order)
        chance = random.Random(seed)
        load = load_of(case, case.producer.enqueue(case.spec), device, default_sides(case))

        def enqueue(work):
            return load.enqueue(max(1, round(work * chance.uniform(0.9, 1.1))))

        def convert(array):
            device.spend(host_ns())
            return load.convert(array)

        return dataclasses.replace(load, enqueue=enqueue, convert=convert)

    @pytest.mark.parametrize("order", ["host", "device"])
    @pytest.mark.parametrize("seed", range(10))
    def test_a_wait_is_told_as_the_whole_of_its_own_queue(self, order, seed):
        told = ordering.measure_load(self.load(order, seed))["evidence"]["host"]["slope"]
        assert told == pytest.approx(1, abs=0.01)


class TestSlowConversions:
    """The host works for long before it orders anything."""

    @pytest.mark.parametrize("order", TRUE)
    @pytest.mark.parametrize("host_ms", [3, 10, 19])
    def test_a_longer_queue_finds_the_verdict(self, order, host_ms):
        found = on_default_streams(order=order, host_ns=host_ms * MS)
        assert found["verdict"] == TRUE[order]

    @pytest.mark.parametrize("order", TRUE)
    @pytest.mark.parametrize("host_ms", [30, 100, 3_000])
    def test_one_that_outlasts_every_queue_is_not_said_to_order_nothing(self, order, host_ms):
        found = on_default_streams(order=order, host_ns=host_ms * MS)
        assert found["verdict"] in (TRUE[order], "unknown")

    @pytest.mark.parametrize("order", ["host", "device"])
    @pytest.mark.parametrize("host_ms", [3, 10, 19, 30, 100, 1_000])
    def test_work_after_the_wait_hides_no_unrelated_wait(self, order, host_ms):
        case, device = pair(order=order)
        plain = case.consumer.from_dlpack

        def slow(source):
            result = plain(source)
            device.spend(host_ms * MS)
            return result

        case.consumer.from_dlpack = slow
        load = load_of(case, case.producer.enqueue(case.spec), device, default_sides(case))
        expected = {TRUE[order]} | ({"unknown"} if host_ms == 1_000 else set())
        assert ordering.measure_load(load)["verdict"] in expected


def test_work_that_takes_no_time_ends_the_calibration():
    case, device = pair()
    load = load_of(case, case.producer.enqueue(case.spec), device, default_sides(case))
    array = load.enqueue(1)
    load = dataclasses.replace(load, enqueue=lambda work: array)
    found = ordering.measure_load(load)
    assert found["verdict"] == "unknown"


def test_the_length_of_a_unit_is_measured():
    case, device = pair(producer=Behaviour(private=True))
    load = load_of(case, case.producer.enqueue(case.spec), device, default_sides(case))
    unit_ns, queueing = ordering.calibrate(load, 5 * MS)
    assert unit_ns == pytest.approx(1, rel=0.01)
    assert queueing < 0.01
