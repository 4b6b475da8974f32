"""One session in a history: a Parquet file with one row for each case, and its name.

The columns are for anybody's queries. ``result`` holds the case as JSON, with one value for each
process. Header and label are in the file's metadata.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from pydantic import ValidationError

from dlprof._version import __version__
from dlprof.compare.processes import median_ns, processes, time_ns
from dlprof.errors import DlprofError, HistoryError, Unmeasured
from dlprof.runner import files
from dlprof.runner.axes import NO_TIMES, shape_text
from dlprof.runner.evidence import DeviceTime, Series
from dlprof.runner.session import (
    ProcessSamples,
    Result,
    Session,
    TimeMeasure,
    check_schema,
    first_error,
)
from dlprof.text import json_text
from dlprof.text.clean import clean

MAJOR = 1
SCHEMA = f"dlprof.history/{MAJOR}"
NAME = re.compile(r"dlprof-(\d{1,6})-(\d{8}T\d{6}\.\d{6}Z)-([0-9a-f]{32})\.parquet")
VERDICTS = ("ownership", "ordering", "values", "lifetime", "early_write")

COMMITS = ("GITHUB_SHA", "CI_COMMIT_SHA")
GIT_LIMIT_S = 20.0


class Foreign(Exception):
    """A file that is no entry of a history; the message says why."""


@dataclass(frozen=True)
class Label:
    """What was measured, such as a commit. ``source`` is the option, variable or command that said
    it; both are empty for none.
    """

    text: str = ""
    source: str = ""


@dataclass(frozen=True)
class Entry:
    """A session as a history keeps it. ``created`` is when it began, in UTC."""

    id: str
    created: datetime
    label: Label
    session: Session

    @property
    def name(self) -> str:
        """The name of its file: in order of time, and the same for the same measurement."""
        return f"dlprof-{MAJOR}-{self.created:%Y%m%dT%H%M%S.%fZ}-{self.id}.parquet"


def entry_of(session: Session, label: Label | None = None) -> Entry:
    """The entry of a session.

    Raises :class:`Unmeasured` for one without results, and :class:`HistoryError` for one that does
    not say when it was measured, or whose device was simulated.
    """
    if session.simulated:
        raise HistoryError(f"a history compares {NO_TIMES}")
    reduced = [_reduced(result) for result in session.results if not result.case.survey]
    if not reduced:
        raise Unmeasured("it holds no results with times: there is nothing to add")
    changes: dict[str, Any] = {"findings": [], "expectations": [], "results": reduced}
    kept = session.model_copy(update=changes)
    return Entry(_identity(session), moment(session.created), label or Label(), kept)


def moment(created: str) -> datetime:
    """When a session began, in UTC. Raises :class:`HistoryError` if it does not say."""
    try:
        found = datetime.fromisoformat(created.strip().replace("Z", "+00:00"))
        if found.tzinfo is None:
            found = found.replace(tzinfo=timezone.utc)
        return found.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise HistoryError(
            f"it cannot be placed in time: {clean(created, 60)!r} is no ISO 8601 date and time"
        ) from None


def label_for(created: datetime, given: str | None) -> Label:
    """The label of a session: what was given, what CI says, or the commit that is checked out.

    An empty one means none. A session that is older than the commit was measured before it, and is
    not labeled with it.
    """
    if given is not None:
        return Label(clean(given.strip()), "--label") if given.strip() else Label()
    name = next((name for name in COMMITS if os.environ.get(name, "").strip()), "")
    commit = os.environ.get(name, "").strip() or "HEAD"
    found = _git("show", "--no-patch", "--format=%H %ct", "--end-of-options", commit)
    checked_out, _, time = found.strip().partition(" ")
    if time.isdigit() and created.timestamp() < int(time):
        return Label()
    if name:
        return Label(clean(commit), name)
    if not checked_out:
        return Label()
    changed = _git("status", "--porcelain", "--untracked-files=no").strip()
    return Label(checked_out + ("-dirty" if changed else ""), "git HEAD of this folder")


def _git(*words: str) -> str:
    """What git says of the current folder; nothing without git, or outside of a repository."""
    try:
        done = subprocess.run(  # noqa: S603 - our own words
            ["git", *words],  # noqa: S607 - the user's git
            capture_output=True,
            text=True,
            errors="replace",
            timeout=GIT_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _identity(session: Session) -> str:
    """The same for the same measurement, whatever was found in it since, or added to the format."""
    digest = hashlib.sha256(session.created.encode("utf-8", "backslashreplace"))
    for result in session.results:
        digest.update(_json(result).encode("ascii"))
    return digest.hexdigest()[:32]


def _json(result: Result) -> str:
    """Without defaults: a later version has more of them."""
    content = result.model_dump(by_alias=True, mode="json", exclude_defaults=True)
    return json.dumps(content, sort_keys=True)


def _reduced(result: Result) -> Result:
    """The result with one sample per process: the value that comparisons take of it."""
    times: dict[str, Any] = {
        name: _one_sample_each(measure)
        for name in ("host_time", "ready_time")
        if (measure := getattr(result, name)) is not None
    }
    device = result.device_time
    warm = device.warm.median_ns if device is not None and device.warm is not None else None
    times["device_time"] = None if warm is None else DeviceTime(warm=Series(median_ns=warm))
    ordering = result.ordering
    if ordering is not None:
        evidence = ordering.evidence.model_copy(update={"points": None, "by_streams": None})
        ordering = ordering.model_copy(update={"evidence": evidence})
    unread = dict.fromkeys(("phases", "copy_cost", "output", "recipe", "placement", "step"))
    update = {**times, **unread, "ordering": ordering, "handshake": []}
    return result.model_copy(update=update)


def _one_sample_each(measure: TimeMeasure) -> TimeMeasure:
    return measure.model_copy(update={"processes": [_one(one) for one in measure.processes]})


def _one(process: ProcessSamples) -> ProcessSamples:
    samples = array("d", [time_ns(process)] if process.samples_ns else [])
    return process.model_copy(update={"samples_ns": samples})


def columns() -> Any:
    """The columns as a ``pyarrow.Schema``; see docs/history.md."""
    import pyarrow as pa

    words = ("created", "label", "python", "cpu", "packages", "environment")
    case = ("producer", "export", "consumer", "import", "protocol", "code", "shape", "dtype")
    texts = (*words, *case, "layout", "device", "status", *VERDICTS)
    times = pa.list_(pa.float64())
    kinds: dict[str, Any] = dict.fromkeys(texts, pa.string())
    kinds |= {"ready_ns": pa.float64(), "host_ns": pa.float64()}
    kinds |= {"ready_processes_ns": times, "host_processes_ns": times, "result": pa.string()}
    return pa.schema([pa.field(name, kind) for name, kind in kinds.items()])


def encode(entry: Entry) -> bytes:
    """The entry as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet

    header = entry.session.model_dump(by_alias=True, mode="json", exclude={"results"})
    metadata = {
        "dlprof.history": SCHEMA,
        "dlprof.header": json.dumps(header),
        "dlprof.label": json.dumps({"text": entry.label.text, "source": entry.label.source}),
        "dlprof.id": entry.id,
        "dlprof.added_by": __version__,
    }
    rows = [_row(entry, result) for result in entry.session.results]
    table = pa.Table.from_pylist(rows, schema=columns()).replace_schema_metadata(metadata)
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file, compression="zstd")
    return file.getvalue()


