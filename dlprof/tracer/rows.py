"""The counts of each line and conversion, and the file of a process.

A row keeps names and numbers, never an array. The file is written about once a second while
conversions happen, so a process that is killed keeps what was counted until then.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import mmap
import os
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from threading import get_ident
from types import CodeType, FrameType
from typing import Any, NamedTuple

from dlprof.probes.builtin import ALL
from dlprof.tracer.place import span
from dlprof.tracer.targets import Target

SCHEMA = "dlprof.trace/1"
NO_LINE = "(no line of the program)"
"""Stands for the file of a conversion that a thread calls directly; its line is 0."""
FIRST_FILE_S, INTERVAL_S = 0.01, 1.0
"""The first file of a process, and the time to the next one."""
SHARE = 100
"""Writing files takes at most this part of a program's time."""
BAR_S, BAR_SHARE = 0.01, 128
"""A bar of the timeline holds the calls of this time, and of this part of the run until then."""
MOST_EVENTS = 200_000
MOST_SHAPES, OTHERS = 64, "others"
"""Dtypes and shapes that a row tells apart, and the name of all later ones, which have no size."""
MOST_BLOCKS = 64
CALLS, SLOTS = ".calls", 1 << 13
"""Ending of the file of open calls, and its slots for threads; behind them it has the rows."""
MOST_LINES = 500
"""A line is in the file if it took this part of the time."""
TIME, VIEWS, COPIES, UNKNOWN, READS, SIZE, BYTES = range(7)
"""The numbers of a row for one dtype and shape. SIZE is the bytes of one array."""
LONGER, LONGER_NS = 3, 20_000
"""A wait takes this many times as long as an idle call, and this much more."""
PLAIN = (
    *("file", "line", "function", "span", "via", "producer", "waits_in", "device", "raised"),
    *("origin", "is_argument"),
)
"""Fields of a row that its file has as they are."""
_clock, _date = time.perf_counter, time.time
"""Bound here: a program may replace those of :mod:`time`."""
Queue = tuple[bool, Any, bool]
"""Whether work was queued when a call began, the form of the call (its arguments' names), and
whether it was the queue of a copy to a device."""


class Memory(NamedTuple):
    """The memory of an array, and whether it lives. Nothing here keeps it alive."""

    address: int
    nbytes: int
    lives: Callable[[], bool]


