"""Trace: which calls into CUDA waited or copied, inside the conversion's own window?

A second witness, by CUPTI: the conversion runs behind work that is queued on the producer, and
between two readings of CUPTI's clock. Every call that began in between is listed with its time, and
with the bytes and the direction of what it copied. Proof of a wait is CUPTI's own record of one, or
a call that took a good part of the queue. Of several windows the shortest counts: what delays the
host only makes them longer.

It cannot tell, and says ``no trace`` with the reason, where anything keeps CUPTI from recording. It
runs in a child of its own, for CUPTI slows every call and stays in the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dlprof.worker.activity import NoTrace, Record, Recorder
from dlprof.worker.instruments import ordering
from dlprof.worker.load import Load, default_sides, load_of
from dlprof.worker.subject import Subject

if TYPE_CHECKING:
    from dlprof.device.cuda import Gpu

QUEUE_NS = 20_000_000
WAITED_NS = 5_000_000
"""No call takes so long for itself, behind a queue of :data:`QUEUE_NS`."""
WINDOWS = 3
MOST_EVENTS = 200


class Window(NamedTuple):
    """From before the conversion was called until it returned, by CUPTI's clock."""

    begin_ns: int
    end_ns: int


def measure(subject: Subject, gpu: Gpu | None = None) -> dict[str, Any]:
    """Verdict ``traced`` or ``no trace``; the evidence holds the events, or the reason."""
    if "cuda" not in (subject.spec.device, subject.result_device):
        return _no_trace("the conversion has nothing to do with a CUDA device")
    load, work = _load(subject, gpu)
    try:
        recorder = Recorder()
        with recorder:
            windows = [_window(subject, recorder, load, work) for _ in range(WINDOWS)]
    except NoTrace as reason:
        return _no_trace(str(reason))
    shortest = min(windows, key=lambda window: window.end_ns - window.begin_ns)
    return {
        "verdict": "traced",
        "evidence": evidence(recorder.records, shortest, loaded=load is not None),
    }


def _load(subject: Subject, gpu: Gpu | None) -> tuple[Load | None, int]:
    """The load and how much of it makes :data:`QUEUE_NS`; warmed, with all that is converted."""
    text = subject.producer.enqueue(subject.spec)
    if text is None:
        subject.wait_for(subject.convert())
        return None, 0
    load = load_of(subject, text, gpu, default_sides(subject))
    unit_ns, _ = ordering.calibrate(load, WAITED_NS)
    for _ in range(2):
        load.convert(load.enqueue(1))
    return load, max(1, round(QUEUE_NS / unit_ns))


def _window(subject: Subject, recorder: Recorder, load: Load | None, work: int) -> Window:
    source = None if load is None else load.enqueue(work)
    begin = recorder.now_ns()
    result = subject.convert() if load is None else load.convert(source)
    end = recorder.now_ns()
    if load is not None:
        load.finish(source)
    subject.wait_for(result)
    return Window(begin, end)


def evidence(records: Sequence[Record], window: Window, *, loaded: bool) -> dict[str, Any]:
    """What the calls of one window did; times in ns since its beginning.

    ``waited`` of an event is None where nothing was queued that it could have waited for.
    """
    calls = _outermost([record for record in records if record.what == "call"])
    inside = {
        call: aliases
        for call, aliases in calls.items()
        if window.begin_ns <= call.start_ns <= window.end_ns
    }
    events = [
        _event(call, [one for one in records if one.correlation in aliases], window, loaded=loaded)
        for call, aliases in inside.items()
    ]
    return {
        "window_ns": window.end_ns - window.begin_ns,
        "waited": sorted({event["name"] for event in events if event["waited"]}),
        "copied_bytes": sum(event["bytes"] or 0 for event in events if event["direction"]),
        "events": events[:MOST_EVENTS],
        "events_left_out": max(0, len(events) - MOST_EVENTS),
    }


def _outermost(calls: Sequence[Record]) -> dict[Record, set[int]]:
    """Calls that no other call made, in their order, with the correlations of all they made.

    The runtime's calls are made of the driver's, which are recorded as well.
    """
    found: dict[Record, set[int]] = {}
    last: dict[int, Record] = {}
    for call in sorted(calls, key=lambda call: (call.start_ns, -call.end_ns)):
        outer = last.get(call.thread)
        if outer is not None and call.end_ns <= outer.end_ns:
            found[outer].add(call.correlation)
        else:
            found[call] = {call.correlation}
            last[call.thread] = call
    return found


def _event(
    call: Record, caused: Sequence[Record], window: Window, *, loaded: bool
) -> dict[str, Any]:
    moved = [one for one in caused if one.what in ("copy", "set")]
    on_device = [one for one in caused if one.what not in ("call", "wait")]
    duration = max(0, call.end_ns - call.start_ns)
    waited = any(one.what == "wait" for one in caused) or (loaded and duration >= WAITED_NS)
    return {
        "name": call.name,
        "start_ns": call.start_ns - window.begin_ns,
        "duration_ns": duration,
        "bytes": sum(one.size_bytes or 0 for one in moved) if moved else None,
        "direction": next((one.name for one in moved if one.what == "copy"), None),
        "device_ns": sum(max(0, one.end_ns - one.start_ns) for one in on_device),
        "kernel": next((one.name for one in on_device if one.what == "kernel"), None),
        "waited": True if waited else (False if loaded else None),
    }


def _no_trace(reason: str) -> dict[str, Any]:
    return {"verdict": "no trace", "evidence": {"reason": reason}}
