"""Ordering: the judgment on slopes, and every verdict on a simulated device."""

import itertools
import random
from dataclasses import replace

import pytest
from simulated_device import Behaviour, SimulatedDevice, pair

from dlprof.device.cuda import LEGACY_STREAM
from dlprof.worker.instruments import ordering
from dlprof.worker.instruments.ordering import Fit, judge
from dlprof.worker.queued_work import (
    SPIN_UNIT_NS,
    QueuedWork,
    default_sides,
)

MS = 1_000_000
TRUE = {
    "host": "host-sync",
    "device": "device-sync",
    "event": "stream-ordered",
    "nothing": "unordered",
}
HOST_WAITS = ("host", "device")


def queue_on_default_streams(case, device):
    return QueuedWork(case, case.producer.enqueue(case.spec), device, default_sides(case, device))


def queue_for(*arguments, **options):
    """The queue of a simulated pair on its default streams, and the device."""
    case, device = pair(*arguments, **options)
    return queue_on_default_streams(case, device), device


def measured(*arguments, **options):
    return ordering.measure_queue(queue_for(*arguments, **options)[0])


def measured_case(case, device):
    return ordering.measure_queue(queue_on_default_streams(case, device))


class TestJudgment:
    WAITS, FREE, HALF = Fit(1.0, 0, (0.9, 1.1)), Fit(0.0, 0, (-0.1, 0.1)), Fit(0.5, 0, (0.4, 0.6))

    # host, ready, unrelated, values; the first row that fits decides, and * matches anything.
    TRUTH = (
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
    )

    def true_verdict(self, *seen):
        for *row, verdict in self.TRUTH:
            if all(want in ("*", got) for want, got in zip(row, seen, strict=True)):
                return verdict
        raise AssertionError(f"no row for {seen}")

    def test_every_combination_of_slopes_and_values_has_its_verdict(self):
        slopes = [self.WAITS, self.FREE, self.HALF, None]
        for seen in itertools.product(slopes[:3], slopes, slopes, [True, False, None]):
            verdict, reason = judge(*seen)
            assert verdict == self.true_verdict(*seen), seen
            assert (reason is not None) == (verdict == "unknown")


class TestVerdicts:
    """A pair on default streams of the simulated device."""

    def test_an_event_shows_a_race_that_the_consumers_own_wait_hides(self):
        case, device = pair(order="nothing")
        case.consumer.wait = lambda device: "consumer.gpu.synchronize_device()"
        queue = queue_on_default_streams(case, device)
        queue.read = lambda result: None
        assert ordering.measure_queue(queue)["verdict"] == "unordered"

    @pytest.mark.parametrize(("order", "verdict"), [("event", "unknown"), ("nothing", "unordered")])
    def test_a_consumer_without_a_wait_is_convicted_by_its_values_alone(self, order, verdict):
        assert measured(private=True, mute=True, order=order)["verdict"] == verdict


class TestValues:
    def test_old_values_in_reused_memory_hide_no_race(self):
        case, device = pair(
            producer=Behaviour(private=True), order="nothing", private=True, mute=True
        )
        case.producer.write(case.source, 5)
        blocks = itertools.cycle([case.producer.array(64) for _ in range(4)])
        case.producer.array = lambda size_bytes: next(blocks)
        assert measured_case(case, device)["verdict"] == "unordered"

    @pytest.mark.parametrize("rights", [[], [True]], ids=["always wrong", "a cache by address"])
    def test_values_that_are_also_wrong_behind_an_idle_queue_are_no_race(self, rights):
        queue, _ = queue_for(order="event", copies=True)
        answers = itertools.chain(rights, itertools.repeat(False))
        queue.is_right = lambda seen, array: next(answers)
        found = ordering.measure_queue(queue)
        assert (found["verdict"], found["evidence"]["values_right"]) == ("stream-ordered", None)

    def test_values_that_cannot_be_read_leave_other_answers_intact(self):
        def read(result):
            raise TypeError("no such dtype")

        queue, _ = queue_for(order="host")
        queue.read = read
        found = ordering.measure_queue(queue)
        assert (found["verdict"], found["evidence"]["values_right"]) == ("host-sync", None)

    @pytest.mark.parametrize(
        ("order", "verdict", "right"), [("nothing", "unordered", False), ("event", "unknown", True)]
    )
    def test_a_wrong_value_is_a_race_even_if_the_queue_was_empty(
        self, monkeypatch, order, verdict, right
    ):
        monkeypatch.setattr(ordering, "calibrate", lambda queue, least_ns: (SPIN_UNIT_NS, 0.0))
        monkeypatch.setattr(ordering, "_points", lambda queue, works: [])
        found = measured(order=order)
        assert (found["verdict"], found["evidence"]["values_right"]) == (verdict, right)
        assert "empty" in found["evidence"]["reason"]


