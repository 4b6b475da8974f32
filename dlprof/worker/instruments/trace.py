"""Trace: which calls into CUDA waited or copied during the conversion?

CUPTI (``cupti-python``) is a second source, after ``ordering``. The conversion runs behind work
that is queued on the producer. Each call that began in between counts. Proof of a wait: CUPTI's own
record of one, or a call that took a good part of the queue. Of several windows the shortest counts,
since a delay of the host only makes them longer.

Verdicts: ``traced``, ``no trace`` (with a reason: a missing record must not look like no call).

It runs in a process of its own: CUPTI slows every call and stays in the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from dlprof.device.cuda import Gpu, driver_devices
from dlprof.protocol.messages import NO_CUPTI, no_trace, words
from dlprof.worker.queued_work import QueuedWork, calibrate, default_sides
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.subject import Subject

QUEUE_NS = 20_000_000
WAITED_NS = 5_000_000
"""A call that takes this long behind a queue of :data:`QUEUE_NS` waits for it."""
WINDOWS = 3


class Window(NamedTuple):
    """From before the conversion was called until it returned, by CUPTI's clock."""

    begin_ns: int
    end_ns: int


def measure(subject: Subject, gpu: Gpu | None = None) -> dict[str, Any]:
    if "cuda" not in (subject.spec.device, subject.result_device):
        return no_trace("the conversion has nothing to do with a CUDA device")
    text, queue, work = subject.producer.enqueue(subject.spec), None, 0
    if text is None:
        subject.wait_for(subject.convert())
    else:
        queue = QueuedWork(subject, text, gpu, default_sides(subject, gpu))
        unit_ns, _ = calibrate(queue, WAITED_NS)
        work = max(1, round(QUEUE_NS / unit_ns))
        for _ in range(2):  # warm the queue and the conversion
            queue.convert(queue.enqueue(1))
    try:
        recorder = Recorder()
        with recorder.recording():
            windows = [_window(subject, recorder, queue, work) for _ in range(WINDOWS)]
    except NoTrace as reason:
        return no_trace(str(reason))
    shortest = min(windows, key=lambda window: window.end_ns - window.begin_ns)
    found = evidence(recorder.records, shortest, loaded=queue is not None)
    return {"verdict": "traced", "evidence": found}


def _window(subject: Subject, recorder: Recorder, queue: QueuedWork | None, work: int) -> Window:
    source = None if queue is None else queue.enqueue(work)
    begin = recorder.now_ns()
    result = subject.convert() if queue is None else queue.convert(source)
    end = recorder.now_ns()
    if queue is not None:
        queue.finish(source)
    subject.wait_for(result)
    return Window(begin, end)


# What the records say


@dataclass(frozen=True)
class Record:
    """One activity: a ``call``, or a ``copy`` or a ``wait`` of the host that a call caused.

    Both have the same ``correlation``. ``name`` is the call's, or the direction of a copy.
    """

    kind: str
    correlation: int
    start_ns: int
    end_ns: int
    name: str = ""
    size_bytes: int | None = None
    thread: int = 0


def evidence(records: Sequence[Record], window: Window, *, loaded: bool) -> dict[str, Any]:
    calls = _outermost([record for record in records if record.kind == "call"])
    events = [
        _event(call, [record for record in records if record.correlation in caused], loaded=loaded)
        for call, caused in calls.items()
        if window.begin_ns <= call.start_ns <= window.end_ns
    ]
    return {
        "waited": sorted({event["name"] for event in events if event["waited"]}),
        "events": events,
    }


def _outermost(calls: Sequence[Record]) -> dict[Record, set[int]]:
    """Return the outermost calls in order, with the correlations of all calls inside them.

    Calls of the runtime make calls of the driver, which are recorded as well.
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


def _event(call: Record, caused: Sequence[Record], *, loaded: bool) -> dict[str, Any]:
    copies = [record for record in caused if record.kind == "copy"]
    duration = max(0, call.end_ns - call.start_ns)
    waited = any(record.kind == "wait" for record in caused) or (loaded and duration >= WAITED_NS)
    return {
        "name": call.name,
        "duration_ns": duration,
        "bytes": sum(record.size_bytes or 0 for record in copies) if copies else None,
        "direction": copies[0].name if copies else None,
        "waited": True if waited else (False if loaded else None),
    }


# CUPTI


BUFFER_BYTES = 8 << 20
CONTROL = "cuCtxSynchronize"
"""A call that is made while recording. Without its record other calls may be missing, too."""

KINDS = {
    "RUNTIME": "call",
    "DRIVER": "call",
    "MEMCPY": "copy",
    "MEMCPY2": "copy",
    "SYNCHRONIZATION": "wait",
}
DIRECTIONS = {
    "HTOD": "host to device",
    "DTOH": "device to host",
    "DTOD": "device to device",
    "HTOH": "host to host",
    "PTOP": "device to other device",
}
"""Names of ActivityMemcpyKind."""
HOST_WAITS = ("EVENT_SYNCHRONIZE", "STREAM_SYNCHRONIZE", "CONTEXT_SYNCHRONIZE")
"""The synchronizations for which the host waits; the remaining one is a stream's."""

