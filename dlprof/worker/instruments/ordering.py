"""Ordering: does the conversion wait for work that is queued on its source?

Work of three lengths is queued on the producer, and the array that depends on it is converted.
Proof of a wait: the host's time grows with the queue (slope near 1). Else the time until the
consumer has the result decides. If that grows, the device orders the work; if not, nothing does. A
wrong value, read through the consumer, proves a race whatever the times say. ``waits`` then tells a
wait of the host: a call may read its source at once and wait afterwards.

A conversion counts only if its queue had not run dry. A wait for unrelated work on another stream
is a wait for the whole device. On a device the default streams come first, then non-blocking
streams of producer, of consumer and of both. The worst run counts. A copy from the host to the
device may also wait for other work on the consumer's stream.

Verdicts: ``stream-ordered``, ``host-sync``, ``device-sync``, ``unordered``, ``unknown``, and
``synchronous`` (the producer queues nothing).
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

from dlprof.device.cuda import LONGEST_SPIN_NS, Gpu
from dlprof.probes.base import WHOLE_LAYOUTS
from dlprof.protocol.messages import unknown, verdict
from dlprof.worker import memory, recorded_order
from dlprof.worker.queued_work import (
    MOST_WORK,
    QUEUEING_SHARE,
    RUNS_IT,
    OtherWork,
    QueuedWork,
    calibrate,
    default_sides,
    moved_sides,
    queue_unrelated,
)
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.subject import Subject

LENGTHS_NS = (5_000_000, 15_000_000, 45_000_000)
REPEATS = 3
MOST_TURNS = 8
"""On busy processors, 3 of 15 conversions of JAX were not settled after four turns, and none after
ten."""
MOST_STRETCH = 8
"""A queue is made at most this many times longer for a conversion that is slow on the host."""
TRIES = 2
"""A unit of work that was slow when it was measured makes queues that are too short."""
WAITS = 0.8
FREE = 0.2
HALF = 0.5
"""A slope from :data:`WAITS` on is a wait, and up to :data:`FREE` it is none, unless its interval
reaches :data:`HALF`. Any other slope is unknown."""
LEAST_POINTS = 6
MOST_PLACES = 4
"""Old memory may hold right values until it is spoiled. A framework may hand out other memory next,
so that is spoiled too, at most this often."""
RAN_DRY = "the queue was empty before the conversion was called"
OTHER_LAYOUT = "work that is queued gives an array of another layout"
SEVERITY = ("stream-ordered", "unknown", "host-sync", "device-sync", "unordered")
"""From good to bad. What is unknown may be worse than an order."""


def measure(subject: Subject, gpu: Gpu | None) -> dict[str, Any]:
    found = _measure_source(subject, gpu)
    if gpu is not None and (subject.spec.device, subject.result_device) == ("cpu", "cuda"):
        found["evidence"]["upload_waits"] = _upload_waits(subject, gpu)
    return found


def _upload_waits(subject: Subject, gpu: Gpu) -> bool | None:
    """Whether a copy to the device waits for other work on the consumer's stream."""
    stream = default_sides(subject, gpu)[1].handle()
    if stream is None:
        return None
    for _ in range(2):  # the first call may load code, and takes memory that the next one finds
        begin = gpu.host_ns()
        subject.convert()
        own_ns = gpu.host_ns() - begin
    gpu.synchronize(stream)
    if gpu.is_simulated:
        work = partial(queue_unrelated, gpu, stream)
        return recorded_order.waits_for(gpu, lambda _: subject.convert(), lambda: None, work)
    waited = []
    for _ in range(REPEATS):
        end = gpu.event()
        gpu.spin(stream, min(max(LENGTHS_NS[-1], 4 * own_ns), LONGEST_SPIN_NS))
        gpu.record(end, stream)
        subject.convert()
        waited.append(gpu.is_done(end))
        gpu.synchronize(stream)
    return waited[0] if len(set(waited)) == 1 else None