@dataclass(eq=False)
class Row:
    """One conversion on one line. ``via`` is the function of a package that makes the call."""

    target: Target
    producer: str
    via: str = ""
    file: str = NO_LINE
    line: int = 0
    function: str = "<module>"
    span: tuple[int, int, int, int] | None = None
    number: int = -1
    """Names it in the memory of open calls; rows without a line in the report share a number."""
    code: CodeType | None = None
    """Kept here, so that no other code object gets its id."""
    consumer: str = ""
    arrays: dict[Any, list[Any]] = field(default_factory=dict)
    bars: list[list[float]] = field(default_factory=list)
    """Begin of the first call, end of the last, and the time of all."""
    bar_until_s: float = -math.inf
    """Calls that begin before belong to the last bar."""
    blocks: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=MOST_BLOCKS))
    """The last times, in s, in which any thread was in a call."""
    parallel_s: float = 0.0
    """Time that several threads spent in calls at once, without that of one of them."""
    crossings: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    device: str = ""
    retyped: set[str] = field(default_factory=set)
    """Dtypes of results that differ from their sources' dtypes."""
    busy: dict[tuple[Any, int], list[float]] = field(default_factory=dict)
    """Calls behind queued work and their time, by array, outcome, form, and magnitude of the
    time."""
    idle: dict[Any, float] = field(default_factory=dict)
    """The least time of a call with an empty queue, by array, outcome and form."""
    recorded: list[int] = field(default_factory=lambda: [0, 0])
    """Calls that waited on the host by the record of a simulated device, and a first one that did:
    frameworks load code in it."""
    waits_in: str = ""
    """The call that made a capsule, if that waited."""
    origin: tuple[str, int] | None = None
    """File and line of the conversion whose result went back in a first call."""
    is_argument: bool = False
    """Whether a compiled function took the result of a first call."""
    last: Memory | None = None
    """The memory of the result of the last first call."""
    first_ns: float = 0.0
    """The time of the first call, in which frameworks load code and set up a device."""
    raised: int = 0

    def gave(self, memory: tuple[int, int]) -> bool:
        """Whether address and bytes are those of the result of the last first call, which lives."""
        return self.last is not None and self.last[:2] == memory and self.last.lives()

    def meet(self, key: Any, size_bytes: int, device: str, took_ns: float) -> list[Any]:
        """Return the numbers of a dtype and shape that may be new."""
        if key not in self.arrays and len(self.arrays) >= MOST_SHAPES:
            key, size_bytes = OTHERS, 0
        self.device = self.device or device
        self.first_ns = self.first_ns or took_ns
        return self.arrays.setdefault(key, [0, 0, 0, 0, 0, size_bytes, 0])

    def overlap(self, began_s: float, ended_s: float) -> None:
        """Note a call that may overlap other threads. Calls come in the order of their ends."""
        blocks = self.blocks
        while blocks and blocks[-1][1] > began_s:
            since, until = blocks.pop()
            self.parallel_s += min(until, ended_s) - max(since, began_s)
            began_s, ended_s = min(since, began_s), max(until, ended_s)
        blocks.append((began_s, ended_s))

    def note_dtypes(self, source: Any, result: Any) -> None:
        """Note the dtype of a copy, if it is not the source's."""
        names = dtype_name(source), dtype_name(result)
        if names[0] != names[1] and "?" not in names:
            self.retyped.add(names[1])

    def queued(self, key: Any, index: int, queue: Queue, took_ns: float) -> None:
        """Count a call by the queue that it met: another outcome or form takes another time."""
        is_busy, form = queue[:2]
        name = (key if key in self.arrays else OTHERS), index, form
        if is_busy:
            calls = self.busy.setdefault((name, math.frexp(took_ns)[1]), [0, 0.0])
            calls[0] += 1
            calls[1] += took_ns
        elif name[0] != OTHERS:
            self.idle[name] = min(took_ns, self.idle.get(name, took_ns))

    def as_dict(self, idle: Mapping[Any, float]) -> dict[str, Any]:
        numbers = list(self.arrays.items())
        total, views, copies, unknown, reads, copied = (
            sum(row[index] for _, row in numbers)
            for index in (TIME, VIEWS, COPIES, UNKNOWN, READS, BYTES)
        )
        waits, maybe, waited = self._waits(idle)
        recorded, first = self.recorded
        waits += recorded + (first if recorded else 0)
        maybe += 0 if recorded else first
        parallel = min(self.parallel_s * 1e9, total)
        waited *= 1 - parallel / (total or 1)
        top = sorted(numbers, key=lambda item: (item[0] == OTHERS, -call_count(item[1])))
        return {
            **{name: getattr(self, name) for name in PLAIN},
            "conversion": self.target.conversion,
            "consumer": self.consumer or self.target.framework,
            "calls": views + copies + unknown + reads,
            "total_ns": round(total - parallel),
            "parallel_ns": round(parallel),
            "first_ns": round(self.first_ns),
            "bytes": copied,
            "reads": reads,
            "views": views,
            "copies": copies,
            "unknown": unknown,
            "waits": waits,
            "maybe_waits": maybe,
            "waited_ns": round(waited),
            "retyped": sorted(self.retyped),
            "crossings": [[*pair, count] for pair, count in self.crossings.items()],
            "arrays": [[*words(key), call_count(counts), counts[SIZE]] for key, counts in top],
        }

    def _waits(self, idle: Mapping[Any, float]) -> tuple[int, int, float]:
        """Return the calls that waited, those that may have, and how long the former waited.

        ``idle`` has the time of the same conversion of such an array with an empty queue.
        """
        waits, maybe, waited = 0, 0, 0.0
        for (call, _), (calls, took) in list(self.busy.items()):
            empty = idle.get((self.target.conversion, self.producer, call))
            if empty is None:
                maybe += int(calls)
            elif took > calls * (LONGER * empty + LONGER_NS):
                waits, waited = waits + int(calls), waited + took - calls * empty
        return waits, maybe, waited


