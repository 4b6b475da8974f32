"""Trace: which calls into CUDA waited or copied, inside the conversion's own window?

A second source beside ``ordering``, by CUPTI (``cupti-python``): the conversion runs behind work
that is queued on the producer, and between two readings of CUPTI's clock. Every call that began in
between is listed with its time, and with the bytes and the direction of what it copied. Proof of a
wait is CUPTI's own record of one, or a call that took a good part of the queue. Of several windows
the shortest counts: what delays the host only makes them longer.

It cannot tell, and says ``no trace`` with the reason, where anything keeps CUPTI from recording:
no record must never look like no call. It runs in a child of its own, for CUPTI slows every call
and stays in the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from dlprof.device.cuda import driver_devices
from dlprof.protocol.messages import words
from dlprof.worker.load import Load, calibrate, default_sides, load_of
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
    load, work = _queue_load(subject, gpu)
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


def _queue_load(subject: Subject, gpu: Gpu | None) -> tuple[Load | None, int]:
    """The load and how much of it makes :data:`QUEUE_NS`; warmed, with all that is converted."""
    text = subject.producer.enqueue(subject.spec)
    if text is None:
        subject.wait_for(subject.convert())
        return None, 0
    load = load_of(subject, text, gpu, default_sides(subject))
    unit_ns, _ = calibrate(load, WAITED_NS)
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


BUFFER_BYTES = 8 << 20
CONTROL = "cuCtxSynchronize"
"""A call that is made while the recording runs: without its record, other calls may lack theirs."""

KINDS = {
    "RUNTIME": "call",
    "DRIVER": "call",
    "MEMCPY": "copy",
    "MEMCPY2": "copy",
    "MEMSET": "set",
    "CONCURRENT_KERNEL": "kernel",
    "SYNCHRONIZATION": "wait",
}
DIRECTIONS = {
    "HTOD": "host to device",
    "HTOA": "host to device",
    "DTOH": "device to host",
    "ATOH": "device to host",
    "DTOD": "device to device",
    "DTOA": "device to device",
    "ATOD": "device to device",
    "ATOA": "device to device",
    "HTOH": "host to host",
    "PTOP": "device to other device",
}
HOST_WAITS = ("EVENT_SYNCHRONIZE", "STREAM_SYNCHRONIZE", "CONTEXT_SYNCHRONIZE")
"""The synchronisations that the host waits for; the other one is a stream's."""


# cudaMemcpyAsync_v3020, cuMemcpyDtoHAsync_v2_ptsz: users know them by their plain names.
_VERSION = re.compile(r"(_v\d+|_ptsz|_ptds)+$")


class NoTrace(Exception):
    """Nothing can be recorded here; the message says why."""


@dataclass(frozen=True)
class Record:
    """One activity: a ``call``, or a ``copy``, ``set``, ``kernel`` or ``wait`` that a call caused.

    Both have the same ``correlation``. ``name`` is the call's or the kernel's, or the direction
    of a copy. A ``wait`` is one of the host.
    """

    what: str
    correlation: int
    start_ns: int
    end_ns: int
    name: str = ""
    size_bytes: int | None = None
    thread: int = 0