def _measure_source(subject: Subject, gpu: Gpu | None) -> dict[str, Any]:
    text = subject.producer.enqueue(subject.spec)
    if text is None:
        name, device = subject.producer.name, subject.spec.device
        return verdict("synchronous", {}, f"{name} finishes its work on {device} before it returns")
    queue = QueuedWork(subject, text, gpu, default_sides(subject, gpu))
    if _is_of_another_layout(subject, queue):
        return unknown(OTHER_LAYOUT)
    default = measure_queue(queue)
    if gpu is None or subject.spec.device != "cuda":
        return default

    moved = attempt(partial(moved_sides, subject, gpu))
    if isinstance(moved, Refusal):
        moved = {}
    runs, refused = {"default": default}, {}
    for name, sides in moved.items():
        queue = QueuedWork(subject, text, gpu, sides)
        found = attempt(partial(measure_queue, queue))
        if isinstance(found, Refusal):  # the answer of the default streams is known
            refused[name] = unknown(found.reason)
        else:
            runs[name] = found
    found = worse(runs)
    if moved:
        found["evidence"]["by_streams"] = {**runs, **refused}
    return found


def _is_of_another_layout(subject: Subject, queue: QueuedWork) -> bool:
    """Whether queued work gives a contiguous array in place of one with gaps.

    Its conversion may be another: a view where one with gaps is copied.
    """
    if subject.spec.layout in WHOLE_LAYOUTS:
        return False
    return memory.span(queue.finished()) != memory.span(subject.source)


