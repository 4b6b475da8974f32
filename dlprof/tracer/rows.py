"""What is counted: a row for each line and conversion, and the file of a process.

A row keeps names and numbers, never an array. The file is written about once a second while
conversions happen, so a process that is killed keeps what was counted until then.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from threading import Lock, get_ident
from types import CodeType, FrameType
from typing import Any

from dlprof.tracer.arrays import Kind
from dlprof.tracer.place import span
from dlprof.tracer.targets import Target

SCHEMA = "dlprof.trace/1"
NO_LINE = "(no line of the program)"
"""The file of a conversion that a thread was given to call; its line is 0."""
INTERVAL_NS = 1_000_000_000
"""Between two files of a process."""
TICK_NS = 10_000_000
MOST_TICKS = 256
"""Times at which the rows are looked at; of more, two become one, and they come half as often."""
SHARE = 100
"""The tracer's own looks and files take at most this part of a program's time."""
MOST_EVENTS = 200_000
MOST_SHAPES, OTHERS = 64, "others"
"""Kinds of array that a row tells apart, and how what comes later counts: without a size."""
TIME, VIEWS, COPIES, UNKNOWN, SIZE, BYTES, DTYPE, EACH = range(8)
"""Of a row's numbers for one dtype and shape. SIZE is the bytes of one array, and DTYPE that of the
last copy. EACH is the bytes of a copy with this DTYPE, if it was one between NumPy and a tensor of
PyTorch on the host: the next is alike, and needs no long look."""


Queue = tuple[bool, Any]
"""Whether work on an array was still queued when a call began, and the names of the arguments."""


class Row:
    """One conversion on one line."""

    __slots__ = (
        "arrays",
        "busy",
        "code",
        "consumer",
        "crossings",
        "device",
        "file",
        "first_ns",
        "function",
        "idle",
        "index",
        "kind",
        "line",
        "raised",
        "retyped",
        "seen_ns",
        "span",
        "target",
        "trouble",
        "via",
    )

    def __init__(self, frame: FrameType | None, target: Target, kind: Kind, via: str) -> None:
        self.kind = kind
        self.target = target
        self.file, self.line, self.function, self.span = NO_LINE, 0, "<module>", None
        self.code: CodeType | None = None
        """Kept, so that its id names no other."""
        if frame is not None:
            self.code = code = frame.f_code
            self.file = code.co_filename
            self.line = frame.f_lineno
            self.function = getattr(code, "co_qualname", code.co_name)
            self.span = span(code, frame.f_lasti)
        self.via = via
        self.consumer = ""
        self.arrays: dict[Any, list[Any]] = {}
        self.crossings: dict[tuple[str, str], int] = {}
        self.device = ""
        self.retyped: set[str] = set()
        """Dtypes of results that are not those of their sources."""
        self.busy: dict[tuple[Any, int], list[float]] = {}
        """Calls behind queued work and their time, by array, outcome and form of the call, and
        the power of two of the time."""
        self.idle: dict[Any, float] = {}
        """The least time of a call with an empty queue, by array, outcome and form of the call."""
        self.first_ns = 0.0
        """What its first call took: frameworks load and set up a device in it."""
        self.raised = 0
        self.trouble = ""
        self.index = -1
        self.seen_ns = 0.0
        """What its calls had taken at the last tick."""

    def numbers(self, key: Any, size: Callable[[], int]) -> list[Any]:
        """The numbers for arrays of a dtype and shape, which are met for the first time."""
        if len(self.arrays) >= MOST_SHAPES:
            key, size = OTHERS, lambda: 0
        return self.arrays.setdefault(key, [0, 0, 0, 0, size(), 0, None, 0])

    def queued(self, key: Any, outcome: int, queue: Queue, took: float) -> None:
        """Count a call by the queue that it met: another outcome or form takes another time."""
        is_busy, form = queue
        name = (key if key in self.arrays else OTHERS), outcome, form
        if not is_busy:
            if name[0] != OTHERS:
                self.idle[name] = min(took, self.idle.get(name, took))
            return
        at = self.busy.setdefault((name, math.frexp(took)[1]), [0, 0.0])
        at[0] += 1
        at[1] += took

    def as_dict(self, idle: Mapping[Any, float]) -> dict[str, Any]:
        numbers = list(self.arrays.items())
        total, views, copies, unknown = (
            sum(one[at] for _, one in numbers) for at in (TIME, VIEWS, COPIES, UNKNOWN)
        )
        waits, maybe, waited = self._waits(idle)
        empty = sum(calls_of(one) for key, one in numbers if 0 in words(key)[1])
        top = sorted(numbers, key=lambda item: (item[0] == OTHERS, -calls_of(item[1])))
        return {
            "file": self.file,
            "line": self.line,
            "function": self.function,
            "span": self.span,
            "via": self.via,
            "conversion": self.target.conversion,
            "producer": self.kind.framework,
            "consumer": self.consumer or self.target.framework,
            "calls": views + copies + unknown,
            "total_ns": round(total),
            "first_ns": round(self.first_ns),
            "bytes": sum(one[BYTES] for _, one in numbers),
            "result": result_of(views, copies, unknown, empty, self.raised),
            "views": views,
            "copies": copies,
            "unknown": unknown,
            "raised": self.raised,
            "waits": waits,
            "maybe_waits": maybe,
            "waited_ns": round(waited),
            "device": self.device,
            "retyped": sorted(self.retyped),
            "crossings": [[*pair, count] for pair, count in self.crossings.items()],
            "arrays": [[*words(key), calls_of(one), one[SIZE]] for key, one in top],
            "trouble": self.trouble,
        }

    def _waits(self, idle: Mapping[Any, float]) -> tuple[int, int, float]:
        """Calls that waited by both witnesses, by one of them, and the time of the first.

        ``idle`` has what the same conversion of such an array takes with an empty queue.
        """
        waits, maybe, waited = 0, 0, 0.0
        for (call, _), (calls, took) in list(self.busy.items()):
            empty = idle.get((self.target.conversion, self.kind.framework, call))
            if empty is None:
                maybe += int(calls)
            elif took > calls * (LONGER * empty + LONGER_NS):
                waits, waited = waits + int(calls), waited + took - calls * empty
        return waits, maybe, waited


def result_of(views: int, copies: int, unknown: int, empty: int, raised: int) -> str:
    """The word for these calls, and for those that ``raised``. An array without elements is neither
    view nor copy: beside others it says nothing. Such calls are ``empty`` of the unknown ones.
    """
    counts = {"view": views, "copy": copies, "unknown": max(unknown - empty, 0)}
    found = [word for word, count in counts.items() if count]
    if found:
        return found[0] if len(found) == 1 else "mixed"
    return "raised" if raised and not unknown else "unknown"


def calls_of(numbers: list[Any]) -> int:
    return int(sum(numbers[VIEWS : UNKNOWN + 1]))


LONGER, LONGER_NS = 3, 20_000
"""A call took much longer than an idle one if it took so many times as long, and so much more."""


def words(key: Any) -> tuple[str, list[int]]:
    if not isinstance(key, tuple):
        return str(key), []
    dtype, shape = key[:2]
    return dtype_name(dtype), [int(length) for length in shape or ()]


def dtype_name(dtype: Any) -> str:
    return str(getattr(dtype, "name", None) or str(dtype).removeprefix("torch."))


class Rows:
    """All rows of this process, and its file in ``folder``; None keeps them in memory."""

    def __init__(self, folder: str | None, events: bool = False) -> None:
        self.folder = folder
        self.troubles: list[str] = []
        """What could not be wrapped, and why."""
        self.with_events = events
        self.begin()

    def trouble(self, where: str, error: Exception) -> None:
        """Note once for each place what could not be done there."""
        begin = f"{where}: {type(error).__name__}"
        if not any(one.startswith(begin) for one in self.troubles):
            self.troubles.append(f"{begin}: {error}"[:200])

    def begin(self) -> None:
        """Count from zero: at the start, and in the child of a fork."""
        self.pid = os.getpid()
        self.started = time.time()
        self.started_ns = time.perf_counter_ns()
        self.rows: dict[Any, Row] = {}
        self.events: list[tuple[int, int, int, int]] = []
        self.ticks: list[tuple[int, int, dict[Row, float]]] = []
        """Begin and end, and what each row took in between."""
        self.has_ended = False
        self.tick_ns, self.next_note_ns = TICK_NS, self.started_ns + TICK_NS
        self.next_file_ns, self.next_s = self.started_ns, self.next_note_ns / 1e9
        self._ticking = Lock()

    def row(self, frame: FrameType | None, target: Target, kind: Kind, via: str = "") -> Row:
        """The row of a place and a conversion: it may be that of another code object.

        Without a frame, it is the row of all calls from no line of the program.
        """
        row = Row(frame, target, kind, via)
        key = row.file, row.line, row.function, target.conversion, kind.framework, via, row.span
        return self.rows.setdefault(key, row)

    def event(self, row: Row, began_s: float, took_ns: float) -> None:
        if row.index < 0:
            known = list(self.rows.values())
            if row not in known:  # the call began before a fork
                return
            row.index = known.index(row)
        if len(self.events) < MOST_EVENTS:
            began_ns = round(began_s * 1e9) - self.started_ns
            self.events.append((began_ns, round(took_ns), row.index, get_ident()))

    def tick(self, row: Row, began_s: float, took_ns: float) -> None:
        """Note what each row took since the last time; write the file about once a second.

        The conversion that just ended may have begun long after all others since then.
        """
        if not self._ticking.acquire(blocking=False):
            return  # another thread is at it
        try:
            began = time.perf_counter_ns()
            if began > self.next_note_ns:
                began_ns = round(began_s * 1e9)
                if began_ns - self.next_note_ns > self.tick_ns:
                    row.seen_ns += took_ns
                    self._note(self.next_note_ns)
                    row.seen_ns -= took_ns
                    self._note(began, began_ns)
                else:
                    self._note(began)
                noted = time.perf_counter_ns()
                self.next_note_ns = noted + max(self.tick_ns, SHARE * (noted - began))
            if began > self.next_file_ns:
                self.write()
                wrote = time.perf_counter_ns()
                self.next_file_ns = wrote + max(INTERVAL_NS, SHARE * (wrote - began))
            self.next_s = min(self.next_note_ns, self.next_file_ns) / 1e9
        finally:
            self._ticking.release()

    def _note(self, now_ns: int, begin_ns: int = 0) -> None:
        took: dict[Row, float] = {}
        for row in list(self.rows.values()):
            total = sum(numbers[TIME] for numbers in list(row.arrays.values()))
            if total > row.seen_ns:
                took[row] = total - row.seen_ns
                row.seen_ns = total
        last = self.ticks[-1][1] if self.ticks else 0
        begin = begin_ns - self.started_ns if begin_ns else last
        if took:
            self.ticks.append((begin, now_ns - self.started_ns, took))
        if len(self.ticks) > MOST_TICKS:
            self.ticks = [
                *map(_joined, self.ticks[::2], self.ticks[1::2]),
                *self.ticks[len(self.ticks) & ~1 :],
            ]
            self.tick_ns *= 2

    def as_dict(self, ended: bool) -> dict[str, Any]:
        if ended:
            self._note(time.perf_counter_ns())
        ticks, events = list(self.ticks), list(self.events)
        known = list(self.rows.values())  # last, as other threads may add one
        rows = [row for row in known if row.arrays or row.raised]
        idle = _idle(rows)
        places = {id(row): at for at, row in enumerate(rows)}
        order = {at: places.get(id(row)) for at, row in enumerate(known)}
        return {
            "schema": SCHEMA,
            "pid": self.pid,
            "argv": [str(word) for word in getattr(sys, "argv", [])],
            "started": self.started,
            "wall_ns": time.perf_counter_ns() - self.started_ns,
            "ended": ended,
            "python": ".".join(map(str, sys.version_info[:3])),
            "versions": _versions(rows),
            "troubles": list(self.troubles),
            "rows": [row.as_dict(idle) for row in rows],
            "timeline": [
                [begin, end, places[id(row)], round(ns)]
                for begin, end, took in ticks
                for row, ns in took.items()
            ],
            "events": [[begin, took, order[at], thread] for begin, took, at, thread in events],
        }

    @property
    def path(self) -> str:
        """The file of this process."""
        return os.path.join(self.folder or "", f"{self.pid}-{self.started:.6f}.json")  # noqa: PTH118

    def counted(self) -> int:
        """How many calls were counted until now."""
        rows = list(self.rows.values())
        numbers = (one for row in rows for one in list(row.arrays.values()))
        return sum(map(calls_of, numbers)) + sum(row.raised for row in rows)

    def write(self, ended: bool = False) -> None:
        """Replace the file; what cannot be written is lost, and the program goes on."""
        if self.folder is None:
            return
        self.has_ended |= ended
        path, partial = self.path, f"{self.path}.{get_ident()}.partial"
        try:
            text = json.dumps(self.as_dict(ended))
            with open(partial, "w", encoding="utf-8") as file:  # noqa: PTH123
                file.write(text)
            if ended or not self.has_ended:  # a thread that outlives the program
                os.replace(partial, path)  # noqa: PTH105
        except Exception:  # noqa: BLE001 - the tracer's own is not the program's
            self.has_ended &= not ended


def _joined(
    one: tuple[int, int, dict[Row, float]], other: tuple[int, int, dict[Row, float]]
) -> tuple[int, int, dict[Row, float]]:
    (begin, _, took), (_, end, more) = one, other
    return begin, end, {row: took.get(row, 0) + more.get(row, 0) for row in {**took, **more}}


def _idle(rows: Iterable[Row]) -> dict[Any, float]:
    """The least time with an empty queue, by conversion, framework and call, on any line."""
    found: dict[Any, float] = {}
    for row in rows:
        for call, took in list(row.idle.items()):
            name = row.target.conversion, row.kind.framework, call
            found[name] = min(took, found.get(name, took))
    return found


def _versions(rows: Iterable[Row]) -> dict[str, str]:
    names = {name for row in rows for name in (row.kind.framework, row.target.framework)}
    found = {name: getattr(sys.modules.get(name), "__version__", None) for name in names}
    return {name: str(version) for name, version in sorted(found.items()) if version}
