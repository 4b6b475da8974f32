"""Ordering: does the conversion wait for work that is queued on its source?

An idle queue hides a wait. So work of three known lengths is queued on the producer, the array that
depends on it is converted, and the host's time is compared with the length of the queue, which is
measured beside each conversion. Proof of a wait is a host time that grows with the queue (slope
near 1). Where it does not grow, the time until the consumer has the result decides: if that grows,
the work is ordered without the host; if it does not, nothing is ordered, and a wrong value read
through the consumer proves the race (a right one does not disprove it). On a device, work on an
unrelated stream is tried too: a wait for that is a wait for the whole device. Where no unrelated
work can be queued, host-sync stands for both.

The queue beside a conversion and the one before it are of the same work and not of the same length:
by a few percent on a busy host. So where the slope settles whether the host waits, it is told
against the very queue that the conversion stood behind, whose end is waited for after it. That
slope alone would prove nothing: a call that is slow by itself outlasts its queue in any case.

Times alone do not prove that a path is in order: a call may read its source at once, and wait for
the queue only then. So values are looked at whatever the times say, and a wrong one makes the
verdict ``unordered``; what the host waits for besides is told as ``waits``. That conversion is one
more and is not timed: a view shows its race only if it is read before the queue's end, and that
read cannot be timed.

A conversion behind a queue that had run dry proves nothing and does not count: the queue's end is
waited for after each one, and must come as late as it should. Nor does one that outlasts the queue
by its own work on the host: the queue is made longer then.

On a device all of it is done twice, on the frameworks' default streams and with producer and
consumer on a non-blocking stream each: default streams are ordered by the driver, whether the
conversion orders anything or not. The worse of the two is the verdict.

It cannot tell where nothing can be queued because the producer's calls run their work themselves,
or where a slope is neither near 0 nor near 1.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from dlprof.worker.load import (
    LENGTHS_NS,
    MOST_WORK,
    QUEUEING_SHARE,
    RUNS_IT,
    Load,
    calibrate,
    default_sides,
    load_of,
    own_sides,
)
from dlprof.worker.subject import Subject

if TYPE_CHECKING:
    from dlprof.device.cuda import Gpu


REPEATS = 3
MOST_TURNS = 4
MOST_STRETCH = 8
"""A queue is made so many times longer, at most, for a conversion that is slow on the host."""
WAITS = 0.8
FREE = 0.2
"""A slope from :data:`WAITS` on is a wait and up to :data:`FREE` is none, if its interval does not
reach :data:`HALF`; everything else is unknown."""
RAN_DRY = "the queue was empty before the conversion was called"
SEVERITY = ("stream-ordered", "unknown", "host-sync", "device-sync", "unordered")
"""The later is the worse; what is not known may be worse than what is in order."""


class Point(NamedTuple):
    """One conversion behind queued work, all in ns.

    ``queued_ns`` is the length of such a queue, measured just before without the conversion. The
    rest is since the work was queued: when the call returned, when the consumer had the result,
    and when the queue's end had been waited for.
    """

    queued_ns: int
    host_ns: int
    ready_ns: int | None
    done_ns: int


@dataclass(frozen=True)
class Slopes:
    """What :func:`judge` decides on; None for what cannot be measured here."""

    host: Fit
    ready: Fit | None = None
    unrelated: Fit | None = None
    values_right: bool | None = None


def grows(line: Fit) -> bool | None:
    """Whether a time grows with the queue; None where slope and interval do not settle it."""
    if line.slope >= WAITS and line.interval[0] > HALF and line.scatter < HALF:
        return True
    if line.slope <= FREE and line.interval[1] < HALF:
        return False
    return None


def judge(slopes: Slopes) -> tuple[str, str | None]:
    """The verdict, and why if it is ``unknown``."""
    if slopes.values_right is False:
        return "unordered", None
    host = grows(slopes.host)
    if host is None:
        return "unknown", f"the host's time follows the queue with a slope of {_text(slopes.host)}"
    if host:
        return _judge_wait(slopes.unrelated)
    if slopes.ready is None:
        return "unknown", "the host does not wait, and the consumer's stream cannot be asked"
    ready = grows(slopes.ready)
    if ready is None:
        return "unknown", f"the result follows the queue with a slope of {_text(slopes.ready)}"
    return ("stream-ordered" if ready else "unordered"), None


def _judge_wait(unrelated: Fit | None) -> tuple[str, str | None]:
    if unrelated is None:
        return "host-sync", None
    device_wide = grows(unrelated)
    if device_wide is None:
        return "unknown", (
            "the host waits; for unrelated work it does with a slope of " + _text(unrelated)
        )
    return ("device-sync" if device_wide else "host-sync"), None


def _text(line: Fit) -> str:
    return f"{line.slope:.2f} ({line.interval[0]:.2f} to {line.interval[1]:.2f})"


def measure(
    subject: Subject, gpu: Gpu | None, lengths_ns: Sequence[int] = LENGTHS_NS
) -> dict[str, Any]:
    """Verdict and evidence for one conversion; see :func:`measure_load`.

    Where it was measured twice, the evidence is that of the worse run, which ``streams`` names,
    and ``by_streams`` holds both.
    """
    text = subject.producer.enqueue(subject.spec)
    if text is None:
        reason = (
            f"{subject.producer.name} finishes its work on {subject.spec.device} before it returns"
        )
        return {"verdict": "synchronous", "evidence": {"reason": reason}}
    default = measure_load(load_of(subject, text, gpu, default_sides(subject)), lengths_ns)
    sides = own_sides(subject, gpu) if gpu is not None and subject.spec.device == "cuda" else None
    if sides is None:
        return default
    own = measure_load(load_of(subject, text, gpu, sides), lengths_ns)
    return worse({"default": default, "own streams": own})


def worse(runs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The run with the worse verdict, the first of equals, with all of them in its evidence."""
    name = max(runs, key=lambda name: SEVERITY.index(runs[name]["verdict"]))
    evidence = {**runs[name]["evidence"], "streams": name, "by_streams": runs}
    return {"verdict": runs[name]["verdict"], "evidence": evidence}


