"""The tidy table as a file: CSV (RFC 4180, UTF-8, one header line) and Parquet (typed columns)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import IO, Any

from dlprof.reports.table import COLUMNS, VERSION, records
from dlprof.session.model import Header, Result

NAMES = tuple(column.name for column in COLUMNS)
FORMULA = ("=", "+", "-", "@")
"""Spreadsheets run a text that begins so (owasp.org, CSV injection)."""
ROWS_AT_ONCE = 20_000
"""Rows of a row group: all of a long run would not fit into memory."""


def csv_lines(header: Header, results: Iterable[Result]) -> Iterator[str]:
    """The table as CSV, line by line. An empty cell is what is not known.

    A text that a spreadsheet would take for a formula has a ``'`` before it.
    """
    yield _line(NAMES)
    for record in records(header, results):
        yield _line([_cell(record[name]) for name in NAMES])


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


def write_parquet(file: IO[bytes], header: Header, results: Iterable[Result]) -> None:
    """Write the table into an open file; its metadata name the version of the table."""
    import pyarrow as pa
    import pyarrow.parquet

    kinds = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "flag": pa.bool_(),
    }
    fields = [
        pa.field(column.name, kinds[column.kind], nullable=column.nullable) for column in COLUMNS
    ]
    schema = pa.schema(fields, metadata={"dlprof.table": VERSION})
    rows = records(header, results)
    with pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        while batch := list(islice(rows, ROWS_AT_ONCE)):
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))