def call_count(numbers: list[Any]) -> int:
    return int(sum(numbers[VIEWS : READS + 1]))


def words(key: Any) -> tuple[str, list[int]]:
    if not isinstance(key, tuple):
        return str(key), []
    dtype, shape = key
    return dtype_name(dtype), [int(length) for length in shape or ()]


@functools.cache
def dtype_name(dtype: Any) -> str:
    return str(getattr(dtype, "name", None) or str(dtype).removeprefix("torch."))


class Rows:
    """All rows of this process, and its file in ``folder``; None keeps them in memory."""

    def __init__(self, folder: str | None, events: bool = False) -> None:
        self.folder = folder
        self.troubles: dict[str, str] = {}
        """Failures of the tracer, by place and type of the error."""
        self.with_events = events
        self.line_times_s: dict[tuple[str, int], float] = {}
        """What the user's lines took, as :class:`Lines` saw it."""
        self.begin()

    def trouble(self, place: str, error: Exception) -> None:
        """Note an error once for each place."""
        begin = f"{place}: {type(error).__name__}"
        self.troubles.setdefault(begin, f"{begin}: {error}"[:200])

    def begin(self) -> None:
        """Count from zero: at the start, and in the child of a fork."""
        self.pid, self.started = os.getpid(), _date()
        self.started_s = _clock()
        self.next_file_s = self.started_s + FIRST_FILE_S
        self.rows: dict[Any, Row] = {}
        self.line_times_s.clear()
        self.arguments: dict[Any, list[int]] = {}
        """Calls of compiled functions with NumPy arrays, and the bytes, by file and line."""
        self.events: list[tuple[float, float, Row, int]] = []
        self.has_ended = False
        self.open_calls = self._open_calls()
        """By slot of a thread: the number of the row whose call it is in, or 0."""
        places = itertools.count()
        self.slots: dict[int, int] = defaultdict(lambda: next(places) % SLOTS)

    def _open_calls(self) -> memoryview:
        """Return memory that outlives a process that is killed, if there is a folder for it."""
        self._numbers = itertools.count(1)
        with suppress(OSError, ValueError, TypeError):
            with open(self._path(CALLS), "wb") as file:  # noqa: PTH123
                file.truncate(8 * SLOTS)
            with open(self._path(CALLS), "r+b") as file:  # noqa: PTH123
                return memoryview(mmap.mmap(file.fileno(), 8 * SLOTS)).cast("q")
        return memoryview(bytearray(8 * SLOTS)).cast("q")

    def row(self, frame: FrameType | None, target: Target, producer: str, via: str) -> Row:
        """Return the row of a place and a conversion. Several code objects may share it.

        Without a frame, it is the row of all calls from no line of the program.
        """
        row = Row(target, producer, via)
        if frame is not None:
            row.code = code = frame.f_code
            row.span = span(code, frame.f_lasti)
            # Python finds f_lineno by a walk from the code's start.
            line = row.span[0] if row.span else frame.f_lineno
            row.file, row.line = code.co_filename, line
            row.function = getattr(code, "co_qualname", code.co_name)
        key = row.file, row.line, row.function, target.conversion, producer, via, row.span
        found = self.rows.setdefault(key, row)
        if found is row:
            row.number = next(self._numbers)
            entry = row.number, row.file, row.line, target.conversion
            with suppress(OSError, ValueError, TypeError), open(self._path(CALLS), "a") as file:  # noqa: PTH123
                file.write(f"{json.dumps(entry)}\n")
        return found

    def count(
        self, row: Row, numbers: list[Any], outcome: tuple[int, int], began_s: float, took_ns: float
    ) -> None:
        """Count a call and its time, and write the file about once a second.

        ``outcome`` is VIEWS, COPIES, READS or UNKNOWN, and the bytes copied.
        """
        index, copied = outcome
        numbers[TIME] += took_ns
        numbers[index] += 1
        numbers[BYTES] += copied
        until_s = began_s + took_ns / 1e9
        if began_s < row.bar_until_s:
            bar = row.bars[-1]
            bar[1] = until_s
            bar[2] += took_ns
        else:
            row.bars.append([began_s, until_s, took_ns])
            row.bar_until_s = began_s + max(BAR_S, (began_s - self.started_s) / BAR_SHARE)
        if len(self.slots) > 1:
            row.overlap(began_s, until_s)
        if self.with_events and len(self.events) < MOST_EVENTS:
            self.events.append((began_s, took_ns, row, get_ident()))
        if began_s > self.next_file_s:
            self.write_again()

    def write_again(self) -> None:
        """Replace the file if it is time for that."""
        began = _clock()
        if began < self.next_file_s:
            return
        self.next_file_s = math.inf  # of several threads, one writes
        self.write()
        wrote = _clock()
        self.next_file_s = wrote + max(INTERVAL_S, SHARE * (wrote - began))

    def as_dict(self, ended: bool) -> dict[str, Any]:
        events = list(self.events)
        rows = [row for row in list(self.rows.values()) if row.arrays or row.raised]
        idle = _idle(rows)
        places = {id(row): place for place, row in enumerate(rows)}
        return {
            "schema": SCHEMA,
            "pid": self.pid,
            "argv": [str(word) for word in getattr(sys, "argv", None) or ()],
            "started": self.started,
            "wall_ns": self._since_ns(_clock()),
            "ended": ended,
            "python": ".".join(map(str, sys.version_info[:3])),
            "versions": _versions(rows),
            "troubles": list(self.troubles.values()),
            "rows": [row.as_dict(idle) for row in rows],
            "frameworks": [
                probe.name for probe in ALL if probe.array_type and probe.module in sys.modules
            ],
            "arguments": [[*line, *numbers] for line, numbers in list(self.arguments.items())],
            "lines": [
                [*place, round(took_s * 1e9)]
                for place, took_s in list(self.line_times_s.items())
                if took_s * MOST_LINES > _clock() - self.started_s
            ],
            "timeline": [
                [self._since_ns(began_s), self._since_ns(ended_s), place, round(took)]
                for place, row in enumerate(rows)
                for began_s, ended_s, took in list(row.bars)
            ],
            "events": [
                [self._since_ns(began_s), round(took), places[id(row)], thread]
                for began_s, took, row, thread in events
                if id(row) in places  # else the call began before a fork
            ],
        }

    def _since_ns(self, clock_s: float) -> int:
        return round((clock_s - self.started_s) * 1e9)

    def _path(self, ending: str) -> str:
        return os.path.join(self.folder, f"{self.pid}-{self.started:.6f}{ending}")  # type: ignore[arg-type]  # noqa: PTH118 - TypeError without a folder

    def write(self, ended: bool = False) -> None:
        """Replace the file. If that fails, the program continues, and the last file says so."""
        if self.folder is None or (self.has_ended and not ended):
            return  # a thread may outlive the program
        self.has_ended = ended
        path = self._path(".json")
        partial = f"{path}.{get_ident()}.partial"
        with suppress(Exception):  # the tracer's own is not the program's
            text = json.dumps(self.as_dict(ended))
            with open(partial, "w", encoding="utf-8") as file:  # noqa: PTH123
                file.write(text)
            os.replace(partial, path)  # noqa: PTH105


def _idle(rows: Iterable[Row]) -> dict[Any, float]:
    """Return the least time with an empty queue on any line, by conversion, framework and call."""
    found: dict[Any, float] = {}
    for row in rows:
        for call, took in list(row.idle.items()):
            name = row.target.conversion, row.producer, call
            found[name] = min(took, found.get(name, took))
    return found


def _versions(rows: Iterable[Row]) -> dict[str, str]:
    names = {name for row in rows for name in (row.producer, row.target.framework)}
    found = {name: getattr(sys.modules.get(name), "__version__", None) for name in names}
    return {name: str(version) for name, version in sorted(found.items()) if version}