def measure_load(load: Load, lengths_ns: Sequence[int] = LENGTHS_NS) -> dict[str, Any]:
    """Queue, convert and fit; the evidence holds slopes, intercepts, intervals and the points."""
    _warm(load)
    unit_ns, queueing = calibrate(load, lengths_ns[0])
    works = [max(1, round(length / unit_ns)) for length in lengths_ns]
    if len(set(works)) < len(works):  # a unit is longer than what lies between the lengths
        works = [works[0] + step for step in range(len(works))]
    if queueing > QUEUEING_SHARE:
        return _untimed(load, min(works[-1], MOST_WORK), RUNS_IT)
    points = _long_enough(load, works)
    if len(points) < LEAST_POINTS or _middle_ns(points) < lengths_ns[0]:
        return _untimed(load, works[-1], RAN_DRY)
    host, ready = _host_fit(points), _ready_fit(points)
    unrelated = _unrelated_fit(load, _lengths(points, lengths_ns)) if grows(host) else None
    right, unread = look_for_stale(load, works[-1])
    verdict, reason = judge(Slopes(host, ready, unrelated, right))
    if verdict == "unordered" and right is not False and _own_share(points) > HALF:
        verdict, reason = "unknown", "the conversion takes the host longer than the queue before it"
    evidence: dict[str, Any] = {
        "host": asdict(_behind_its_own(points, host)),
        "beside": asdict(host),
        "ready": None if ready is None else asdict(ready),
        "ready_witness": load.ready_how or None,
        "unrelated": None if unrelated is None else asdict(unrelated),
        "values_right": right,
        "loaded": _loaded(points, grows(host) is not None),
        "points": [list(point) for point in points],
    }
    if verdict == "unordered" and grows(host):
        evidence["waits"] = "device-sync" if unrelated and grows(unrelated) else "host-sync"
    if unread:
        evidence["values_unread"] = unread
    if reason:
        evidence["reason"] = reason
    return {"verdict": verdict, "evidence": evidence}


