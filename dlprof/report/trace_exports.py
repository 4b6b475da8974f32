"""A trace for the viewers of other tools: speedscope, and Chrome's trace viewer or Perfetto.

The formats: https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources, and the
"Trace Event Format" of Chromium, with complete events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from dlprof._version import __version__
from dlprof.errors import UsageError
from dlprof.report.trace_document import grouped
from dlprof.runner.trace_file import Trace
from dlprof.text import json_text

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def speedscope(trace: Trace) -> str:
    """A profile by line; and one of each thread, where single conversions were recorded."""
    frames: dict[tuple[str, str, int], int] = {}
    stacks = [
        [
            frames.setdefault((row.file, row.file, 0), len(frames)),
            frames.setdefault((row.function, row.file, 0), len(frames)),
            frames.setdefault((f"{name} ({row.result})", row.file, row.line), len(frames)),
        ]
        for row, name in zip(trace.rows, _names(trace), strict=True)
    ]
    weights = [row.total_ns for row in trace.rows]
    by_line = {
        "type": "sampled",
        "name": "by line",
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": stacks,
        "weights": weights,
    }
    content = {
        "$schema": SCHEMA,
        "shared": {"frames": [_frame(*frame) for frame in frames]},
        "profiles": [by_line, *_threads(trace, [stack[-1] for stack in stacks])],
        "name": " ".join(trace.program) or "dlprof trace",
        "activeProfileIndex": 0,
        "exporter": f"dlprof {__version__}",
    }
    return f"{json_text.dump(content)}\n"


def _names(trace: Trace) -> list[str]:
    places = {id(line.rows[0]): f"{line.place} {line.code}" for line in grouped(trace.rows, "line")}
    return [places[id(row)] for row in trace.rows]


def _frame(name: str, file: str, line: int) -> dict[str, Any]:
    return {"name": name, "file": file, **({"line": line} if line else {})}


def _threads(trace: Trace, frames: list[int]) -> Iterator[dict[str, Any]]:
    """Conversions of a thread never overlap: only the outermost call of a thread counts."""
    found: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for begin, took, row, process, thread in sorted(trace.events):
        events = found[process, thread]
        events.append({"type": "O", "frame": frames[row], "at": begin})
        events.append({"type": "C", "frame": frames[row], "at": begin + took})
    for place, ((process, _), events) in enumerate(found.items(), 1):
        yield {
            "type": "evented",
            "name": f"process {trace.processes[process].pid}, thread {place}",
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": max(trace.wall_ns, events[-1]["at"]),
            "events": events,
        }


def chrome(trace: Trace) -> str:
    """Each conversion as a complete event. Raises :class:`UsageError` if none was recorded."""
    if trace.rows and not trace.events:
        raise UsageError(
            "the trace has no single conversions: give --chrome to dlprof trace with the program"
        )
    names = _names(trace)
    programs = [
        {
            "ph": "M",
            "name": "process_name",
            "pid": process.pid,
            "args": {"name": " ".join(process.argv) or "program"},
        }
        for process in trace.processes
    ]
    events = [
        {
            "ph": "X",
            "name": names[row],
            "cat": trace.rows[row].result,
            "pid": trace.processes[process].pid,
            "tid": thread,
            "ts": begin / 1e3,
            "dur": took / 1e3,
            "args": {
                "conversion": trace.rows[row].conversion,
                "from": trace.rows[row].producer,
                "to": trace.rows[row].consumer,
            },
        }
        for begin, took, row, process, thread in sorted(trace.events)
    ]
    content = {"traceEvents": [*programs, *events], "displayTimeUnit": "ns"}
    return f"{json_text.dump(content)}\n"