class Recorder:
    """Records while its ``with`` block runs; ``records`` is complete after it.

    CUPTI hands its records over in a callback, as objects on a buffer that it takes back
    afterwards, so each is turned into a :class:`Record` at once. One process has one subscriber:
    where somebody else has the slot, nothing is recorded.
    """

    def __init__(self) -> None:
        devices = driver_devices()
        if isinstance(devices, str):
            raise NoTrace(devices)
        self.records: list[Record] = []
        self._failures: list[str] = []
        self._cupti = _load_cupti()
        self._kinds = {self._kind(name): what for name, what in KINDS.items()}
        self._slot: Any = None

    def __enter__(self) -> Recorder:  # noqa: PYI034 - typing.Self is newer than Python 3.10
        self._slot = self._ask("subscribe", _ignore, None)
        try:
            self._ask("activity_register_callbacks", _offer, self._take)
            for kind in self._kinds:
                self._ask("activity_enable", kind)
        except NoTrace:
            self._close()
            raise
        _call_control()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None:
            self._close()
            return
        lost = ctypes.c_size_t(0)
        _call_control()  # what is still under way would be recorded without its end
        try:
            self._ask("activity_flush_all", 1)
            self._ask("activity_get_num_dropped_records", 0, 0, ctypes.addressof(lost))
        finally:
            self._close()
        self._check(lost.value)

    def now_ns(self) -> int:
        """CUPTI's clock, which is that of the records."""
        return int(self._ask("get_timestamp"))

    def _kind(self, name: str) -> int:
        try:
            return int(getattr(self._cupti.ActivityKind, name))
        except AttributeError as error:
            raise _too_old(error) from error

    def _ask(self, name: str, *arguments: Any) -> Any:
        """Call CUPTI; whatever it raises is the reason why there is no trace."""
        try:
            return getattr(self._cupti, name)(*arguments)
        except AttributeError as error:
            raise _too_old(error) from error
        except Exception as error:
            # cuptiError, and RuntimeErrors where the driver or CUPTI's own library is missing.
            if "MULTIPLE_SUBSCRIBERS" in str(error):
                raise NoTrace("another profiler has CUPTI's only subscriber slot") from error
            raise NoTrace(f"CUPTI says no: {words(error)}") from error

    def _check(self, lost: int) -> None:
        if self._failures:
            raise NoTrace(f"a record could not be read: {self._failures[0]}")
        if lost:
            raise NoTrace(f"CUPTI dropped {lost} records")
        if not any(record.name == CONTROL for record in self.records):
            raise NoTrace(f"CUPTI recorded nothing, not even {CONTROL}, which was called for that")

    def _close(self) -> None:
        """Undo what may not have been done; the answer is known by now."""
        for kind in self._kinds:
            with contextlib.suppress(NoTrace):
                self._ask("activity_disable", kind)
        with contextlib.suppress(NoTrace):
            self._ask("unsubscribe", self._slot)

    def _take(self, activities: list[Any]) -> None:
        """Called by CUPTI, where an exception would be lost."""
        for activity in activities:
            try:
                self.records += _record(self._cupti, self._kinds, activity)
            except Exception as error:  # noqa: BLE001 - any version, any error: told afterwards
                self._failures.append(words(error))


def _load_cupti() -> Any:
    try:
        return importlib.import_module("cupti.cupti")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "cupti":
            raise NoTrace("cupti-python is not installed: pip install cupti-python") from None
        raise NoTrace(f"cupti-python cannot be imported: {words(error)}") from error
    except Exception as error:
        # Its binary modules raise what they like where a library is missing.
        raise NoTrace(f"cupti-python cannot be imported: {words(error)}") from error


def _too_old(error: AttributeError) -> NoTrace:
    return NoTrace(f"this version of cupti-python lacks something: {error}")


def _call_control() -> None:
    # It may well fail, without a context of this thread: the call is recorded all the same.
    ctypes.CDLL("libcuda.so.1").cuCtxSynchronize()


def _offer() -> tuple[int, int]:
    """A buffer's size and the most records in it, 0 for as many as fit."""
    return BUFFER_BYTES, 0


def _ignore(*_: Any) -> None:
    """A subscriber that asks for no callbacks."""


def _record(cupti: Any, kinds: dict[int, str], activity: Any) -> list[Record]:
    what = kinds.get(int(activity.kind))
    if what is None or (what == "wait" and not _is_host_wait(cupti, activity)):
        return []
    size = int(activity.bytes) if what in ("copy", "set") else None
    return [
        Record(
            what,
            int(activity.correlation_id),
            int(activity.start),
            int(activity.end),
            _name(cupti, what, activity),
            size,
            int(getattr(activity, "thread_id", 0)),
        )
    ]


def _is_host_wait(cupti: Any, activity: Any) -> bool:
    return cupti.ActivitySynchronizationType(activity.type).name in HOST_WAITS


def _name(cupti: Any, what: str, activity: Any) -> str:
    if what == "call":
        driver = int(activity.kind) == int(cupti.ActivityKind.DRIVER)
        domain = cupti.CallbackDomain.DRIVER_API if driver else cupti.CallbackDomain.RUNTIME_API
        return _VERSION.sub("", cupti.get_callback_name(domain, activity.cbid))
    if what == "copy":
        kind = cupti.ActivityMemcpyKind(activity.copy_kind).name
        return DIRECTIONS.get(kind, "unknown")
    return str(activity.name) if what == "kernel" else ""
