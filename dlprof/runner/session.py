"""The session: the measurements of one run, and the findings of the rules.

Times are in ns, sizes in bytes. :mod:`dlprof.runner.session_file` reads and writes it.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Annotated, Literal, TypeVar

from pydantic import Field

from dlprof.protocol.messages import FAILED_IN, FAULTY
from dlprof.protocol.statement import STATEMENT
from dlprof.runner.evidence import (
    Alignment,
    ChangedSettings,
    EarlyWrite,
    Evidence,
    Fork,
    Free,
    FreshSource,
    HandshakeEvent,
    Lifetime,
    Lost,
    Maybe,
    Model,
    Ordering,
    Ownership,
    PeakMemory,
    Record,
    Refused,
    Reuse,
    Samples,
    Trace,
    Values,
    Verdict,
    Warned,
    Whole,
)
from dlprof.runner.request import Request
from dlprof.text.clean import clean, counted

SCHEMA = "dlprof.session/1"
SIMULATED = "Simulated CUDA device: order and copies are real, times are not."
"""Every output of such a session contains it."""
DISTURBED = 0.5
"""From this share of disturbed samples on, the median of a process is a disturbed one."""
CONDITIONS = (
    *("CUDA_LAUNCH_BLOCKING", "GOMP_", "KMP_", "LD_PRELOAD", "MALLOC_", "MIMALLOC_", "MKL_"),
    *("OMP_", "OPENBLAS_", "PYTHONDEVMODE", "PYTHONMALLOC", "PYTHONTRACEMALLOC", "TCMALLOC_"),
)
"""Beginnings of environment variables that change times, whichever framework is measured."""
WIDEST_SHARE = 0.25
"""A share whose interval reaches further is not written as a number."""

Thing = TypeVar("Thing")
Key = TypeVar("Key", bound=Hashable)
Status = Literal["ok", "unsupported", "crashed", "timeout", "invalid", "skipped"]


def grouped(things: Iterable[Thing], key: Callable[[Thing], Key]) -> dict[Key, list[Thing]]:
    """Group things by a key, in their order."""
    found: dict[Key, list[Thing]] = defaultdict(list)
    for thing in things:
        found[key(thing)].append(thing)
    return dict(found)


def pair_text(pair: tuple[str, str]) -> str:
    """Format producer and consumer: ``torch → numpy``."""
    return " → ".join(pair)


class CaseRecord(Model):
    """A conversion of an array; a user would type ``code``."""

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
    """The dtype that the consumer documents for results instead of ``dtype``."""
    narrows_why: str = ""
    arrays: int = Field(1, ge=1)
    """How many arrays one call takes. Times are those of the call."""
    survey: bool = False
    """Whether it was converted once and checked, and not timed."""

    @property
    def pair(self) -> tuple[str, str]:
        return self.producer, self.consumer

    @property
    def conversion(self) -> tuple[str, ...]:
        """Return the path, dtype, layout and device: the diagnosis ignores the shape."""
        path = (*self.pair, self.export, self.import_)
        return (*path, self.dtype, self.layout, self.device)

    @property
    def is_statement(self) -> bool:
        """Whether the user wrote the conversion."""
        return self.import_.partition(" ")[0] == STATEMENT

    @property
    def path(self) -> str:
        return f"{self.export}->{self.import_}"

    @property
    def way(self) -> tuple[str, ...]:
        """Return the path without the array; calls of a user's own differ by their code."""
        code = (self.code,) if self.is_statement else ()
        return (*self.pair, self.export, self.import_, *code)


class ProcessSamples(Model):
    """The samples of one process in ns per call, each the mean of ``loops`` calls.

    ``disturbed`` is the share of samples that other programs made at least twice as long.
    """

    round: int
    loops: int = 1
    samples_ns: Samples
    page_faults_per_call: float | None = None
    disturbed: float | None = None


