"""The tidy table as Parquet: typed columns, the same for every session, also for an empty one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import IO, Any

from dlprof.reports.tidy import COLUMNS, VERSION, records
from dlprof.session.model import Header, Result

ROWS_AT_ONCE = 20_000
"""Rows of a row group: all of a long run would not fit into memory."""


def schema() -> Any:
    """The columns as a ``pyarrow.Schema``; its metadata name the version of the table."""
    import pyarrow as pa

    kinds = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "flag": pa.bool_(),
    }
    fields = [
        pa.field(column.name, kinds[column.kind], nullable=column.nullable) for column in COLUMNS
    ]
    return pa.schema(fields, metadata={"dlprof.table": VERSION})


def write(file: IO[bytes], header: Header, results: Iterable[Result]) -> None:
    """Write the table into an open file."""
    import pyarrow as pa
    import pyarrow.parquet

    columns = schema()
    rows = records(header, results)
    with pyarrow.parquet.ParquetWriter(file, columns, compression="zstd") as writer:
        while batch := list(islice(rows, ROWS_AT_ONCE)):
            writer.write_table(pa.Table.from_pylist(batch, schema=columns))