# cudaMemcpyAsync_v3020, cuMemcpyDtoHAsync_v2_ptsz: users know them by their plain names.
_VERSION = re.compile(r"(_v\d+|_ptsz|_ptds)+$")


class NoTrace(Exception):
    """Nothing can be recorded here; the message says why."""


class Recorder:
    """``records`` is complete after :meth:`recording`.

    CUPTI takes back the buffer with the records, so each is turned into a :class:`Record` at once.
    """

    def __init__(self) -> None:
        devices = driver_devices()
        if isinstance(devices, str):
            raise NoTrace(devices)
        cupti = self._cupti = _answer(importlib.import_module, "cupti.cupti")
        kinds = _answer(lambda: {int(getattr(cupti.ActivityKind, name)): name for name in KINDS})
        self._kinds = {kind: KINDS[name] for kind, name in kinds.items()}
        self.records: list[Record] = []
        self._failures: list[str] = []

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Record inside. Raises :class:`NoTrace`."""
        drop_count = ctypes.c_size_t(0)
        slot = self._ask("subscribe", lambda *_: None, None)  # asks for no callbacks
        try:
            # A buffer's size and the most records in it, 0 for as many as fit.
            self._ask("activity_register_callbacks", lambda: (BUFFER_BYTES, 0), self._take)
            for kind in self._kinds:
                self._ask("activity_enable", kind)
            _call_control()
            yield
            _call_control()  # unfinished work would be recorded without its end
            self._ask("activity_flush_all", 1)
            self._ask("activity_get_num_dropped_records", 0, 0, ctypes.addressof(drop_count))
        finally:
            for kind in self._kinds:
                with contextlib.suppress(NoTrace):
                    self._ask("activity_disable", kind)
            with contextlib.suppress(NoTrace):
                self._ask("unsubscribe", slot)
        if self._failures:
            raise NoTrace(f"a record could not be read: {self._failures[0]}")
        if drop_count.value:
            raise NoTrace(f"CUPTI dropped {drop_count.value} records")
        if not any(record.name == CONTROL for record in self.records):
            raise NoTrace(f"CUPTI recorded nothing, not even {CONTROL}, which was called for that")

    def now_ns(self) -> int:
        """CUPTI's clock, which the records use."""
        return int(self._ask("get_timestamp"))

    def _ask(self, name: str, *arguments: Any) -> Any:
        return _answer(lambda: getattr(self._cupti, name)(*arguments))

    def _take(self, activities: list[Any]) -> None:
        """Called by CUPTI, which would lose an exception."""
        for activity in activities:
            found = attempt(partial(_record, self._cupti, self._kinds, activity))
            if isinstance(found, Refusal):
                self._failures.append(found.reason)
            elif found is not None:
                self.records.append(found)


def _answer(call: Callable[..., Any], *arguments: Any) -> Any:
    """Call CUPTI. Raises :class:`NoTrace` with the reason if it raises."""
    found = attempt(lambda: call(*arguments))
    if not isinstance(found, Refusal):
        return found
    error = found.error
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("cupti"):
        raise NoTrace(NO_CUPTI) from error
    raise NoTrace(f"CUPTI says no: {words(error)}") from error


def _call_control() -> None:
    # It fails without a context of this thread, and is recorded all the same.
    ctypes.CDLL("libcuda.so.1").cuCtxSynchronize()


def _record(cupti: Any, kinds: dict[int, str], activity: Any) -> Record | None:
    kind, name, size_bytes = kinds.get(int(activity.kind)), "", None
    if kind == "call":
        driver = int(activity.kind) == int(cupti.ActivityKind.DRIVER)
        domain = cupti.CallbackDomain.DRIVER_API if driver else cupti.CallbackDomain.RUNTIME_API
        name = _VERSION.sub("", cupti.get_callback_name(domain, activity.cbid))
    elif kind == "copy":
        name = DIRECTIONS.get(cupti.ActivityMemcpyKind(activity.copy_kind).name, "unknown")
        size_bytes = int(activity.bytes)
    elif kind is None or cupti.ActivitySynchronizationType(activity.type).name not in HOST_WAITS:
        return None
    correlation, thread = int(activity.correlation_id), int(getattr(activity, "thread_id", 0))
    begin, end = int(activity.start), int(activity.end)
    return Record(kind, correlation, begin, end, name, size_bytes, thread)