class TimeMeasure(Model):
    """A time per call: the median of the process medians; no interval for a single process."""

    median_ns: float
    ci95_ns: tuple[float, float] | None
    min_ns: float
    processes: list[ProcessSamples] = []
    same_as: str | None = None

    @property
    def is_disturbed(self) -> bool:
        """Whether half of the samples are disturbed in half of the processes."""
        disturbed = 0
        for process in self.processes:  # a generator would take most of the time of many reports
            disturbed += (process.disturbed or 0.0) >= DISTURBED
        return 0 < len(self.processes) <= 2 * disturbed

    @property
    def medians_by_round(self) -> dict[int, float]:
        """Return the median of each process in ns by its round, if its samples are known."""
        known = (process for process in self.processes if process.samples_ns)
        return {process.round: statistics.median(process.samples_ns) for process in known}


class DeviceTime(Record):
    """Time of the conversion's work on the device, ``warm`` and ``cold``, or the reason."""

    verdict: Maybe[str] = None
    reason: Maybe[str] = None
    warm: Maybe[TimeMeasure] = None
    cold: Maybe[TimeMeasure] = None
    resolution_ns: Maybe[float] = None


class Share(Model):
    """A part of a whole, from 0 to 1; with noise, slightly below 0."""

    median: float
    ci95: tuple[float, float] | None = None

    @property
    def half(self) -> float | None:
        """Return the length of the interval's longer side; None for a single process."""
        if self.ci95 is None:
            return None
        return max(self.ci95[1] - self.median, self.median - self.ci95[0])

    @property
    def is_known(self) -> bool:
        """Whether the processes agree well enough for it to be a number."""
        return self.half is not None and self.half <= WIDEST_SHARE


class Step(Model):
    """A step of inference; the case's ``import`` is the strategy for its output.

    ``saved`` is the saving as a share of ``fresh``, an output allocated at each call; below 0, the
    strategy takes longer. ``reading`` is the time of a step with its output read. Another shape at
    each call adds ``change_ns``. ``buffers`` is the number of ``kept`` outputs with memory of their
    own. ``reuse`` tells whether later calls change an output.
    """

    reading: Maybe[TimeMeasure] = None
    saved: Maybe[Share] = None
    change_ns: float | None = None
    change_ci95_ns: tuple[float, float] | None = None
    allocations_per_call: float | None = None
    kept: int | None = None
    buffers: int | None = None
    reuse: Verdict[Reuse] | None = None


class CopyCost(Model):
    """Bandwidth counts the array's bytes once. GB/s are 1e9 bytes per second."""

    size_bytes: int
    gb_per_s: float | None
    memcpy_gb_per_s: float | None = None
    share_of_memcpy: float | None = None
    least_ns: float | None = None
    """No copy of all bytes takes much less: see ``dlprof.worker.instruments.copy_cost``."""


class Recipe(Model):
    """Source text of a case, for a script that does not use dlprof.

    ``create`` makes the array ``x``, by layout: that of the case, and for a contiguous one those
    that fix its alignment. ``source`` and ``result`` hold the idioms of producer and consumer on
    an array ``{x}`` (see ``dlprof.probes.base.Probe.idioms``), with ``wait`` and ``use``.
    ``queue`` holds ``setup`` and ``enqueue`` of a producer that queues work.
    """

    modules: list[str] = []
    setup: list[str] = []
    create: dict[str, str] = {}
    source: dict[str, str] = {}
    result: dict[str, str] = {}
    queue: dict[str, str] = {}


class Placement(Model):
    """Time per iteration of a loop that uses the result, by the place of the conversion.

    ``use`` is the operation in the loop, and ``share`` the conversion's part of an iteration. From
    ``break_even_iterations`` on, converting before the loop is faster. ``refused`` has the reason
    for each placement without a time.
    """

    use: str | None
    in_loop: Maybe[TimeMeasure] = None
    hoisted: Maybe[TimeMeasure] = None
    implicit: Maybe[TimeMeasure] = None
    share: Maybe[Share] = None
    break_even_iterations: int | None = None
    refused: dict[str, str] = {}


