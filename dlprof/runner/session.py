"""The session: what one run measured, and its file, the stable contract ``dlprof.session/1``.

Additive changes keep the version; a newer major is refused. Times are in ns, sizes in bytes.
Unknown keys of a newer minor are kept when a file is read and written again.
"""

from __future__ import annotations

import io
import marshal
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationError, model_validator

from dlprof.errors import SessionError
from dlprof.protocol.messages import FAILED_IN, FAULTY
from dlprof.protocol.statement import STATEMENT
from dlprof.runner import files
from dlprof.runner.evidence import (
    Alignment,
    ChangedSettings,
    DeviceTime,
    EarlyWrite,
    FreshSource,
    HandshakeEvent,
    Lifetime,
    Lost,
    Many,
    Maybe,
    Model,
    Ordering,
    Ownership,
    PeakMemory,
    Refused,
    Trace,
    Values,
    Verdict,
)
from dlprof.runner.header import Environment, RecordedRequest
from dlprof.runner.measured import (
    Mode,
    ProcessSamples,
    Share,
    Step,
    TimeMeasure,
)
from dlprof.text import json_text
from dlprof.text.clean import clean, counted
from dlprof.text.json_text import Free
from dlprof.worker.timer import collector_off

__all__ = [
    "CaseRecord",
    "CopyCost",
    "FindingRecord",
    "Header",
    "Mode",
    "Model",
    "Phases",
    "Placement",
    "ProcessSamples",
    "Recipe",
    "Result",
    "Session",
    "Share",
    "TimeMeasure",
    "Verdict",
    "pair_text",
]

SCHEMA = "dlprof.session/1"
MOST_UNNAMED = 16 << 20
"""Characters that are read of a file before it says that it is a session."""
MOST_ERRORS = 1000
ONE_INTERPRETER = "this dlprof reads sessions of one; measure each again, and compare the sessions"
MOST_PAIRS = 3
"""Pairs that the line of a session names."""

Status = Literal["ok", "unsupported", "crashed", "timeout", "invalid", "skipped"]


def pair_text(pair: tuple[str, str]) -> str:
    """``torch → numpy``: producer and consumer for people."""
    return " → ".join(pair)


class CaseRecord(Model):
    """Which conversion of which array; ``code`` is what a user would type."""

    producer: str
    export: str
    consumer: str
    import_: str = Field(alias="import")
    protocol: str
    code: str
    shape: tuple[Annotated[int, Field(ge=0)], ...]
    dtype: str
    layout: str
    device: str
    promise: str | None = None
    setup: str = ""
    source: str = "x"
    """The name of the source in ``code``."""
    narrows_to: str | None = None
    """The dtype that the consumer's documentation says a result has instead of ``dtype``."""
    narrows_why: str = ""
    survey: bool = False
    """Whether it was converted once and looked at, and not timed."""

    @property
    def pair(self) -> tuple[str, str]:
        return self.producer, self.consumer

    @property
    def conversion(self) -> tuple[str, ...]:
        """The path, dtype, layout and device, whatever the shape: what the diagnosis knows."""
        path = (*self.pair, self.export, self.import_)
        return (*path, self.dtype, self.layout, self.device)

    @property
    def path(self) -> str:
        return f"{self.export}->{self.import_}"

    @property
    def way(self) -> tuple[str, ...]:
        """The path, whatever the array; calls of a user's own are told apart by their code."""
        own = (self.code,) if self.import_ == STATEMENT else ()
        return (*self.pair, self.export, self.import_, *own)

    @property
    def form(self) -> str:
        """The code, the same for every shape."""
        return self.code.replace(str(tuple(self.shape)), "{shape}") if self.shape else self.code


class Phases(Model):
    export_ns: float | None
    import_ns: float | None
    release_ns: float | None
    resolution_ns: float | None = None


