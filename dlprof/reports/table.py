"""A session as a table: tidy, a row for each case and measure; wide, a row for each case.

The columns are the same whatever was measured. A text is one line, and not endless.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dlprof.plan.axes import shape_text
from dlprof.probes.base import DTYPES
from dlprof.reports.measures import MEASURES, Found, Measure
from dlprof.session.environment import typed
from dlprof.session.environments import environment_of
from dlprof.session.model import FindingRecord, Header, Result, Session
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
    rules = _rules_by_case(header.findings)
    runs: dict[str | None, Record] = {}
    for index, result in enumerate(results):
        name = result.environment
        if name not in runs:
            runs[name] = _run(header, result)
        case = {**runs[name], "case": index, **_case(result), "findings": rules.get(index)}
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


def _rules_by_case(findings: Iterable[FindingRecord]) -> dict[int, str]:
    """The rules that found something in a case, by its index, worst first."""
    found: dict[int, dict[str, None]] = {}
    for finding in findings:
        for index in finding.results:
            found.setdefault(index, {})[finding.rule] = None
    return {index: clean(" ".join(rules), LONGEST) for index, rules in found.items()}


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


PANDAS = {"text": "string", "integer": "Int64", "number": "float64"}
SUFFIX = {
    "ns": "_ns",
    "GB/s": "_gb_per_s",
    "1/call": "_per_call",
    "arrays": "_arrays",
    "iterations": "_iterations",
    "1": "",
}
"""What a measure's unit adds to the name of its column."""


def to_frame(session: Session) -> pd.DataFrame:
    """The wide table; an empty session has all columns and no row.

    The index is the case's place in ``session.results``. A number that is not known is NaN, a word
    is NA.
    """
    import pandas as pd

    rules = _rules_by_case(session.findings)
    rows = [_wide(result, rules.get(at)) for at, result in enumerate(session.results)]
    index = pd.RangeIndex(len(rows), name="case")
    kinds = frame_columns()
    return pd.DataFrame(rows, index=index, columns=list(kinds), dtype=object).astype(kinds)


def frame_columns() -> dict[str, str]:
    """The columns of the wide table, each with its pandas dtype."""
    kinds = {column.name: PANDAS[column.kind] for column in CASE}
    for measure in MEASURES:
        names = _columns(measure, Found())
        kinds |= dict.fromkeys(names, PANDAS["number"])
        if measure.name in names and measure.unit in ("", "arrays"):
            kinds[measure.name] = PANDAS["text"]
    counts = dict.fromkeys(("processes", "modes"), PANDAS["integer"])
    return {**kinds, **counts, "environment": PANDAS["text"]}


def _wide(result: Result, rules: str | None) -> Record:
    row = {**_case(result), "findings": rules}
    for measure in MEASURES:
        found = measure.of(result)
        row |= _columns(measure, found)
        if measure.name == "ready_time":
            row |= {"processes": found.processes, "modes": found.modes}
    return row


def _columns(measure: Measure, found: Found) -> Record:
    """The columns of a measure in the wide table, with what was found."""
    verdict = {measure.name: _text(found.verdict)}
    if not measure.unit:
        return verdict
    suffix = SUFFIX[measure.unit]
    if measure.has_interval:
        low, high = found.ci95 or (None, None)
        values = {"median": found.value, "ci95_low": low, "ci95_high": high}
        return {f"{measure.name}_{name}{suffix}": value for name, value in values.items()}
    number = {f"{measure.name}{suffix}": found.value}
    return verdict | number if measure.unit == "arrays" else number