def _row(entry: Entry, result: Result) -> dict[str, Any]:
    environment = entry.session.environment
    case = result.case.model_dump(by_alias=True)
    ready, host = processes(result, "ready"), processes(result, "host")
    found: dict[str, Any] = {
        "created": entry.created.isoformat(),
        "label": entry.label.text or None,
        "python": environment.python,
        "cpu": environment.cpu,
        "packages": "; ".join(environment.versions),
        "environment": result.environment,
        **{name: case[name] for name in columns().names if name in case},
        "shape": shape_text(result.case.shape),
        "status": result.status,
        **{name: getattr(getattr(result, name), "verdict", None) for name in VERDICTS},
    }
    return {
        **{name: None if one is None else clean(str(one), 2000) for name, one in found.items()},
        "ready_ns": median_ns(ready),
        "host_ns": median_ns(host),
        "ready_processes_ns": [process.time_ns for process in ready],
        "host_processes_ns": [process.time_ns for process in host],
        "result": _json(result),
    }


def decode(content: bytes) -> Entry:
    """The entry of a Parquet file. Raises :class:`Foreign` for what is none."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        # No thread of Arrow reads ahead, and none reads through a Python object: one that lives on
        # at the end aborts the process now and then (apache/arrow, issues 34314 and 50482).
        file = pyarrow.parquet.ParquetFile(pa.BufferReader(content), pre_buffer=False)
        raw = file.schema_arrow.metadata or {}
        metadata = {
            name.decode("utf-8", "replace"): text.decode("utf-8", "replace")
            for name, text in raw.items()
        }
        fault = files.version_fault(metadata.get("dlprof.history"), SCHEMA)
        if fault is None:
            raise Foreign("it is no file of a dlprof history")
        if fault:
            raise Foreign(f"it {fault}")
        column = file.read(columns=["result"], use_threads=False).column("result")
        texts = [str(text) for text in column.to_pylist()]
        return _decoded(metadata, texts)
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise Foreign(f"it is damaged: {_reason(error)}") from None
    except DlprofError as error:
        raise Foreign(f"it is damaged: {error}") from None


def _decoded(metadata: Mapping[str, str], texts: Iterable[str]) -> Entry:
    header = json_text.loads(metadata["dlprof.header"])
    check_schema(header, "its session")
    label = json.loads(metadata["dlprof.label"])
    results = [Result.model_validate(json_text.loads(text)) for text in texts]
    session = Session.model_validate({**header, "results": results})
    label = Label(clean(str(label["text"])), clean(str(label["source"])))
    return Entry(metadata["dlprof.id"], moment(session.created), label, session)


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return first_error(error)
    lines = str(error).strip().splitlines()
    return clean(lines[0] if lines else type(error).__name__, 200)