class CopyCost(Model):
    """Bandwidth counts the array's bytes once. GB/s are 1e9 bytes per second."""

    size_bytes: int
    gb_per_s: float | None
    memcpy_gb_per_s: float | None = None
    share_of_memcpy: float | None = None
    least_ns: float | None = None
    """No copy of all bytes takes much less: see ``dlprof.worker.instruments.copy_cost``."""


class Recipe(Model):
    """Source text of a case: what a script needs that does without dlprof.

    ``create`` makes the array ``x``, by layout: that of the case, and for a contiguous one those
    that fix its alignment. ``source`` and ``result`` hold the idioms of producer and consumer on
    an array ``{x}`` (see ``dlprof.probes.base.Probe.idioms``), with ``wait`` and ``use``.
    ``queue`` holds ``setup``, ``enqueue`` and ``unrelated`` of a producer that queues work.
    """

    modules: list[str] = []
    setup: list[str] = []
    create: dict[str, str] = {}
    source: dict[str, str] = {}
    result: dict[str, str] = {}
    queue: dict[str, str] = {}


class Placement(Model):
    """Time per iteration of a loop that uses the result, by where the conversion stands.

    ``use`` is the operation in the loop; ``share`` the conversion's part of an iteration.
    ``break_even_iterations``: from how many on converting before the loop takes less time.
    ``refused`` says why a placement has no time.
    """

    use: str | None
    in_loop: Maybe[TimeMeasure] = None
    hoisted: Maybe[TimeMeasure] = None
    implicit: Maybe[TimeMeasure] = None
    share: Maybe[Share] = None
    break_even_iterations: int | None = None
    refused: dict[str, str] = {}


def _is_of_faulty_probe(status: Status, reason: str | None) -> bool:
    return status == "crashed" and (reason or "").startswith(FAULTY)


class Company(Model):
    """What became of a case beside others, of which it was tried again alone.

    ``rounds`` are all in which that was so; ``status`` and ``reason`` are those of the first crash,
    or where there was none of the first.
    """

    status: Status
    reason: str
    rounds: list[int]

    @property
    def is_of_faulty_probe(self) -> bool:
        """As that of a :class:`Result`."""
        return _is_of_faulty_probe(self.status, self.reason)


class Note(NamedTuple):
    """What an instrument could not do and why; without one, what became of the case."""

    reason: str
    instrument: str = ""

    def __str__(self) -> str:
        """As it stands in a file: ``values: no``."""
        return f"{self.instrument}: {self.reason}" if self.instrument else self.reason


