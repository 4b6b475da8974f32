"""A session for tools that keep a trend, and a trace for code scanning.

The names of benchmarks are made of what makes a case the same in another session, so that a trend
goes on over releases.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dlprof._version import __version__
from dlprof.errors import UsageError
from dlprof.report.trace_advice import replacement
from dlprof.report.trace_document import gaps
from dlprof.runner.axes import NO_TIMES, shape_text
from dlprof.runner.quantity import plain_time, size_text
from dlprof.runner.session import SIMULATED, CaseRecord, Session, TimeMeasure
from dlprof.runner.trace import COPY, CROSSING, WAIT, Trace, TraceRow, faults
from dlprof.text import json_text
from dlprof.text.clean import clean, counted, first_line

SARIF_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def _name(case: CaseRecord) -> str:
    """Return the name of a benchmark: pair, path and array."""
    path = case.code if case.is_statement else case.path
    array = f"{case.dtype} {shape_text(case.shape)} {case.layout} {case.device}"
    name = f"{'->'.join(case.pair)} {path} {array}"
    return clean(name, sys.maxsize)  # two statements may differ at their ends alone


def _times(session: Session) -> Iterator[tuple[CaseRecord, TimeMeasure | None, TimeMeasure | None]]:
    """Yield each case with the time until its result is ready, and the host's if it differs."""
    if session.simulated:
        raise UsageError(f"--export needs {NO_TIMES}")
    for result in session.results:
        host, ready = result.host_time, result.ready_time
        if result.status == "ok" and (host is not None or ready is not None):
            is_same = ready is not None and ready.same_as is not None
            yield result.case, ready, None if is_same else host


def bmf(session: Session) -> str:
    """Return the Bencher Metric Format: https://bencher.dev/bmf.json.

    The measure ``latency`` is the time until the result is ready.
    """
    content: dict[str, dict[str, dict[str, float]]] = {}
    for case, ready, host in _times(session):
        times = {"latency": ready, "host-time": host}
        metrics = {key: _metric(time) for key, time in times.items() if time is not None}
        content[_name(case)] = metrics
    return f"{json_text.dump(content)}\n"


def _metric(time: TimeMeasure) -> dict[str, float]:
    low, high = time.ci95_ns or (None, None)
    values = {"value": time.median_ns, "lower_value": low, "upper_value": high}
    return {key: round(value, 1) for key, value in values.items() if value is not None}


def github_benchmark(session: Session) -> str:
    """Return ``customSmallerIsBetter`` of github-action-benchmark."""
    entries = []
    for case, ready, host in _times(session):
        name, known = _name(case), session.environment.distributions(case.pair)
        extra = ", ".join(" ".join(words) for words in known)
        for title, time in ((name, ready), (f"{name} (host time)", host)):
            if time is not None:
                entry = {"name": title, "unit": "ns", "value": round(time.median_ns, 1)}
                if time.ci95_ns is not None:
                    half = max(abs(end - time.median_ns) for end in time.ci95_ns)
                    entry["range"] = f"± {round(half, 1)}"
                entries.append({**entry, "extra": extra})
    return f"{json_text.dump(entries)}\n"


RULES = {
    COPY: "The line copies an array from one framework to another.",
    WAIT: "The line waits for work that is queued on a device.",
    CROSSING: "The line moves an array from one device to another.",
}
"""The rules of SARIF, by the words that ``dlprof trace --fail-on`` takes."""
ALLOWING = "Allow it with a comment on the expression: `# dlprof: allow "


def sarif(trace: Trace) -> str:
    """Return SARIF 2.1.0, with a result for each line and what it does that is not allowed there.

    What could not be traced becomes a notification.
    """
    missing = [*gaps(trace)]
    notes = [*([SIMULATED] if trace.simulated else []), *missing]
    run = {
        "tool": {
            "driver": {
                "name": "dlprof",
                "version": __version__,
                "rules": [
                    {
                        "id": word,
                        "shortDescription": {"text": text},
                        "fullDescription": {"text": text},
                        "help": {"text": f"{text} {ALLOWING}{word}`."},
                    }
                    for word, text in RULES.items()
                ],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": trace.exit_code == 0 and not missing,
                "exitCode": trace.exit_code,
                "toolExecutionNotifications": [
                    {"level": "warning", "message": {"text": first_line(note)}} for note in notes
                ],
            }
        ],
        "results": [
            {
                "ruleId": word,
                "level": "warning",
                "message": {"text": _message(row, word)},
                "locations": [{"physicalLocation": _location(row)}],
            }
            for row in trace.rows
            for word in faults(row)
        ],
    }
    return f"{json_text.dump({'$schema': SARIF_SCHEMA, 'version': '2.1.0', 'runs': [run]})}\n"


def _message(row: TraceRow, word: str) -> str:
    """Return what a line does, how often, what it takes, and what to write instead."""
    calls = counted(row.calls, "call")
    took = f"{plain_time(row.total_ns)} in {calls}"
    if word == CROSSING:
        ways = dict.fromkeys(f"from {old} to {new}" for old, new, _ in row.crossings)
        return f"{row.conversion} moves arrays {', '.join(ways)}: {took}."
    does = f"copied {size_text(row.bytes, 2)}: {took}"
    if word == WAIT:
        waited = f" {plain_time(row.waited_ns)}" * bool(row.waited_ns)
        does = f"waited{waited} for the queue in {calls}"
    advice = replacement(row).rstrip(".")
    return "; ".join(filter(None, (f"{row.conversion} {does}", advice))) + "."


def _location(row: TraceRow) -> dict[str, Any]:
    """Return the place of a row; its file is relative to the working folder where it lies in it."""
    path = Path(row.file)
    if path.is_relative_to(Path.cwd()):
        uri = quote(path.relative_to(Path.cwd()).as_posix())
    else:
        uri = path.as_uri() if path.is_absolute() else quote(row.file)
    place: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if row.line > 0:
        first, last, *offsets = row.span or (row.line, row.line)
        text = row.expression or row.conversion
        region = {"startLine": first, "endLine": last, "snippet": {"text": text}}
        ends = ("startColumn", first), ("endColumn", last)
        for (key, line), offset in zip(ends, offsets, strict=False):
            begin = linecache.getline(row.file, line).encode()[:offset]
            if len(begin) == offset:  # in bytes; less if the file has changed
                region[key] = len(begin.decode(errors="replace")) + 1
        place["region"] = region
    return place
