"""The session: what one run measured, and what the rules found in it.

Times are in ns, sizes in bytes. :mod:`dlprof.runner.session_file` reads and writes it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from dlprof.protocol.messages import FAILED_IN, FAULTY
from dlprof.protocol.statement import STATEMENT
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
from dlprof.text.clean import clean, counted
from dlprof.text.json_text import Free

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
    in_company: Company | None = None
    output: str | None = None
    rounds: Many[int] = []
    untimed: bool = False
    """Whether times were left out since they would say nothing: on a simulated device."""

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