def _note(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    name, colon, reason = text.partition(": ")
    return Note(reason, name) if colon and name.isidentifier() else Note(text)


Noted = Annotated[Note, BeforeValidator(_note), PlainSerializer(str, return_type=str)]


class Result(Model):
    case: CaseRecord
    status: Status
    reason: str | None = None
    lost: Maybe[Lost] = None
    """How the conversion ended its worker, if it did."""
    refused_at: str | None = None
    """Where a framework refused: ``create`` if the producer cannot make the array."""
    host_time: Maybe[TimeMeasure] = None
    ready_time: Maybe[TimeMeasure] = None
    first_call_ns: float | None = None
    first_call_cases_before: int | None = None
    first_call_peak_bytes: int | None = None
    create_ns: float | None = None
    phases: Maybe[Phases] = None
    device_time: DeviceTime | None = None
    ownership: Verdict[Ownership] | None = None
    ordering: Verdict[Ordering] | None = None
    values: Verdict[Values] | None = None
    settings: Verdict[ChangedSettings] | None = None
    refusal: Verdict[Refused] | None = None
    fresh_source: Verdict[FreshSource] | None = None
    alignment: Verdict[Alignment] | None = None
    lifetime: Verdict[Lifetime] | None = None
    early_write: Verdict[EarlyWrite] | None = None
    peak_memory: Verdict[PeakMemory] | None = None
    trace: Verdict[Trace] | None = None
    copy_cost: CopyCost | None = None
    recipe: Recipe | None = None
    placement: Placement | None = None
    step: Step | None = None
    handshake: Many[HandshakeEvent] = []
    notes: Many[Noted] = []
    interrupted: str | None = None
    in_company: Company | None = None
    output: str | None = None
    rounds: Many[int] = []
    untimed: bool = False
    """Whether times were left out since they would say nothing: on a simulated device."""
    environment: str | None = None
    """The name of its interpreter in an older session."""

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, value: Any, validate: Callable[[Any], Result]) -> Result:
        """A time that a file holds in a form that cannot be read, such as ``NaN``, is named."""
        if not isinstance(value, dict):
            return validate(value)
        result = validate(value)
        notes = [
            Note("its time is no number", name)
            for name in ("host_time", "ready_time")
            if value.get(name) and getattr(result, name) is None
        ]
        return result.model_copy(update={"notes": [*result.notes, *notes]}) if notes else result

    @property
    def is_of_faulty_probe(self) -> bool:
        """Whether the probe failed, which tells nothing of its framework. ``reason`` says so."""
        return _is_of_faulty_probe(self.status, self.reason)

    @property
    def fault(self) -> str:
        """How the probe or dlprof itself failed for the case; empty if neither did."""
        is_own = self.status == "skipped" and (self.reason or "").startswith(FAILED_IN)
        if is_own or self.is_of_faulty_probe:
            return self.reason or self.status
        return next((one.reason for one in self.notes if one.reason.startswith(FAULTY)), "")

    @property
    def timed_ready(self) -> TimeMeasure | None:
        """The ready time with its processes, which are those of the host time if it repeats it."""
        ready, host = self.ready_time, self.host_time
        if ready is None or host is None or ready.same_as != "host_time" or ready.processes:
            return ready
        return ready.model_copy(update={"processes": host.processes})

    @property
    def first_in_process_ns(self) -> float | None:
        """The first call where it was the first conversion of its process, else None."""
        return None if self.first_call_cases_before else self.first_call_ns


class FindingRecord(Model):
    """A rule's claim about the results with these indices; see ``dlprof.judge``."""

    rule: str
    name: str
    severity: str
    results: Many[int]
    summary: str
    headline: str = ""
    """The summary in at most 20 words; empty in older files."""
    said: str = ""
    """The headline of several paths without its count and its numbers: ``copy where … exists.``"""
    evidence: dict[str, Free] = {}
    advice: str = ""
    against: int | None = None
    """The result that the first of ``results`` is compared with, if it is with one."""
    subject: str = ""
    """The call that the finding is of, where it is of no path: its results may be faultless."""

    @property
    def title(self) -> str:
        return f"{self.severity} {self.rule} {self.name}"

    @property
    def line(self) -> str:
        return f"{self.title}: {self.summary}"

    def within(self, known: range) -> FindingRecord:
        """The finding without the results that are not ``known``."""
        results = [index for index in self.results if index in known]
        against = self.against if self.against in known else None
        return self.model_copy(update={"results": results, "against": against})


class ExpectationRecord(Model):
    """``verdict`` is ``met``, ``not met`` or, with a reason, ``not checked``."""

    text: str
    verdict: str
    reason: str = ""


class Header(Model):
    """All of a session but its results."""

    schema_: str = Field(default=SCHEMA, alias="schema")
    created: str
    command: list[str]
    seed: int
    request: RecordedRequest = RecordedRequest()
    environment: Environment
    environments: list[Free] = []
    """Empty: earlier versions could measure several interpreters."""
    device_choice: str | None = None
    simulated: int = 0
    """Simulated CUDA devices; 0 if the driver was the machine's own."""
    rounds: int = 1
    complete: bool = True
    left_out: list[str] = []
    """What was not measured although it could have been, and why."""
    unmatched: list[str] = []
    """The globs that no path matches, of those that name the paths to measure."""
    wall_s: float | None = None
    foreign_cores: float | None = None
    """Cores that other processes kept busy on average while this ran."""
    findings: list[FindingRecord] = []
    expectations: list[ExpectationRecord] = []
    """What the scenario expects to be found, and whether it was."""


