"""One session in a history: a Parquet file with one row for each case, and its name.

The columns are for anybody's queries; ``result`` holds the case as JSON, with one value for each
process. Header and label are in the file's metadata.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from pydantic import ValidationError

from dlprof._version import __version__
from dlprof.compare.process import median_ns, processes, time_ns
from dlprof.errors import DlprofError, HistoryError, Unmeasured
from dlprof.history.label import Label
from dlprof.plan.axes import shape_text
from dlprof.session.environments import environment_of
from dlprof.session.evidence import DeviceTime, Series
from dlprof.session.model import Header, ProcessSamples, Result, Session, TimeMeasure, check_schema
from dlprof.session.slim import slim
from dlprof.text.clean import clean

MAJOR = 1
SCHEMA = f"dlprof.history/{MAJOR}"
NAME = re.compile(r"dlprof-(\d{1,6})-(\d{8}T\d{6}\.\d{6}Z)-([0-9a-f]{32})\.parquet")
VERDICTS = ("ownership", "ordering", "values", "lifetime", "early_write")
SHORT = 60

DIGEST = "dlprof.digest"
TOLD = ("dlprof.header", "dlprof.label", "dlprof.id")


DAMAGE = (OSError, ValueError, KeyError, TypeError, RecursionError, DlprofError)
"""What comes of reading bytes that are not what they should be."""


class Foreign(Exception):
    """A file that is no entry of a history; the message says why."""


class Newer(Foreign):
    """An entry that a newer major version wrote."""


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


def entry_of(session: Session, label: Label) -> Entry:
    """The entry of a session.

    Raises :class:`Unmeasured` for one without results, :class:`HistoryError` for one that does not
    say when it was measured.
    """
    if not session.results:
        raise Unmeasured("it holds no results: there is nothing to add")
    created = moment(session.created)
    lighter: dict[str, Any] = {
        "findings": [],
        "expectations": [],
        "results": [reduced(result) for result in session.results],
    }
    return Entry(identity(session), created, label, session.model_copy(update=lighter))


def moment(created: str) -> datetime:
    """When a session began, in UTC. Raises :class:`HistoryError` where it does not say."""
    try:
        found = datetime.fromisoformat(created.strip().replace("Z", "+00:00"))
        if found.tzinfo is None:
            found = found.replace(tzinfo=timezone.utc)
        return found.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        shown = clean(created, SHORT)
        raise HistoryError(
            f"it cannot be placed in time: {shown!r} is no ISO 8601 date and time"
        ) from None


def identity(session: Session) -> str:
    """The same for the same measurement, whatever was found in it since, or added to the format."""
    digest = hashlib.sha256(session.created.encode("utf-8", "backslashreplace"))
    for result in session.results:
        # Without defaults: a later version has more of them.
        content = result.model_dump(by_alias=True, mode="json", exclude_defaults=True)
        digest.update(json.dumps(content, sort_keys=True).encode("ascii"))
    return digest.hexdigest()[:32]


def columns() -> Any:
    """The columns as a ``pyarrow.Schema``; see docs/history.md."""
    import pyarrow as pa

    words = ("created", "label", "python", "cpu", "packages", "environment")
    case = ("producer", "export", "consumer", "import", "protocol", "code", "shape", "dtype")
    times = pa.list_(pa.float64())
    kinds: dict[str, Any] = dict.fromkeys(
        (*words, *case, "layout", "device", "status", *VERDICTS), pa.string()
    )
    kinds |= {"ready_ns": pa.float64(), "host_ns": pa.float64()}
    kinds |= {"ready_processes_ns": times, "host_processes_ns": times, "result": pa.string()}
    return pa.schema([pa.field(name, kind) for name, kind in kinds.items()])


def encode(entry: Entry) -> bytes:
    """The entry as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet

    header = Header.model_validate(entry.session.model_dump(by_alias=True, exclude={"results"}))
    metadata = {
        "dlprof.history": SCHEMA,
        "dlprof.header": json.dumps(header.model_dump(by_alias=True, mode="json")),
        "dlprof.label": json.dumps({"text": entry.label.text, "source": entry.label.source}),
        "dlprof.id": entry.id,
        "dlprof.added_by": __version__,
    }
    rows = [_row(entry, result) for result in entry.session.results]
    metadata[DIGEST] = _digest(metadata, [row["result"] for row in rows])
    table = pa.Table.from_pylist(rows, schema=columns()).replace_schema_metadata(metadata)
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file, compression="zstd")
    return file.getvalue()


def _digest(metadata: Mapping[str, str], results: Iterable[str]) -> str:
    """Of all that is read again: a disk that changes a bit may leave a file that can be read."""
    digest = hashlib.sha256()
    for text in (*(metadata[name] for name in TOLD), *results):
        digest.update(text.encode("utf-8", "backslashreplace") + b"\n")
    return digest.hexdigest()


