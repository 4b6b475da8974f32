"""CUPTI's activity records by ``cupti-python``: what the driver was called for, and what it did.

CUPTI hands its records over in a callback, as objects on a buffer that it takes back afterwards, so
each is turned into a :class:`Record` at once. One process has one subscriber: the slot is taken
while a recording runs, and where somebody else has it, nothing is recorded.

Whatever says no, be it the package, the driver, the version or the slot, ends in :class:`NoTrace`
with the reason: no record must never look like no call.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import re
from dataclasses import dataclass
from typing import Any

from dlprof.device.cuda import driver_devices
from dlprof.worker.words import words

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
    """Records while its ``with`` block runs; ``records`` is complete after it."""

    def __init__(self) -> None:
        devices = driver_devices()
        if isinstance(devices, str):
            raise NoTrace(devices)
        self.records: list[Record] = []
        self._failures: list[str] = []
        self._cupti = _load()
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


def _load() -> Any:
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