class Session(Header):
    """The indices in its findings are those of results that it has."""

    results: list[Result]

    @model_validator(mode="after")
    def _keep_known_indices(self) -> Session:
        known = range(len(self.results))
        self.findings[:] = [one.within(known) for one in self.findings]
        return self

    def __repr__(self) -> str:
        """What it is, in a line: the whole of it would fill screens."""
        counts: dict[str, int] = {}
        for result in self.results:
            counts[result.status] = counts.get(result.status, 0) + 1
        pairs = dict.fromkeys(result.case.pair for result in self.results)
        shown = [*map(pair_text, pairs)][:MOST_PAIRS]
        more = f" and {len(pairs) - len(shown):,} more" if len(pairs) > len(shown) else ""
        cases = ", ".join(f"{n:,} {status}" for status, n in counts.items()) or "no cases"
        findings = counted(len(self.findings), "finding")
        return clean(f"<Session {', '.join(shown)}{more}: {cases}; {findings}; {self.created}>")

    __str__ = __repr__


ENTRIES: Mapping[str, type[Model]] = {
    "results": Result,
    "findings": FindingRecord,
    "expectations": ExpectationRecord,
}
"""What is in the lists of a session that may be long."""
OWN = frozenset(("case", "host_time", "ready_time", "phases"))
"""Parts in which no two results are the same."""


def load(path: str | os.PathLike[str], content: bytes | None = None) -> Session:
    """Read a session file. Raises :class:`SessionError` with one sentence that says why not.

    ``content`` is that of a file elsewhere, of which ``path`` is the address.
    """
    name, path = str(path), Path(path)
    try:
        endless = files.endless(path) if content is None else ""
        if endless:
            hint = "; as - it is read from stdin" if endless == "a pipe" else ""
            raise SessionError(f"cannot read the session {name}: it is {endless}{hint}")
        with files.opened_text(path, content) as text:
            return _read(text, name)
    except UnicodeDecodeError:
        raise SessionError(f"{name} is not a dlprof session: it is not UTF-8 text") from None
    except (OSError, ValueError) as error:  # a null byte in the name is a ValueError
        cause = getattr(error, "strerror", None) or str(error)
        raise SessionError(f"cannot read the session {name}: {cause}") from None


def request(path: Path) -> RecordedRequest:
    """What a session was asked for, without its results; an empty one if it cannot be read."""
    with suppress(OSError, ValueError), files.opened_text(path) as text:
        for key, value in json_text.Reader(text).members(ENTRIES):
            if key == "request":
                return RecordedRequest.model_validate(value)
            if key in ENTRIES:
                break
    return RecordedRequest()


def parse(text: str, name: str) -> Session:
    """Read a session from ``text``; ``name`` is for messages."""
    return _read(io.StringIO(text), name)


def _read(text: IO[str], name: str) -> Session:
    """Read a session piece by piece, up to the first that is wrong."""
    found: dict[str, Any] = {}

    def check_place(place: int) -> None:
        if "schema" not in found and place > MOST_UNNAMED:
            most = f"its first {MOST_UNNAMED >> 20} MiB"
            raise SessionError(f"{name} is not a dlprof session: {most} have no schema")

    try:
        # What is read has no circles, and looking for some takes longer than the work.
        with collector_off():
            for key, value in json_text.Reader(text, check_place).members(ENTRIES):
                found[key] = _entries(key, value) if isinstance(value, Iterator) else value
                if key == "schema":
                    check_schema(found, name)
                if key == "environments" and isinstance(value, list) and len(value) > 1:
                    raise SessionError(f"{name} has {len(value)} interpreters: {ONE_INTERPRETER}")
            check_schema(found, name)
            return Session.model_validate(found)
    except json_text.TooLong as error:
        raise SessionError(f"{name} cannot be read as a session: {error}") from None
    except json_text.NotJson as error:
        hint = "is damaged" if "schema" in found else "is not JSON"
        known = "dlprof list --sessions lists the kept ones"
        raise SessionError(f"{name} is no session: it {hint}: {error}; {known}") from None
    except (ValidationError, _Invalid) as error:
        said = first_error(error) if isinstance(error, ValidationError) else error
        raise SessionError(f"{name} is not a valid session: {said}") from None