class Company(Model):
    """The first crash of a case in a shared process, before it was measured alone.

    Without a crash, it is the first result. ``rounds`` are all such rounds.
    """

    status: Status
    reason: str
    rounds: list[int]

    @property
    def is_of_faulty_probe(self) -> bool:
        return self.status == "crashed" and self.reason.startswith(FAULTY)


class Note(Model):
    """The failure of an instrument."""

    instrument: str
    reason: str

    def __str__(self) -> str:
        return f"{self.instrument}: {self.reason}"


class Result(Model):
    case: CaseRecord
    status: Status
    reason: str | None = None
    lost: Maybe[Lost] = None
    """The end of the worker, if the conversion caused it."""
    refused_at: str | None = None
    """The stage of a refusal: ``create`` if the producer cannot make the array."""
    host_time: Maybe[TimeMeasure] = None
    ready_time: Maybe[TimeMeasure] = None
    first_call_ns: float | None = None
    first_call_cases_before: int | None = None
    device_time: DeviceTime | None = None
    ownership: Verdict[Ownership] | None = None
    ordering: Verdict[Ordering] | None = None
    values: Verdict[Values] | None = None
    settings: Verdict[ChangedSettings] | None = None
    warnings: Verdict[Warned] | None = None
    refusal: Verdict[Refused] | None = None
    fresh_source: Verdict[FreshSource] | None = None
    alignment: Verdict[Alignment] | None = None
    lifetime: Verdict[Lifetime] | None = None
    early_write: Verdict[EarlyWrite] | None = None
    peak_memory: Verdict[PeakMemory] | None = None
    fork: Verdict[Fork] | None = None
    exit: Verdict[Evidence] | None = None
    trace: Verdict[Trace] | None = None
    copy_cost: CopyCost | None = None
    recipe: Recipe | None = None
    placement: Placement | None = None
    step: Step | None = None
    handshake: list[HandshakeEvent] = []
    notes: list[Note] = []
    in_company: Company | None = None
    output: str | None = None
    rounds: list[int] = []
    untimed: bool = False
    """Whether times were left out, because the device is simulated."""

    @property
    def is_of_faulty_probe(self) -> bool:
        """Whether the probe failed, not its framework."""
        return self.status == "crashed" and (self.reason or "").startswith(FAULTY)

    @property
    def fault(self) -> str:
        """Return the failure of the probe or of dlprof itself; empty if neither failed."""
        is_own = self.status == "skipped" and (self.reason or "").startswith(FAILED_IN)
        if is_own or self.is_of_faulty_probe:
            return self.reason or self.status
        return next((note.reason for note in self.notes if note.reason.startswith(FAULTY)), "")

    @property
    def first_in_process_ns(self) -> float | None:
        """Return the first call if it was the first conversion of its process, else None."""
        return None if self.first_call_cases_before else self.first_call_ns


class FindingRecord(Model):
    """A rule's claim about the results with these indices; see ``dlprof.judge``."""

    rule: str
    name: str
    severity: str
    results: list[int]
    summary: str
    headline: str = ""
    """The summary in at most 20 words."""
    said: str = ""
    """The headline of several paths without count and numbers: ``copy where … exists.``"""
    evidence: dict[str, Free] = {}
    advice: str = ""
    against: int | None = None
    """The result with which the first of ``results`` is compared, if any."""
    subject: str = ""
    """The faulty call, if it belongs to no path; then ``results`` may be right."""

    @property
    def title(self) -> str:
        return f"{self.severity} {self.rule} {self.name}"

    @property
    def line(self) -> str:
        return f"{self.title}: {self.summary}"


class ExpectationRecord(Model):
    """``verdict`` is ``met``, ``not met`` or, with a reason, ``not checked``."""

    text: str
    verdict: str
    reason: str = ""


