"""A session as a table with a row for each timed case: a DataFrame, or CSV.

The columns are the same whatever was measured; units stand in their names. A column never changes
its meaning, and new ones come at the end. A text is one line of limited length.
"""

from __future__ import annotations

import csv
import io
import statistics
from typing import TYPE_CHECKING, Any

from dlprof.errors import UsageError
from dlprof.judge.case_view import CaseView, is_too_fast_to_copy
from dlprof.report.paths import rules_by_case
from dlprof.runner.axes import shape_text
from dlprof.runner.session import Result, Session
from dlprof.text.clean import clean, first_line

if TYPE_CHECKING:
    import pandas as pd

LONGEST = 2000
"""Characters of a text; a longer one ends in an ellipsis."""
FORMULA = ("=", "+", "-", "@", *"\uff1d\uff0b\uff0d\uff20")
"""First characters of texts that spreadsheets run (owasp.org, CSV injection), also full-width."""


def _time(place: str) -> dict[str, str]:
    """Return the columns of a median of processes, with its interval and its fastest sample."""
    return {
        f"{place}_median_ns": f"{place}.median_ns",
        f"{place}_ci95_low_ns": f"{place}.ci95_ns.0",
        f"{place}_ci95_high_ns": f"{place}.ci95_ns.1",
        f"{place}_min_ns": f"{place}.min_ns",
    }


CASE = {
    **{name: f"case.{name}" for name in ("producer", "export", "consumer")},
    "import": "case.import_",
    **{name: f"case.{name}" for name in ("protocol", "code", "dtype", "layout", "device")},
    "promise": "case.promise",
    "status": "status",
    "reason": "reason",
}
WORDS = {
    name: f"{name}.verdict"
    for name in (
        *("ownership", "ordering", "alignment", "values", "fresh_source", "lifetime"),
        *("early_write", "peak_memory", "trace"),
    )
}
NUMBERS = {
    **_time("host_time"),
    **_time("ready_time"),
    "first_call_ns": "first_in_process_ns",
    "device_time_warm_ns": "device_time.warm.median_ns",
    "device_time_cold_ns": "device_time.cold.median_ns",
    "loaded_call_ns": "ordering.evidence.loaded.host_ns",
    "loaded_queue_ns": "ordering.evidence.loaded.queued_ns",
    "fresh_first_ns": "fresh_source.evidence.first_ns",
    "fresh_second_ns": "fresh_source.evidence.second_ns",
    "memcpy_bandwidth_gb_per_s": "copy_cost.memcpy_gb_per_s",
}
"""The place of each column in a :class:`~dlprof.runner.session.Result`."""
COPY_NUMBERS = {
    "bandwidth_gb_per_s": "copy_cost.gb_per_s",
    "share_of_memcpy": "copy_cost.share_of_memcpy",
}
"""Columns of copies that are not too fast for all their bytes."""
RUN = ("created", "python", "cpu", "gpu", "packages")
COLUMNS = {
    **dict.fromkeys((*CASE, "shape", "findings"), "string"),
    "size_bytes": "Int64",
    **dict.fromkeys(
        (*NUMBERS, *COPY_NUMBERS, "page_faults_per_call", "peak_memory_arrays"), "float64"
    ),
    **dict.fromkeys(WORDS, "string"),
    "processes": "Int64",
    **dict.fromkeys(RUN, "string"),
    **dict.fromkeys(("complete", "simulated"), "boolean"),
}
"""The columns, each with its pandas dtype."""


def to_frame(session: Session) -> pd.DataFrame:
    """Return the table; an empty session has all columns and no row.

    The index is the case's place in ``session.results``. An unknown number is NaN, an unknown
    word NA. Raises :class:`UsageError` without pandas.
    """
    try:
        import pandas as pd
    except ImportError as error:
        hint = "to_frame needs pandas: pip install 'dlprof[data]'"
        raise UsageError(f"{hint} ({first_line(str(error))})") from None
    rows = _rows(session)
    index = pd.Index([row["case"] for row in rows], dtype="int64", name="case")
    return pd.DataFrame(rows, index=index, columns=list(COLUMNS), dtype=object).astype(COLUMNS)


def csv_text(session: Session) -> str:
    """Return the table as CSV (RFC 4180), with a header line. An empty cell is not known.

    A text that a spreadsheet would take for a formula has a ``'`` before it.
    """
    file = io.StringIO()
    writer = csv.DictWriter(file, ("case", *COLUMNS), restval="", lineterminator="\n")
    writer.writeheader()
    for row in _rows(session):
        runs = [key for key, cell in row.items() if isinstance(cell, str) and cell[:1] in FORMULA]
        writer.writerow(row | {key: f"'{row[key]}" for key in runs})
    return file.getvalue()


def _rows(session: Session) -> list[dict[str, Any]]:
    """Return the cells of each timed case, with its place in ``session.results``."""
    rules = rules_by_case(session.findings)
    machine = session.environment
    run = {
        "created": session.created,
        "python": machine.python,
        "cpu": machine.cpu,
        "gpu": "; ".join(machine.gpu_names) or None,
        "packages": "; ".join(machine.versions),
        "complete": session.complete,
        "simulated": session.simulated > 0,
    }
    rows = [
        {"case": index, **run, **_row(result), "findings": " ".join(rules.get(index, ())) or None}
        for index, result in enumerate(session.results)
        if not result.case.survey
    ]
    for row in rows:
        row |= {key: clean(cell, LONGEST) for key, cell in row.items() if isinstance(cell, str)}
    return rows


def _row(result: Result) -> dict[str, Any]:
    case, host, ready = CaseView(0, result), result.host_time, result.ready_time
    is_whole = case.kind == "copy" and not is_too_fast_to_copy(case)
    # The evidence of order has times of the simulated device.
    numbers = {} if result.untimed else NUMBERS | (COPY_NUMBERS if is_whole else {})
    faults = [worker.page_faults_per_call for worker in host.processes] if host is not None else []
    known = [fault for fault in faults if fault is not None]
    return {
        **{name: _value(result, place) for name, place in (CASE | WORDS | numbers).items()},
        "shape": shape_text(result.case.shape),
        "size_bytes": case.size_bytes or None,
        "page_faults_per_call": statistics.median(known) if known else None,
        "peak_memory_arrays": case.peak_arrays,
        "processes": (len(ready.processes) if ready is not None else 0) or None,
    }


def _value(part: Any, place: str) -> Any:
    """Return the value at a dotted place, or None."""
    for name in place.split("."):
        if part is not None:
            part = part[int(name)] if name.isdigit() else getattr(part, name)
    return part
