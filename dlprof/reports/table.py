"""A session as a table: tidy, a row for each case and measure; wide, a row for each case.

The columns are the same whatever was measured. A text is one line, and not endless. The tidy table
is written as CSV (RFC 4180, UTF-8, one header line) and as Parquet (typed columns).
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Literal

from dlprof.plan.axes import shape_text
from dlprof.probes.base import DTYPES
from dlprof.reports.measures import MEASURES, Found, Measure
from dlprof.reports.paths import rules_by_case
from dlprof.session.environment import typed
from dlprof.session.environments import environment_of
from dlprof.session.model import Header, Result, Session
from dlprof.text.clean import clean

if TYPE_CHECKING:
    import pandas as pd

VERSION = "dlprof.table/1"
LONGEST = 2000
"""Characters of a text; what is longer is cut off, with an ellipsis."""
LARGEST_INTEGER = 2**63 - 1

Kind = Literal["text", "integer", "number", "flag"]
Record = dict[str, Any]


@dataclass(frozen=True)
class Column:
    """A column of the tidy table, what is in it, and whether it may be empty."""

    name: str
    kind: Kind = "text"
    nullable: bool = False


RUN = (
    Column("created"),
    Column("complete", "flag"),
    Column("python", nullable=True),
    Column("cpu", nullable=True),
    Column("gpu", nullable=True),
    Column("packages"),
    Column("case", "integer"),
)
CASE = (
    Column("producer"),
    Column("export"),
    Column("consumer"),
    Column("import"),
    Column("protocol"),
    Column("code"),
    Column("shape"),
    Column("dtype"),
    Column("layout"),
    Column("device"),
    Column("size_bytes", "integer", nullable=True),
    Column("promise", nullable=True),
    Column("status"),
    Column("reason", nullable=True),
    Column("findings", nullable=True),
)
MEASURED = (
    Column("measure"),
    Column("value", "number", nullable=True),
    Column("unit", nullable=True),
    Column("ci95_low", "number", nullable=True),
    Column("ci95_high", "number", nullable=True),
    Column("processes", "integer", nullable=True),
    Column("modes", "integer", nullable=True),
    Column("verdict", nullable=True),
    Column("detail", nullable=True),
    Column("environment", nullable=True),
)
COLUMNS = (*RUN, *CASE, *MEASURED)
"""Of the tidy table. The order never changes; new columns come at the end."""


def records(header: Header, results: Iterable[Result]) -> Iterator[Record]:
    """The rows of the tidy table as mappings from :data:`COLUMNS`, one result at a time."""
    rules = rules_by_case(header.findings)
    runs: dict[str | None, Record] = {}
    for index, result in enumerate(results):
        name = result.environment
        if name not in runs:
            runs[name] = _run(header, result)
        case = {**runs[name], "case": index, **_case(result), "findings": _rules(rules.get(index))}
        for measure in MEASURES:
            yield case | _measure(measure, measure.of(result))


def _run(header: Header, result: Result) -> Record:
    """What is the same for all results of an environment; the first tells what others do not."""
    found = typed({**header.environment, **environment_of(header, result)})
    return {
        "created": _text(header.created),
        "complete": header.complete,
        "python": _text(found.python),
        "cpu": _text(found.cpu),
        "gpu": _text("; ".join(found.gpu_names)) if found.gpu_names else None,
        "packages": _text("; ".join(found.versions)),
    }


def _case(result: Result) -> Record:
    case = result.case
    return {
        "producer": _text(case.producer),
        "export": _text(case.export),
        "consumer": _text(case.consumer),
        "import": _text(case.import_),
        "protocol": _text(case.protocol),
        "code": _text(case.code),
        "shape": _text(shape_text(case.shape)),
        "dtype": _text(case.dtype),
        "layout": _text(case.layout),
        "device": _text(case.device),
        "size_bytes": _size_bytes(result),
        "promise": _text(case.promise),
        "status": result.status,
        "reason": _text(result.reason),
        "environment": _text(result.environment),
    }


def _size_bytes(result: Result) -> int | None:
    """Bytes of the source; None for a dtype that is not known, and for more than a column holds."""
    item = DTYPES.get(result.case.dtype)
    size = None if item is None else item * math.prod(result.case.shape)
    return size if size is not None and size <= LARGEST_INTEGER else None


def _measure(measure: Measure, found: Found) -> Record:
    low, high = found.ci95 or (None, None)
    return {
        "measure": measure.name,
        "value": found.value,
        "unit": measure.unit or None,
        "ci95_low": low,
        "ci95_high": high,
        "processes": found.processes,
        "modes": found.modes,
        "verdict": _text(found.verdict),
        "detail": _text(found.reason),
    }


def _text(thing: Any) -> str | None:
    return None if thing is None else clean(str(thing), LONGEST)


def _rules(ids: Iterable[str] | None) -> str | None:
    return _text(" ".join(ids)) if ids else None


FORMULA = ("=", "+", "-", "@")
"""Spreadsheets run a text that begins so (owasp.org, CSV injection)."""
ROWS_AT_ONCE = 20_000
"""Rows of a row group: all of a long run would not fit into memory."""


def csv_lines(header: Header, results: Iterable[Result]) -> Iterator[str]:
    """The table as CSV, line by line. An empty cell is what is not known.

    A text that a spreadsheet would take for a formula has a ``'`` before it.
    """
    names = [column.name for column in COLUMNS]
    yield _csv_line(names)
    for record in records(header, results):
        yield _csv_line([_csv_cell(record[name]) for name in names])


def _csv_line(cells: Iterable[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    is_formula = isinstance(value, str) and value.startswith(FORMULA)
    return f"'{value}" if is_formula else value


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


PANDAS = {"text": "string", "integer": "Int64", "number": "float64"}
SUFFIX = {"ns": "_ns", "GB/s": "_gb_per_s", "1/call": "_per_call", "1": ""}
"""What a measure's unit adds to the name of its column, where that is not the unit itself."""


