"""The tidy table as CSV (RFC 4180, UTF-8, one header line)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

from dlprof.reports.tidy import COLUMNS, records
from dlprof.session.model import Header, Result

NAMES = tuple(column.name for column in COLUMNS)
FORMULA = ("=", "+", "-", "@")
"""Spreadsheets run a text that begins so (owasp.org, CSV injection)."""


def render(header: Header, results: Iterable[Result]) -> Iterator[str]:
    """The table, line by line. An empty cell is what is not known.

    A text that a spreadsheet would take for a formula has a ``'`` before it.
    """
    yield _line(NAMES)
    for record in records(header, results):
        yield _line([_cell(record.get(name)) for name in NAMES])


def _line(cells: Iterable[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return value