class TestBothStreams:
    """Run :func:`measure` as usual: on default streams, and on non-blocking ones."""

    def by_streams(self, found):
        return {name: run["verdict"] for name, run in found["evidence"]["by_streams"].items()}

    @pytest.mark.parametrize("private", [False, True], ids=["both moved", "one moved"])
    def test_an_order_that_only_the_default_stream_gives_is_found_missing(self, private):
        case, device = pair(streams=("legacy", "legacy"), order="nothing", private=private)
        found = ordering.measure(case, device)
        assert (found["verdict"], found["evidence"]["streams"]) == ("unordered", "own streams")
        runs = self.by_streams(found)
        assert (runs["default"], runs["own streams"]) == ("stream-ordered", "unordered")
        moved = {"the producer's own stream", "the consumer's own stream"}
        assert moved.isdisjoint(runs) if private else moved <= runs.keys()
        assert (case.producer.stream, case.consumer.stream) == (LEGACY_STREAM, LEGACY_STREAM)

    @pytest.mark.parametrize("order", ["host", "event"])
    def test_an_error_on_own_streams_leaves_the_verdict_of_the_default_streams_intact(self, order):
        case, device = pair(streams=("legacy", "legacy"), order=order)
        plain = case.consumer.from_dlpack

        def fails_when_moved(source):
            if source.stream != LEGACY_STREAM:
                raise RuntimeError("another stream")
            return plain(source)

        case.consumer.from_dlpack = fails_when_moved
        found = ordering.measure(case, device)
        assert found["verdict"] == TRUE[order]
        runs = self.by_streams(found)
        assert (runs["default"], runs["own streams"]) == (TRUE[order], "unknown")
        own = found["evidence"]["by_streams"]["own streams"]["evidence"]
        assert "another stream" in own["reason"]


class SharesOnce(SimulatedDevice):
    """A device whose first new stream shares the queue of the stream ``shared``."""

    shared = None

    def new_stream(self, *, blocking):
        shared, self.shared = self.shared, None
        return super().new_stream(blocking=blocking) if shared is None else shared


@pytest.mark.parametrize("order", HOST_WAITS)
def test_a_stream_that_shares_a_private_streams_queue_makes_no_wait_for_the_device(order):
    private = Behaviour(private=True)
    case, device = pair(SharesOnce(), producer=private, order=order, private=True)
    device.shared = case.producer.stream
    assert measured_case(case, device)["verdict"] == TRUE[order]


def test_queued_work_of_another_layout_proves_nothing_about_the_requested_layout(monkeypatch):
    case, device = pair(order="event")
    monkeypatch.setattr(ordering.memory, "span", lambda array: array is case.source)
    strided = replace(case, spec=replace(case.spec, layout="strided"))
    assert ordering.measure(strided, device)["verdict"] == "unknown"
    assert ordering.measure(case, device)["verdict"] == "stream-ordered"


class NoisyDevice(SimulatedDevice):
    """A host on which some steps take up to 200 ms longer."""

    def __init__(self, seed, share):
        super().__init__()
        self.random, self.share = random.Random(seed), share

    def spend(self, host_ns):
        super().spend(host_ns)
        if self.random.random() < self.share:
            self.now_ns += self.random.randrange(200 * MS)


@pytest.mark.parametrize("order", TRUE)
class TestDisturbedMachines:
    @pytest.mark.parametrize("share", [0.01, 0.1, 0.35])
    def test_noise_makes_no_wrong_verdict(self, order, share):
        devices = (NoisyDevice(seed, share) for seed in range(12))
        found = {measured(device, order=order)["verdict"] for device in devices}
        assert found <= {TRUE[order], "unknown"}

    @pytest.mark.parametrize("host_ms", [3, 19])
    def test_a_slow_conversion_gets_a_longer_queue(self, order, host_ms):
        assert measured(order=order, host_ns=host_ms * MS)["verdict"] == TRUE[order]


def test_a_queue_that_is_fed_slowly_convicts_by_values():
    case, device = pair(producer=Behaviour(private=True), order="nothing", private=True)
    plain = case.producer.compute

    def slow(source, work_ns):
        result = plain(source, work_ns)
        device.spend(round(0.6 * work_ns))
        return result

    case.producer.compute = slow
    found = measured_case(case, device)
    assert (found["verdict"], found["evidence"]["values_right"]) == ("unordered", False)
    assert "runs it" in found["evidence"]["reason"]


@pytest.mark.parametrize("order", HOST_WAITS)
@pytest.mark.parametrize("host_ms", [3, 100])
def test_work_after_the_wait_hides_no_unrelated_wait(order, host_ms):
    case, device = pair(order=order)
    plain = case.consumer.from_dlpack

    def slow(source):
        result = plain(source)
        device.spend(host_ms * MS)
        return result

    case.consumer.from_dlpack = slow
    assert measured_case(case, device)["verdict"] == TRUE[order]
