"""A traced program: which line converted, how often, and what that cost; ``dlprof.trace/1``.

Times are in ns, sizes in bytes. Each process of the program writes a part; :func:`merged` makes one
file of them. Additive changes keep the version.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from dlprof.errors import SessionError
from dlprof.runner import files
from dlprof.runner.evidence import Maybe, Model, Number, Whole
from dlprof.text import json_text
from dlprof.tracer.rows import OTHERS, result_of

SCHEMA = "dlprof.trace/1"
SUMMED = (
    *("calls", "total_ns", "first_ns", "bytes", "views", "copies", "unknown"),
    *("raised", "waits", "maybe_waits", "waited_ns"),
)
Result = Literal["view", "copy", "mixed", "raised", "unknown"]


class Row(Model):
    """A conversion on a line of the program.

    ``via`` is the function of a framework or package that converts on behalf of the line, and
    ``span`` is where the expression stands. ``arrays`` has dtype, shape, calls and bytes; of many
    it has ``others`` at last. ``crossings`` has two devices and calls. ``device`` is that of the
    first source; ``retyped`` has the dtypes of results that differ from their sources. ``allowed``
    names what the program says it expects. ``first_ns`` is what the first calls of all processes
    took.
    """

    file: str
    line: Whole
    function: str
    conversion: str
    producer: str
    consumer: str
    calls: Whole
    total_ns: Whole
    bytes: Whole
    result: Result
    waits: Whole = 0
    first_ns: Whole = 0
    expression: str = ""
    via: str = ""
    span: Maybe[list[Whole]] = None
    views: Whole = 0
    copies: Whole = 0
    unknown: Whole = 0
    raised: Whole = 0
    maybe_waits: Whole = 0
    waited_ns: Whole = 0
    device: str = ""
    retyped: list[str] = Field(default_factory=list)
    crossings: list[tuple[str, str, Whole]] = Field(default_factory=list)
    arrays: list[tuple[str, list[Whole], Whole, Whole]] = Field(default_factory=list)
    trouble: str = ""
    allowed: list[str] = Field(default_factory=list)
    processes: list[Whole] = Field(default_factory=list)

    @property
    def empty(self) -> int:
        """Return the number of calls for arrays without elements, which have no memory."""
        return _empty(self.arrays)


class Process(Model):
    """A process of the program. ``wall_ns`` is how long it was counted.

    ``ended`` is false if it was killed, or still runs. It is true for a worker that its pool killed
    between two tasks: all of its counts are there.
    """

    pid: Whole
    argv: list[str] = Field(default_factory=list)
    started: Number = 0.0
    wall_ns: Whole = 0
    ended: bool = True


class Trace(Model):
    """The conversions of a program. All times count from its start.

    ``timeline`` has begin, end, row, time and process: what the calls of a row took meanwhile.
    ``events`` has begin, duration, row, process and thread of single conversions, if asked for.
    ``sources`` has numbered lines of each file around its rows.
    """

    schema_: str = Field(SCHEMA, alias="schema")
    program: list[str]
    exit_code: Whole
    wall_ns: Whole
    created: str = ""
    simulated: Whole = 0
    python: str = ""
    versions: dict[str, str] = Field(default_factory=dict)
    processes: list[Process] = Field(default_factory=list)
    rows: list[Row] = Field(default_factory=list)
    timeline: list[tuple[Whole, Whole, Whole, Whole, Whole]] = Field(default_factory=list)
    sources: dict[str, list[tuple[Whole, str]]] = Field(default_factory=dict)
    events: list[tuple[Whole, Whole, Whole, Whole, Whole]] = Field(default_factory=list)
    troubles: list[str] = Field(default_factory=list)


def merged(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the processes of a program wrote, as fields of :class:`Trace`."""
    parts = sorted(parts, key=lambda part: part["started"])
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for part in parts:
        for row in part["rows"]:
            key = _identity(row)
            if key in rows:
                _add(rows[key], row)
            else:
                rows[key] = {**row, "processes": []}
            rows[key]["processes"].append(part["pid"])
    rows = dict(sorted(rows.items(), key=lambda item: -item[1]["total_ns"]))
    places = {key: place for place, key in enumerate(rows)}
    timeline: list[tuple[int, ...]] = []
    events: list[tuple[int, ...]] = []
    for at, part in enumerate(parts):
        shift_ns = round((part["started"] - parts[0]["started"]) * 1e9)
        own = [places[_identity(row)] for row in part["rows"]]
        timeline += [
            (begin + shift_ns, end + shift_ns, own[row], took, at)
            for begin, end, row, took in part["timeline"]
        ]
        events += [
            (began + shift_ns, took, own[row], at, thread)
            for began, took, row, thread in part["events"]
            if row is not None
        ]
    return {
        "python": parts[0]["python"] if parts else "",
        "versions": {name: text for part in parts for name, text in part["versions"].items()},
        "processes": [
            {key: part[key] for key in Process.model_fields if key in part} for part in parts
        ],
        "rows": list(rows.values()),
        "timeline": timeline,
        "events": events,
        "troubles": sorted({text for part in parts for text in part["troubles"]}),
    }


def _identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    names = ("file", "line", "function", "conversion", "producer", "consumer", "via")
    return (*(row[name] for name in names), tuple(row["span"] or ()))


def _add(row: dict[str, Any], other: Mapping[str, Any]) -> None:
    for name in SUMMED:
        row[name] += other[name]
    row["crossings"] = _summed([*row["crossings"], *other["crossings"]], 2)
    arrays = [
        (dtype, tuple(shape), size, calls)
        for dtype, shape, calls, size in (*row["arrays"], *other["arrays"])
    ]
    summed = sorted(_summed(arrays, 3), key=lambda one: one[0] == OTHERS)
    row["arrays"] = [(dtype, list(shape), calls, size) for dtype, shape, size, calls in summed]
    empty = _empty(row["arrays"])
    views, copies, unknown = (row[name] for name in ("views", "copies", "unknown"))
    row["result"] = result_of(views, copies, unknown, empty, row["raised"])
    row["device"] = row["device"] or other["device"]
    row["retyped"] = sorted({*row["retyped"], *other["retyped"]})
    row["trouble"] = row["trouble"] or other["trouble"]


def _empty(arrays: Iterable[Sequence[Any]]) -> int:
    return sum(calls for _, shape, calls, _ in arrays if 0 in shape)


def _summed(entries: Iterable[Sequence[Any]], names: int) -> list[tuple[Any, ...]]:
    """Add up entries of so many names and a count. The most frequent come first."""
    counts: dict[tuple[Any, ...], int] = {}
    for entry in entries:
        counts[tuple(entry[:names])] = counts.get(tuple(entry[:names]), 0) + entry[names]
    return [(*key, count) for key, count in sorted(counts.items(), key=lambda item: -item[1])]


def load(path: Path) -> Trace:
    """Read a trace. Raises :class:`SessionError` with one sentence that says why not."""
    try:
        return Trace.model_validate(json_text.loads(path.read_text(encoding="utf-8-sig")))
    except (json.JSONDecodeError, ValidationError, RecursionError) as error:
        first = str(error).split("\n")[0]
        raise SessionError(f"{path} is not a whole trace of dlprof: {first}") from None
    except (OSError, ValueError) as error:
        raise SessionError(f"cannot read the trace {path}: {error}") from None


def write(path: Path, trace: Trace) -> None:
    """Write a trace. Raises :class:`UsageError` if it cannot be written."""
    with files.atomic(path) as file:
        file.write(text(trace))


def text(trace: Trace) -> str:
    return json_text.dump(trace.model_dump(by_alias=True)) + "\n"