def _row(entry: Entry, result: Result) -> dict[str, Any]:
    environment = environment_of(entry.session, result)
    packages = environment.get("packages")
    packages = packages if isinstance(packages, Mapping) else {}
    case = result.case.model_dump(by_alias=True)
    ready, host = processes(result, "ready"), processes(result, "host")
    found: dict[str, Any] = {
        "created": entry.created.isoformat(),
        "label": entry.label.text or None,
        "python": environment.get("python"),
        "cpu": environment.get("cpu"),
        "packages": "; ".join(f"{name} {version}" for name, version in packages.items()),
        "environment": result.environment,
        **{name: case[name] for name in columns().names if name in case},
        "shape": shape_text(result.case.shape),
        "status": result.status,
        **{name: getattr(getattr(result, name), "verdict", None) for name in VERDICTS},
    }
    texts = {
        name: None if value is None else clean(str(value), 2000) for name, value in found.items()
    }
    return {
        **texts,
        "ready_ns": median_ns(ready),
        "host_ns": median_ns(host),
        "ready_processes_ns": [process.time_ns for process in ready],
        "host_processes_ns": [process.time_ns for process in host],
        "result": json.dumps(result.model_dump(by_alias=True, mode="json", exclude_defaults=True)),
    }


def decode(content: bytes) -> Entry:
    """The entry of a Parquet file. Raises :class:`Foreign` for what is none."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        # No thread of Arrow reads ahead, and none reads through a Python object: one that lives on
        # at the end aborts the process now and then (apache/arrow, issues 34314 and 50482).
        file = pyarrow.parquet.ParquetFile(pa.BufferReader(content), pre_buffer=False)
        metadata = dict(file.schema_arrow.metadata or {})
        _check_major(metadata)
        texts = file.read(columns=["result"], use_threads=False).column("result").to_pylist()
        found = _decoded(metadata, texts)
        _check_digest(metadata, texts)
    except (pa.ArrowException, *DAMAGE) as error:
        raise Foreign(f"it is damaged: {_first(error)}") from None
    return found


def _check_digest(metadata: Mapping[bytes, bytes], results: list[Any]) -> None:
    told = {
        name.decode("utf-8", "replace"): text.decode("utf-8", "replace")
        for name, text in metadata.items()
    }
    # A dlprof of before it was kept wrote none.
    if DIGEST in told and told[DIGEST] != _digest(told, results):
        raise Foreign("it is damaged: what is in it is not what was written")


def _check_major(metadata: Mapping[bytes, bytes]) -> None:
    schema = metadata.get(b"dlprof.history", b"").decode("utf-8", "replace")
    found = re.fullmatch(r"dlprof\.history/(\d{1,9})(\.\d{1,9})?", schema)
    if found is None:
        raise Foreign("it is no file of a dlprof history")
    if int(found[1]) > MAJOR:
        raise Newer(f"a newer dlprof wrote it ({schema}); this one reads {SCHEMA}")


def _decoded(metadata: Mapping[bytes, bytes], texts: list[Any]) -> Entry:
    header = json.loads(metadata[b"dlprof.header"])
    check_schema(header, "its session")
    label = json.loads(metadata[b"dlprof.label"])
    results = [Result.model_validate(json.loads(text)) for text in texts]
    session = Session.model_validate({**header, "results": results})
    return Entry(
        metadata[b"dlprof.id"].decode("ascii"),
        moment(session.created),
        Label(str(label["text"]), str(label["source"])),
        session,
    )


def _first(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        return f"{where}: {first['msg']}"
    lines = str(error).strip().splitlines()
    return clean(lines[0] if lines else type(error).__name__, 200)


def reduced(result: Result) -> Result:
    """The result with one sample per process: the value that comparisons take of it.

    :func:`dlprof.compare.process.processes` finds the same in both.
    """
    times: dict[str, Any] = {
        name: _one_sample_each(measure)
        for name in ("host_time", "ready_time")
        if (measure := getattr(result, name)) is not None
    }
    device = result.device_time
    warm = device.warm.median_ns if device is not None and device.warm is not None else None
    lighter = {
        **times,
        "device_time": None if warm is None else DeviceTime(warm=Series(median_ns=warm)),
        "handshake": [],
        "placement": None,
    }
    return slim(result).model_copy(update=lighter)


def _one_sample_each(measure: TimeMeasure) -> TimeMeasure:
    return measure.model_copy(update={"processes": [_one(one) for one in measure.processes]})


def _one(process: ProcessSamples) -> ProcessSamples:
    samples = [time_ns(process)] if process.samples_ns else []
    return process.model_copy(update={"samples_ns": samples})