def _entries(key: str, contents: Iterator[Any]) -> list[Model]:
    """The entries of a list. A part that several of them repeat is read once, and kept once, and so
    are the names of what was given of each part: they would take half of the memory.
    """
    model, known = ENTRIES[key], defaultdict[str, dict[bytes, Any]](dict)
    names = dict[type[Model], set[str]]()
    found: list[Model] = []
    for content in contents:
        parts: list[tuple[str, bytes]] = []
        for name, part in content.items() if isinstance(content, dict) else ():
            if isinstance(part, dict) and name not in OWN:
                text = marshal.dumps(part, 2)
                if text in known[name]:
                    content[name] = known[name][text]
                else:
                    parts.append((name, text))
        try:
            entry = model.model_validate(content)
        except ValidationError as error:
            raise _Invalid(first_error(error, (key, len(found)))) from None
        for name, text in parts:
            known[name][text] = getattr(entry, name, None)
        if isinstance(entry, Result):
            for one in _own_parts(entry):
                given = one.__pydantic_fields_set__
                shared = names.setdefault(type(one), given)
                if shared == given:
                    object.__setattr__(one, "__pydantic_fields_set__", shared)
                else:
                    names[type(one)] = given
        found.append(entry)
    return found


def _own_parts(result: Result) -> Iterator[Model]:
    """The result and the parts of it that no other result has."""
    yield from (result, result.case, *([result.phases] if result.phases else ()))
    for time in (result.host_time, result.ready_time):
        if time is not None:
            yield from (time, *time.processes)


class _Invalid(Exception):
    """An entry that is none; the message says where and why."""


def first_error(error: ValidationError, within: tuple[str | int, ...] = ()) -> str:
    """Place and cause of the first error; how many they are, if words for all fill the memory."""
    if error.error_count() > MOST_ERRORS:
        return f"{error.error_count():,} of its values have another form"
    first = error.errors()[0]
    where = ".".join(map(str, (*within, *first["loc"]))) or "top level"
    return f"{where}: {first['msg'].removeprefix('Value error, ')}"


def check_schema(content: Any, name: str) -> None:
    """Raise :class:`SessionError` for a foreign file or a newer major version."""
    schema = content.get("schema") if isinstance(content, dict) else None
    fault = files.version_fault(schema, SCHEMA)
    if fault is None and str(schema).startswith("dlprof.trace/"):
        raise SessionError(f"{name} is a trace and no session: dlprof report shows it")
    if fault is None:
        raise SessionError(f"{name} is not a dlprof session: it has no schema {SCHEMA!r}")
    if fault:
        raise SessionError(f"{name} {fault}")


def write(path: Path, header: Header, results: Iterable[Result]) -> None:
    """Write a session file atomically, one result at a time: memory does not grow with it."""
    with files.atomic(path) as file:
        for chunk in chunks(header, results):
            file.write(chunk)


def chunks(header: Header, results: Iterable[Result]) -> Iterator[str]:
    """The text of a session file, piece by piece."""
    head = header.model_dump(by_alias=True, exclude={"results"})
    yield json_text.dump(head)[:-1] + ', "results": ['
    separator = "\n"
    for result in results:
        yield separator + json_text.dump(result.model_dump(by_alias=True))
        separator = ",\n"
    yield "\n]}\n"