def to_frame(session: Session) -> pd.DataFrame:
    """The wide table; an empty session has all columns and no row.

    The index is the case's place in ``session.results``. A number that is not known is NaN, a word
    is NA.
    """
    import pandas as pd

    rules = rules_by_case(session.findings)
    rows = []
    for index, result in enumerate(session.results):
        row = {**_case(result), "findings": _rules(rules.get(index))}
        for measure in MEASURES:
            found = measure.of(result)
            row |= _numbers(measure, found) | _words(measure, found)
            if measure.name == "ready_time":
                row |= {"processes": found.processes, "modes": found.modes}
        rows.append(row)
    kinds = frame_columns()
    places = pd.RangeIndex(len(rows), name="case")
    return pd.DataFrame(rows, index=places, columns=list(kinds), dtype=object).astype(kinds)


def frame_columns() -> dict[str, str]:
    """The columns of the wide table, each with its pandas dtype."""
    kinds = {column.name: PANDAS[column.kind] for column in CASE}
    for measure in MEASURES:
        kinds |= dict.fromkeys(_words(measure, Found()), PANDAS["text"])
        kinds |= dict.fromkeys(_numbers(measure, Found()), PANDAS["number"])
    counts = dict.fromkeys(("processes", "modes"), PANDAS["integer"])
    return {**kinds, **counts, "environment": PANDAS["text"]}


def _words(measure: Measure, found: Found) -> Record:
    has_verdict = measure.unit in ("", "arrays")
    return {measure.name: _text(found.verdict)} if has_verdict else {}


def _numbers(measure: Measure, found: Found) -> Record:
    if not measure.unit:
        return {}
    suffix = SUFFIX.get(measure.unit, f"_{measure.unit}")
    if not measure.has_interval:
        return {f"{measure.name}{suffix}": found.value}
    low, high = found.ci95 or (None, None)
    values = {"median": found.value, "ci95_low": low, "ci95_high": high}
    return {f"{measure.name}_{name}{suffix}": value for name, value in values.items()}
