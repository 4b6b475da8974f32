"""The tidy table: one row for each case and measure, with the same columns whatever was measured.

Text is made fit to be shown. A row stands there for each measure of each case, also for one that
has no value: ``detail`` says why.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from dlprof.plan.axes import shape_text
from dlprof.probes.base import DTYPES
from dlprof.reports.measures import MEASURES, Found, Measure
from dlprof.session.model import FindingRecord, Header, Result
from dlprof.text.clean import clean

VERSION = "dlprof.table/1"
LONGEST = 2000
"""Characters of a text; what is longer is cut off, with an ellipsis."""
LARGEST_INTEGER = 2**63 - 1

Kind = Literal["text", "integer", "number", "flag"]


@dataclass(frozen=True)
class Column:
    """A column, what is in it, and whether it may be empty."""

    name: str
    kind: Kind
    meaning: str
    nullable: bool = False


COLUMNS = (
    Column("created", "text", "when the run began, ISO 8601, UTC"),
    Column("complete", "flag", "false for a run that was stopped"),
    Column("python", "text", "version of the measured interpreter", nullable=True),
    Column("cpu", "text", "the processor", nullable=True),
    Column("gpu", "text", "the GPUs, with semicolons between them", nullable=True),
    Column("packages", "text", "versions of the frameworks, with semicolons between them"),
    Column("case", "integer", "index of the case in the session's `results`, from 0"),
    Column("producer", "text", "the framework that owns the memory"),
    Column("export", "text", "the way out of it"),
    Column("consumer", "text", "the framework that takes it in"),
    Column("import", "text", "the way into it"),
    Column("protocol", "text", "how the array is handed over"),
    Column("code", "text", "the conversion as a user types it"),
    Column("shape", "text", "lengths in elements, such as `4096x4096`, or `scalar`"),
    Column("dtype", "text", "dtype of the source"),
    Column("layout", "text", "how the source lies in memory"),
    Column("device", "text", "where the source is: `cpu` or `cuda`"),
    Column("size_bytes", "integer", "bytes of the source", nullable=True),
    Column("promise", "text", "what the documentation promises: `copy` or `view`", nullable=True),
    Column("status", "text", "`ok`, `unsupported`, `crashed`, `timeout`, `invalid` or `skipped`"),
    Column("reason", "text", "why the status is not `ok`", nullable=True),
    Column("findings", "text", "rules that found something, worst first", nullable=True),
    Column("measure", "text", "the measure; see below"),
    Column("value", "number", "the number that was measured", nullable=True),
    Column("unit", "text", "the unit of value and interval", nullable=True),
    Column("ci95_low", "number", "lower end of the 95 % interval of the median", nullable=True),
    Column("ci95_high", "number", "upper end of the 95 % interval of the median", nullable=True),
    Column("processes", "integer", "fresh processes that measured it", nullable=True),
    Column("modes", "integer", "modes that the processes fall into, if they do", nullable=True),
    Column("verdict", "text", "the answer in one word, for measures that have one", nullable=True),
    Column("detail", "text", "why there is no value, or why it cannot be told", nullable=True),
    Column("environment", "text", "name of the environment, if there are several", nullable=True),
)
"""The order never changes; new columns come at the end."""

Record = dict[str, Any]


def records(header: Header, results: Iterable[Result]) -> Iterator[Record]:
    """The rows as mappings from :data:`COLUMNS`, one result at a time."""
    runs = _runs(header)
    rules = rules_by_case(header.findings)
    for index, result in enumerate(results):
        run = runs.get(result.environment, runs[None])
        case = {**run, **case_record(index, result), "findings": rules.get(index)}
        for measure in MEASURES:
            yield case | _measure(measure, measure.of(result))


def rules_by_case(findings: Iterable[FindingRecord]) -> dict[int, str]:
    """The rules that found something of a case, by its index, worst first."""
    found: dict[int, dict[str, None]] = {}
    for finding in findings:
        for index in finding.results:
            found.setdefault(index, {})[clean(finding.rule, LONGEST)] = None
    return {index: " ".join(rules) for index, rules in found.items()}


def size_bytes(result: Result) -> int | None:
    """Bytes of the source; None for a dtype that is not known."""
    item = DTYPES.get(result.case.dtype)
    size = None if item is None else item * math.prod(result.case.shape)
    return size if size is not None and size <= LARGEST_INTEGER else None


def _runs(header: Header) -> dict[str | None, Record]:
    """What is the same for all results of an environment, by its name."""
    found: dict[str | None, Record] = {None: _run(header, {})}
    return found | {str(entry.get("name")): _run(header, entry) for entry in header.environments}


def _run(header: Header, one: dict[str, Any]) -> Record:
    """``one`` says what another environment than the first has of its own."""
    environment = {**header.environment, **one}
    packages = environment.get("packages")
    packages = packages if isinstance(packages, dict) else {}
    return {
        "created": _text(header.created),
        "complete": header.complete,
        "python": _text(environment.get("python")),
        "cpu": _text(environment.get("cpu")),
        "gpu": _text(_gpus(environment.get("gpus"))),
        "packages": _text("; ".join(f"{name} {version}" for name, version in packages.items())),
    }


def _gpus(found: Any) -> str | None:
    gpus = found if isinstance(found, list) else []
    names = [gpu.get("name") for gpu in gpus if isinstance(gpu, dict)]
    return "; ".join(str(name) for name in names if name) or None


def case_record(index: int, result: Result) -> Record:
    """The columns that tell of a case and its status."""
    case = result.case
    words = {
        "producer": case.producer,
        "export": case.export,
        "consumer": case.consumer,
        "import": case.import_,
        "protocol": case.protocol,
        "code": case.code,
        "shape": shape_text(case.shape),
        "dtype": case.dtype,
        "layout": case.layout,
        "device": case.device,
        "promise": case.promise,
        "status": result.status,
        "reason": result.reason,
    }
    cleaned = {name: _text(word) for name, word in words.items()}
    environment = _text(result.environment)
    return {
        "case": index,
        **cleaned,
        "size_bytes": size_bytes(result),
        "environment": environment,
    }


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