def worse(runs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the run with the worse verdict, the first of equals, and all runs as evidence."""
    name = max(runs, key=lambda name: SEVERITY.index(runs[name]["verdict"]))
    evidence = {**runs[name]["evidence"], "streams": name, "by_streams": runs}
    return {"verdict": runs[name]["verdict"], "evidence": evidence}


def measure_queue(queue: QueuedWork) -> dict[str, Any]:
    if queue.gpu is not None and queue.gpu.is_simulated:
        return recorded_order.measure_queue(queue, queue.gpu, look_for_stale)
    # The first use of a function may load code, which waits for the device. The second finds its
    # memory in the framework's pool.
    for _ in range(2):
        _point(queue, 1)
    for _ in range(TRIES):
        unit_ns, queueing = calibrate(queue, LENGTHS_NS[0])
        works = [max(1, round(length / unit_ns)) for length in LENGTHS_NS]
        if len(set(works)) < len(works):  # a unit is longer than the steps between the lengths
            works = [works[0] + step for step in range(len(works))]
        if queueing > QUEUEING_SHARE:
            return _untimed(queue, min(works[-1], MOST_WORK), RUNS_IT)
        points = _long_enough(queue, works)
        queued = [point.queued_ns for point in points]
        if len(points) >= LEAST_POINTS and statistics.median(queued) >= LENGTHS_NS[0]:
            break
    else:
        return _untimed(queue, works[-1], RAN_DRY)
    host, ready = _fits(points)
    unrelated = _unrelated_fit(queue, points) if grows(host) else None
    right = look_for_stale(queue, works[-1])
    word, reason = judge(host, ready, unrelated, right)
    if word == "unordered" and right is not False and _own_share(points) > HALF:
        word, reason = "unknown", "the conversion takes the host longer than the queue before it"
    longest = max(points, key=lambda point: point.queued_ns)
    evidence: dict[str, Any] = {
        "host": asdict(host),
        "ready": ready and asdict(ready),
        "unrelated": unrelated and asdict(unrelated),
        "values_right": right,
        "loaded": {"queued_ns": longest.done_ns, "host_ns": longest.host_ns},
    }
    if word == "unordered" and grows(host):
        evidence["waits"] = "device-sync" if unrelated and grows(unrelated) else "host-sync"
    return verdict(word, evidence, reason)


def _untimed(queue: QueuedWork, work: int, reason: str) -> dict[str, Any]:
    """Return the verdict without times: a wrong value proves a race."""
    right = look_for_stale(queue, work)
    return verdict("unordered" if right is False else "unknown", {"values_right": right}, reason)


# The judgment on slopes


@dataclass(frozen=True)
class Fit:
    """A line through points, by the median of the slopes between them (Theil, Sen).

    ``interval`` is Sen's 95 % interval of the slope (J. Am. Stat. Assoc. 63, 1968). ``scatter``
    is how far the points lie from the line, as a share of the queue (both medians).
    """

    slope: float
    intercept_ns: float
    interval: tuple[float, float]
    scatter: float = 0.0

    def __str__(self) -> str:
        return f"{self.slope:.2f} ({self.interval[0]:.2f} to {self.interval[1]:.2f})"


NOTHING_KNOWN = Fit(HALF, 0.0, (0.0, 1.0))
"""The fit to too few points: anything between no wait and a full wait."""


def fit(points: Sequence[tuple[float, float]]) -> Fit:
    """Fit a line to ``points``; :data:`NOTHING_KNOWN` if they are too few or too close."""
    slopes = sorted(
        (b[1] - a[1]) / (b[0] - a[0])
        for a, b in itertools.combinations(points, 2)
        if abs(b[0] - a[0]) > 0.2 * max(a[0], b[0])  # repeats of one length have no slope
    )
    n = len(points)
    if n < LEAST_POINTS or not slopes:
        return NOTHING_KNOWN
    slope = statistics.median(slopes)
    intercept = statistics.median(y - slope * x for x, y in points)
    reach = 1.96 * math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    low = max(0, math.floor((len(slopes) - reach) / 2))
    high = min(len(slopes) - 1, math.ceil((len(slopes) + reach) / 2))
    scatter = statistics.median(abs(y - slope * x - intercept) for x, y in points)
    scatter /= max(1, statistics.median(x for x, _ in points))
    return Fit(slope, intercept, (slopes[low], slopes[high]), scatter)


def grows(line: Fit) -> bool | None:
    """Whether a time grows with the queue; None if slope and interval do not settle it."""
    if line.slope >= WAITS and line.interval[0] > HALF and line.scatter < HALF:
        return True
    if line.slope <= FREE and line.interval[1] < HALF:
        return False
    return None


def judge(
    host: Fit, ready: Fit | None, unrelated: Fit | None, values_right: bool | None
) -> tuple[str, str | None]:
    """Return the verdict, and the reason if it is ``unknown``. None: not measured here."""
    if values_right is False:
        return "unordered", None
    waits = grows(host)
    if waits is None:
        return "unknown", f"the host's time follows the queue with a slope of {host}"
    if waits:
        waits_for_all = unrelated is not None and grows(unrelated)
        if waits_for_all is None:
            reason = f"the host waits; for unrelated work it does with a slope of {unrelated}"
            return "unknown", reason
        return ("device-sync" if waits_for_all else "host-sync"), None
    if ready is None:
        return "unknown", "the host does not wait, and the consumer's stream cannot be asked"
    words = {True: "stream-ordered", False: "unordered", None: "unknown"}
    unsettled = f"the result follows the queue with a slope of {ready}"
    return words[grows(ready)], unsettled if grows(ready) is None else None


# Points: conversions behind queued work


class Point(NamedTuple):
    """One conversion behind queued work, all in ns.

    ``queued_ns`` is the length of such a queue, measured just before without the conversion. The
    others count from when the work was queued: the call returned, the consumer had the result, and
    the queue's end had been waited for.
    """

    queued_ns: int
    host_ns: int
    ready_ns: int | None
    done_ns: int


def _point(queue: QueuedWork, work: int) -> Point:
    array = queue.enqueue(work)
    begin = queue.clock()
    queue.finish(array)
    queued_ns = queue.clock() - begin
    del array  # freeing it behind queued work might wait
    array = queue.enqueue(work)
    begin = queue.clock()
    result = queue.convert(array)
    host_ns = queue.clock() - begin
    ready_ns = None
    if queue.ready is not None:
        queue.ready(result)
        ready_ns = queue.clock() - begin
    queue.finish(array)
    return Point(queued_ns, host_ns, ready_ns, queue.clock() - begin)


def _points(queue: QueuedWork, works: Sequence[int]) -> list[Point]:
    """Take conversions behind each length of queue, more of them while slopes settle nothing."""
    points: list[Point] = []
    for turn in range(MOST_TURNS):
        turn_points = [_point(queue, work) for work in _shuffled(works, turn)]
        points += [point for point in turn_points if point.done_ns >= HALF * point.queued_ns]
        host, ready = _fits(points)
        is_settled = ready is None or grows(ready) is not None
        if grows(host) or (grows(host) is False and is_settled):
            break
    return points


def _long_enough(queue: QueuedWork, works: Sequence[int]) -> list[Point]:
    """Take conversions behind queues that outlast the call's own work, longer ones if need be."""
    points = _points(queue, works)
    stretch = 1 if grows(_fits(points)[0]) else math.ceil(2 * _own_share(points))
    if not 1 < stretch <= MOST_STRETCH:
        return points
    return _points(queue, [stretch * work for work in works])


def _fits(points: Sequence[Point]) -> tuple[Fit, Fit | None]:
    """Fit the host's time and the ready time, if there is one, to the length of the queue."""
    waited = [(point.queued_ns, point.ready_ns) for point in points if point.ready_ns is not None]
    host = fit([(point.queued_ns, point.host_ns) for point in points])
    return host, fit(waited) if waited else None


def _own_share(points: Sequence[Point]) -> float:
    """Return the share of the shortest queues that the calls behind them took."""
    shortest = sorted(points)[: math.ceil(len(points) / 3)]
    return statistics.median([point.host_ns / max(point.queued_ns, 1) for point in shortest] or [0])


def _unrelated_fit(queue: QueuedWork, points: Sequence[Point]) -> Fit | None:
    """Return the fit for the first stream that the call does not wait for, else for the last.

    Streams that it waits for may share its queue. The work is as long as the queues, and longer
    than the call's own work.
    """
    shortest = min(point.queued_ns for point in points)
    least_ns = max(2 * _fits(points)[0].intercept_ns, 0.9 * shortest)
    stretch = max(1, min(math.ceil(least_ns / LENGTHS_NS[0]), MOST_STRETCH))
    found = None
    for unrelated in queue.unrelated:
        found = _stream_fit(queue, unrelated, [stretch * length for length in LENGTHS_NS])
        if grows(found) is False:
            break
    return found


def _stream_fit(queue: QueuedWork, unrelated: OtherWork, lengths_ns: Sequence[int]) -> Fit:
    array = queue.finished()
    points: list[tuple[float, float]] = []
    line = NOTHING_KNOWN
    for turn in range(MOST_TURNS):
        for length in _shuffled(lengths_ns, turn):
            finish = unrelated(length)
            begin = queue.clock()
            queue.convert(array)
            host_ns = queue.clock() - begin
            finish()
            if queue.clock() - begin >= HALF * length:
                points.append((length, host_ns))
        line = fit(points)
        if grows(line) is not None:
            break
    own_ns = statistics.median([host_ns for _, host_ns in points] or [0])
    too_slow = grows(line) is False and own_ns > HALF * max(lengths_ns)
    return NOTHING_KNOWN if too_slow else line


def _shuffled(lengths: Sequence[int], seed: int) -> list[int]:
    lengths = list(lengths) * REPEATS
    random.Random(seed).shuffle(lengths)  # noqa: S311 - the order only has to be mixed
    return lengths


# Values: a wrong one proves a race


def look_for_stale(queue: QueuedWork, work: int) -> bool | None:
    """Whether a result behind ``work`` units is right.

    None if values cannot be compared, or if the conversion changes them behind an idle queue too.
    """
    right = attempt(partial(_is_right, queue, work))
    return None if isinstance(right, Refusal) else right  # the times still count


def _is_right(queue: QueuedWork, work: int) -> bool | None:
    right, place = _is_right_behind(queue, 1, finished=True)
    if not right:
        return None
    spoiled = {place}
    for _ in range(MOST_PLACES):
        right, place = _is_right_behind(queue, work, finished=False)
        if not right or place in spoiled:
            break
        spoiled.add(place)
    if right is False and not _is_right_behind(queue, 1, finished=True)[0]:
        return None  # it gives old values of a memory or an id that it has seen before
    return right


def _is_right_behind(
    queue: QueuedWork, work: int, finished: bool
) -> tuple[bool | None, int | None]:
    """Return whether a result is right, and the address of its source.

    The result is read as soon as it is reported ready, which may be before the queue ends. The
    array is spoiled and dropped: the next one is likely to get its memory, with wrong values.
    """
    if queue.hold is not None and not finished:
        queue.hold()
    array = queue.enqueue(work)
    if finished:
        queue.finish(array)
    result = queue.convert(array)
    if queue.ready is not None:
        queue.ready(result)
    values = queue.read(result)
    queue.finish(array)
    return queue.is_right(values, array), queue.spoil(array)