class Gpu(Record):
    name: Maybe[str] = None
    driver_version: Maybe[str] = None
    sm_clock_max_mhz: Maybe[Whole] = None
    memory_clock_max_mhz: Maybe[Whole] = None


class Environment(Record):
    dlprof: Maybe[str] = None
    python: Maybe[str] = None
    implementation: Maybe[str] = None
    executable: Maybe[str] = None
    platform: Maybe[str] = None
    machine: Maybe[str] = None
    cpu: Maybe[str] = None
    cores: Maybe[Whole] = None
    governor: Maybe[str] = None
    machine_id: Maybe[str] = None
    boot_id: Maybe[str] = None
    """Hashes that identify the machine, and its boot."""
    cuda_devices: Maybe[Whole] = None
    gpus: Maybe[tuple[Gpu, ...] | str] = None
    """The GPUs, or the reason why they are unknown."""
    packages: Maybe[dict[str, str]] = None
    libraries: Maybe[dict[str, str]] = None
    """By distribution, the framework that it belongs to."""
    variables: Maybe[dict[str, Maybe[str]]] = None
    """Environment variables that a probe or a GPU reads, and those of :data:`CONDITIONS`."""

    @property
    def versions(self) -> tuple[str, ...]:
        """Return each distribution with its version: ``torch 2.13.0``."""
        return tuple(f"{name} {version}" for name, version in (self.packages or {}).items())

    def distributions(self, frameworks: Collection[str]) -> list[tuple[str, str]]:
        """Return name and version of each distribution that belongs to one of the frameworks."""
        libraries = self.libraries or {}
        # tensorflow-cpu belongs to tensorflow, apache-tvm-ffi to tvm-ffi, pillow to PIL.Image.
        parts = [name.lower().partition(".") for name in frameworks]
        roots = tuple(f"-{root}" if dot else f"-{root}-" for root, dot, _ in parts)
        return [
            (name, version)
            for name, version in (self.packages or {}).items()
            if libraries.get(name) in frameworks
            or any(root in f"-{name.lower()}-" for root in roots)
        ]

    @property
    def known_gpus(self) -> tuple[Gpu, ...] | None:
        return self.gpus if isinstance(self.gpus, tuple) else None

    @property
    def gpu_names(self) -> tuple[str, ...]:
        return tuple(gpu.name for gpu in self.known_gpus or () if gpu.name)


def on_one_machine(old: Environment, new: Environment) -> bool | None:
    """Whether two environments are of one machine, by its boot or its id; None if unknown."""
    if old.boot_id and old.boot_id == new.boot_id:
        return True
    return old.machine_id == new.machine_id if old.machine_id and new.machine_id else None


class WayBack(Model):
    """A view from the consumer to the producer, and its order."""

    code: str
    order: str


class Header(Model):
    """A session without its results."""

    schema_: str = Field(default=SCHEMA, alias="schema")
    created: str
    command: list[str]
    request: Request = Request()
    environment: Environment
    device_choice: str | None = None
    simulated: int = 0
    """Simulated CUDA devices; 0 if the driver was the machine's own."""
    rounds: int = 1
    complete: bool = True
    left_out: list[str] = []
    """Parts of the request that were not measured, with the reason."""
    way_back: WayBack | None = None
    """Measured if each path waits for all work that the producer has queued."""
    wall_s: float | None = None
    foreign_cores: float | None = None
    """Cores that other processes kept busy on average while this ran."""
    findings: list[FindingRecord] = []
    expectations: list[ExpectationRecord] = []
    """The scenario's expectations with their verdicts."""


class Session(Header):
    """A header with its results. Findings name results by their index; readers find them anew."""

    results: list[Result]

    def __repr__(self) -> str:
        """Say in a line what it is: the whole session would fill screens."""
        pairs = dict.fromkeys(pair_text(result.case.pair) for result in self.results)
        found = counted(len(self.results), "case"), counted(len(self.findings), "finding")
        return clean(f"<Session {', '.join(pairs)}: {', '.join(found)}; {self.created}>")

    __str__ = __repr__
