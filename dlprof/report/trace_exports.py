"""Export a trace for Perfetto, speedscope and Chrome's trace viewer.

The format is Chromium's "Trace Event Format", with complete events.
"""

from __future__ import annotations

from dlprof.errors import UsageError
from dlprof.report.trace_document import grouped
from dlprof.runner.trace_file import Trace
from dlprof.text import json_text


def chrome(trace: Trace) -> str:
    """Return each conversion as a complete event.

    Raises :class:`UsageError` if the program ran without ``--chrome``.
    """
    if trace.rows and not trace.events:
        raise UsageError(
            "the trace has no single conversions: give --chrome to dlprof trace with the program"
        )
    names = [f"{line.place} {line.code}" for line in grouped(trace.rows, "line")]
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