def _untimed(load: Load, work: int, reason: str) -> dict[str, Any]:
    """The verdict where times say nothing: a wrong value proves a race without them."""
    right, unread = look_for_stale(load, work)
    evidence: dict[str, Any] = {"values_right": right, "reason": reason}
    if unread:
        evidence["values_unread"] = unread
    return {"verdict": "unordered" if right is False else "unknown", "evidence": evidence}


def _behind_its_own(points: Sequence[Point], beside: Fit) -> Fit:
    """The host's time against the queue that it stood behind, where that agrees with ``beside``.

    Its end cannot be told from the conversion's own, where the host waits: the intercept is that
    of the other fit.
    """
    own = fit([(point.done_ns, point.host_ns) for point in points])
    agrees = grows(beside) is not None and grows(own) == grows(beside)
    return replace(own, intercept_ns=beside.intercept_ns) if agrees else beside


def _loaded(points: Sequence[Point], settled: bool) -> dict[str, int]:
    """The longest queue, and the host's time behind it."""
    if not settled:
        longest = max(points, key=lambda point: point.queued_ns)
        return {"queued_ns": longest.queued_ns, "host_ns": longest.host_ns}
    longest = max(points, key=lambda point: point.done_ns)
    return {"queued_ns": longest.done_ns, "host_ns": longest.host_ns}


def _middle_ns(points: Sequence[Point]) -> float:
    return statistics.median(point.queued_ns for point in points)


def _long_enough(load: Load, works: Sequence[int]) -> list[Point]:
    """Conversions behind queues that outlast the call's own work, longer ones if need be."""
    points = _points(load, works)
    stretch = 1 if grows(_host_fit(points)) is True else math.ceil(2 * _own_share(points))
    if not 1 < stretch <= MOST_STRETCH:
        return points
    return _points(load, [stretch * work for work in works])


def _lengths(points: Sequence[Point], lengths_ns: Sequence[int]) -> list[int]:
    """Lengths as long as the queue had to be, that outlast what the call does besides waiting."""
    shortest = min(point.queued_ns for point in points)
    least_ns = max(2 * _host_fit(points).intercept_ns, 0.9 * shortest)
    stretch = math.ceil(least_ns / min(lengths_ns))
    return [max(1, min(stretch, MOST_STRETCH)) * length for length in lengths_ns]


def _own_share(points: Sequence[Point]) -> float:
    """What share of the shortest queues the calls behind them took."""
    shortest = sorted(points)[: math.ceil(len(points) / 3)]
    return statistics.median([point.host_ns / max(point.queued_ns, 1) for point in shortest] or [0])


def _points(load: Load, works: Sequence[int]) -> list[Point]:
    """Conversions behind each length of queue; more of them while their slopes settle nothing."""
    points: list[Point] = []
    for turn in range(MOST_TURNS):
        taken = [_point(load, work) for work in _shuffled(works, REPEATS, turn)]
        points += [point for point in taken if point.done_ns >= HALF * point.queued_ns]
        if _settled(points):
            break
    return points


def _settled(points: Sequence[Point]) -> bool:
    host, ready = grows(_host_fit(points)), _ready_fit(points)
    return host is True or (host is False and (ready is None or grows(ready) is not None))


def _host_fit(points: Sequence[Point]) -> Fit:
    return fit([(point.queued_ns, point.host_ns) for point in points])


def _ready_fit(points: Sequence[Point]) -> Fit | None:
    waited = [(point.queued_ns, point.ready_ns) for point in points if point.ready_ns is not None]
    return fit(waited) if waited else None


def _warm(load: Load) -> None:
    # The first use of a function may load code, and that waits for the device as well; the
    # second finds the memory that it needs in the framework's pool.
    for _ in range(2):
        _point(load, 1)


