"""A session as a pandas DataFrame: one row for each case, units in the names of the columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlprof.reports.measures import MEASURES, MISSING, Found, Measure
from dlprof.reports.tidy import COLUMNS, LONGEST, Record, case_record, rules_by_case
from dlprof.session.model import Result, Session
from dlprof.text.clean import clean

if TYPE_CHECKING:
    import pandas as pd

_FIRST, _LAST = (
    next(at for at, column in enumerate(COLUMNS) if column.name == name)
    for name in ("producer", "findings")
)
OF_THE_CASE = COLUMNS[_FIRST : _LAST + 1]
KINDS = {"text": "string", "integer": "Int64", "number": "float64"}
UNITS = {
    "ns": "_ns",
    "GB/s": "_gb_per_s",
    "1/call": "_per_call",
    "arrays": "_arrays",
    "iterations": "_iterations",
    "1": "",
}
WITH_INTERVAL = ("host_time", "ready_time", "in_loop", "hoisted", "implicit", "loop_share")
"""Measures that are a median of processes, with an interval."""


def to_frame(session: Session) -> pd.DataFrame:
    """The frame; an empty session has all columns and no row.

    The index is the case's place in ``session.results``. A number that is not known is NaN, a word
    is NA. Text is made fit to be shown.
    """
    import pandas as pd

    rules = rules_by_case(session.findings)
    rows = [_row(at, result, rules.get(at)) for at, result in enumerate(session.results)]
    index = pd.RangeIndex(len(rows), name="case")
    columns = {
        name: pd.Series([_shown(row[name]) for row in rows], index, dtype=kind)
        for name, kind in kinds().items()
    }
    return pd.DataFrame(columns, index=index)


def _shown(value: Any) -> Any:
    return clean(value, LONGEST) if isinstance(value, str) else value


def kinds() -> dict[str, str]:
    """The pandas dtype of each column."""
    found = {column.name: KINDS[column.kind] for column in OF_THE_CASE}
    for measure in MEASURES:
        for name in _cells(measure, MISSING):
            is_word = name == measure.name and measure.unit != "1"
            found[name] = KINDS["text" if is_word else "number"]
    last = dict.fromkeys(("processes", "modes"), KINDS["integer"])
    return {**found, **last, "environment": KINDS["text"]}


def _row(at: int, result: Result, rules: str | None) -> Record:
    row = {**case_record(at, result), "findings": rules}
    for measure in MEASURES:
        found = measure.find(result)
        row |= _cells(measure, found)
        if measure.name == "ready_time":
            row |= {"processes": found.processes, "modes": found.modes}
    return row


def _cells(measure: Measure, found: Found) -> Record:
    """The columns of a measure, with what was found."""
    if not measure.unit:
        return {measure.name: found.verdict}
    unit = UNITS[measure.unit]
    number = {f"{measure.name}{unit}": found.value}
    if measure.name in WITH_INTERVAL:
        low, high = found.ci95 or (None, None)
        values = {"median": found.value, "ci95_low": low, "ci95_high": high}
        return {f"{measure.name}_{name}{unit}": value for name, value in values.items()}
    return {measure.name: found.verdict, **number} if measure.unit == "arrays" else number