def _point(load: Load, work: int) -> Point:
    """The length of the queue, and a conversion behind a queue of that length."""
    array = load.enqueue(work)
    begin = load.clock()
    load.finish(array)
    queued_ns = load.clock() - begin
    del array  # to free it behind queued work may wait for that
    array = load.enqueue(work)
    begin = load.clock()
    result = load.convert(array)
    host_ns = load.clock() - begin
    ready_ns = None
    if load.ready is not None:
        load.ready(result)
        ready_ns = load.clock() - begin
    load.finish(array)
    return Point(queued_ns, host_ns, ready_ns, load.clock() - begin)


def _unrelated_fit(load: Load, lengths_ns: Sequence[int]) -> Fit | None:
    if load.unrelated is None:
        return None
    array = load.enqueue(1)
    load.finish(array)
    points: list[tuple[float, float]] = []
    line = NOTHING_KNOWN
    for turn in range(MOST_TURNS):
        for length in _shuffled(lengths_ns, REPEATS, turn):
            host_ns, done_ns = _beside(load, load.unrelated, length, array)
            if done_ns >= HALF * length:
                points.append((length, host_ns))
        line = fit(points)
        if grows(line) is not None:
            break
    own_ns = statistics.median([host_ns for _, host_ns in points] or [0])
    too_slow = grows(line) is False and own_ns > HALF * max(lengths_ns)
    return NOTHING_KNOWN if too_slow else line


def _beside(
    load: Load, unrelated: Callable[[int], Callable[[], None]], length_ns: int, array: Any
) -> tuple[int, int]:
    """When a conversion returned, and when the unrelated work was done that was queued before."""
    finish = unrelated(length_ns)
    begin = load.clock()
    load.convert(array)
    host_ns = load.clock() - begin
    finish()
    return host_ns, load.clock() - begin


def _shuffled(lengths: Sequence[int], repeats: int, seed: int) -> list[int]:
    lengths = list(lengths) * repeats
    random.Random(seed).shuffle(lengths)  # noqa: S311 - the order only has to be mixed
    return lengths


def look_for_stale(load: Load, work: int) -> tuple[bool | None, str | None]:
    """Whether a result behind ``work`` units is right; and why nothing could be read, if so.

    The first is None where values cannot be compared, or where an idle queue does not lead to
    them either: then it is the conversion that changes them.
    """
    try:
        return _is_right(load, work), None
    except Exception as error:  # noqa: BLE001 - whatever a framework raises; times have their say
        return None, f"{type(error).__name__}: {error}"


def _is_right(load: Load, work: int) -> bool | None:
    if not _is_right_behind(load, 1, finished=True):
        return None
    right = _is_right_behind(load, work, finished=False)
    if right is False and not _is_right_behind(load, 1, finished=True):
        return None  # it gives old values of a memory or an id that it has seen before
    return right


def _is_right_behind(load: Load, work: int, finished: bool) -> bool | None:
    """Of an array that nobody knows afterwards: the next one is likely to get its memory, with
    values that are wrong for certain.
    """
    array = load.enqueue(work)
    if finished:
        load.finish(array)
    seen = _read_result(load, array)
    load.finish(array)
    right = load.is_right(seen, array)
    load.spoil(array)
    return right


def _read_result(load: Load, array: Any) -> Any:
    """The values of a result as soon as it is called ready, which may be before the queue ends."""
    result = load.convert(array)
    if load.ready is not None:
        load.ready(result)
    return load.look(result)


LEAST_POINTS = 6
HALF = 0.5


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


NOTHING_KNOWN = Fit(HALF, 0.0, (0.0, 1.0))
"""The fit to too few points: anything between no wait and a full one."""


def fit(points: Sequence[tuple[float, float]]) -> Fit:
    """The line through ``points``; :data:`NOTHING_KNOWN` where they are too few or too close."""
    slopes = sorted(
        (b[1] - a[1]) / (b[0] - a[0])
        for a, b in itertools.combinations(points, 2)
        if abs(b[0] - a[0]) > 0.2 * max(a[0], b[0])  # repeats of one length say nothing of a slope
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
