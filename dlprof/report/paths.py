"""The paths of a session, each with what was found of it, by the array that was converted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dlprof.judge import cases_in
from dlprof.judge.case_view import CaseView
from dlprof.judge.cases import Cases
from dlprof.judge.rule import SEVERITIES, Severity, severity_of
from dlprof.judge.safety import Safety
from dlprof.judge.slower import is_too_fast_to_copy
from dlprof.report.document import Cell, Tone
from dlprof.runner.axes import shape_text
from dlprof.runner.quantity import MARK, plain_time, size_text
from dlprof.runner.session import FindingRecord, Session, pair_text
from dlprof.text.clean import first_line

BY = "\N{MULTIPLICATION SIGN}"
MORE = ">"
"""Before the time of a copy that was made out of what the first conversion left behind."""
NOT_ALL = "not all bytes"
"""Beside a copy in a time in which no copy of all its bytes is made."""
LAYOUTS = {"C": "C order", "F": "F order"}
KINDS = ("view", "copy")
ORDERS = ("synchronous", "stream-ordered", "host-sync", "device-sync")
"""What a call may do about queued work, what costs least first; everything else comes later."""
TONES: dict[str, Tone] = {"view": "view", "copy": "copy", "refused": "dim", "?": ""}


@dataclass(frozen=True)
class Path:
    """One case; ``rules`` are the ids of its findings, worst first."""

    case: CaseView
    safety: Safety
    rules: tuple[str, ...] = ()
    worst: Severity | None = None
    """Of its findings."""
    offered: str = ""
    """The kind as which it may be written: see :meth:`dlprof.judge.cases.Cases.offered`."""

    @property
    def is_copy(self) -> bool:
        """Whether it copies wherever the array begins, and nothing asks it not to."""
        return self.offered == "copy"

    @cached_property
    def is_part(self) -> bool:
        """Whether its time is too short for a copy of all bytes. A kept result is no such copy."""
        return not self.case.is_cached_copy and is_too_fast_to_copy(self.case)

    @property
    def code(self) -> str:
        return self.case.code

    @property
    def cost_ns(self) -> float:
        """Infinite where no ready time is known. Of a copy that is kept, that of a new array."""
        if self.case.new_ns is not None:
            return self.case.new_ns
        ready = self.case.result.ready_time
        return ready.median_ns if ready is not None else float("inf")

    @property
    def interval_ns(self) -> tuple[float, float]:
        """The interval, or from the fastest to the slowest mode; twice the time of one process."""
        if self.case.new_ns is not None:
            return self.case.new_ns, self.case.new_ns
        ready = self.case.result.ready_time
        return (ready and ready.interval_ns) or (self.cost_ns, self.cost_ns)

    @property
    def is_timed(self) -> bool:
        return self.case.result.ready_time is not None

    @property
    def is_measured(self) -> bool:
        """Whether it has a time, or an answer where no time is taken."""
        return self.is_timed or self.case.is_measured

    @property
    def place(self) -> tuple[float, int, int]:
        """Its place among the paths of its array: by its time, else the order that costs least."""
        if self.is_timed or not self.is_measured:
            return self.cost_ns, 0, 0
        return self.cost_ns, *untimed_place(self.case.order, self.result)

    @property
    def is_known(self) -> bool:
        """Whether the time is the path's own, as far as the samples tell."""
        return self.case.is_known

    @property
    def is_certain(self) -> bool:
        """Whether several processes agree on it, too."""
        return self.is_known and self.case.ready is not None and self.case.ready.is_repeated

    @property
    def is_wrong(self) -> bool:
        return self.case.is_wrong

    @property
    def waits(self) -> bool:
        """Whether the call waits for queued work."""
        return self.case.waits_for is not None

    @property
    def source(self) -> str:
        """The name of the array in the code."""
        return self.case.result.case.source

    @property
    def pair(self) -> tuple[str, str]:
        """Producer and consumer."""
        return self.case.pair

    @cached_property
    def pair_text(self) -> str:
        return pair_text(self.pair)

    @cached_property
    def array(self) -> tuple[str, ...]:
        """Pair, shape, dtype, layout, device: paths with the same can be compared."""
        case = self.case.result.case
        shape = shape_text(case.shape).replace("x", BY) if case.shape else "scalar"
        return self.pair_text, shape, case.dtype, LAYOUTS.get(case.layout, case.layout), case.device

    @property
    def elsewhere(self) -> set[str]:
        """What else it is where the array begins at another address: a copy, or refused."""
        return self.case.alignment_words - {self.case.kind}

    @property
    def result(self) -> str:
        """The result in one word."""
        return self.case.outcome

    @property
    def brief_time(self) -> str:
        """Two digits, with a mark where the time is not known to be the path's own."""
        if not self.is_timed:
            return ""
        if self.case.is_cached_copy:
            return (MORE if self.case.new_ns is None else MARK) + plain_time(self.cost_ns)
        return ("" if self.is_certain else MARK) + plain_time(self.cost_ns)

    @property
    def result_cell(self) -> Cell:
        """View or copy; with a star where that depends on where the array begins."""
        star = "*" if self.case.result.status == "ok" and self.elsewhere else ""
        note = NOT_ALL if self.is_part else ""
        return Cell(self.result + star, TONES.get(self.result, "bad"), note=note)

    @property
    def problems(self) -> str:
        """The rules that were found of it; with a question mark one that was found of its like."""
        return " ".join((*self.rules, *(f"{rule}?" for rule in self.safety.suspected)))

    @property
    def is_undiagnosed(self) -> bool:
        """Whether nothing looked for races, lifetime and late reads: one notice says it for all."""
        result = self.case.result
        return not any((result.lifetime, result.ordering, result.early_write, result.peak_memory))

    @property
    def reason(self) -> str:
        """Why there is no ready time, in a line."""
        result = self.case.result
        notes = [one.reason for one in result.notes if one.instrument == "ready_time"]
        notes = notes or [*map(str, result.notes), ""]
        return first_line(result.reason if result.reason is not None else notes[0])


def untimed_place(order: str | None, result: str) -> tuple[int, int]:
    """The place of a path that no time was taken of: what costs least first."""
    waits = ORDERS.index(order) if order in ORDERS else len(ORDERS)
    return waits, KINDS.index(result) if result in KINDS else len(KINDS)


@dataclass(frozen=True)
class Array:
    """The paths of one pair and array, the fastest first."""

    paths: tuple[Path, ...]
    cases: Cases

    @property
    def name(self) -> tuple[str, ...]:
        return self.paths[0].array

    @property
    def pair(self) -> tuple[str, str]:
        return self.paths[0].pair

    @property
    def pair_text(self) -> str:
        return self.paths[0].pair_text

    @property
    def text(self) -> str:
        """Dtype and shape, layout, size and device."""
        _, shape, dtype, layout, device = self.name
        size_bytes = self.paths[0].case.size_bytes
        return ", ".join(
            [f"{dtype} {shape}", layout, *([size_text(size_bytes)] if size_bytes else []), device]
        )


def arrays_of(session: Session, known: Cases | None = None) -> list[Array]:
    """The arrays in the order of the session. Steps of inference are no conversions.

    ``known`` are its cases, where somebody has them.
    """
    rules = rules_by_case(session.findings)
    of_paths = [one for one in session.findings if not one.subject]
    ranked = sorted(of_paths, key=severity_rank, reverse=True)
    worst = {index: severity_of(one.severity) for one in ranked for index in one.results}
    cases = (known or cases_in(session.results)).with_findings(session.findings)
    found: dict[tuple[str, ...], list[Path]] = defaultdict(list)
    names: dict[tuple[Any, ...], tuple[str, ...]] = {}
    for case in cases.timed.cases:
        ids, offered = rules.get(case.index, ()), cases.offered(case)
        path = Path(case, cases.safety(case), ids, worst.get(case.index), offered)
        name = names.get(case.array)
        if name is None:
            name = names[case.array] = path.array
        found[name].append(path)
    return [
        Array(tuple(sorted(paths, key=lambda path: path.place)), cases) for paths in found.values()
    ]


def rules_by_case(findings: Iterable[FindingRecord]) -> Mapping[int, tuple[str, ...]]:
    """The ids of the rules that name each case, worst first."""
    found: dict[int, dict[str, None]] = defaultdict(dict)
    for finding in sorted(findings, key=severity_rank):
        for index in finding.results if not finding.subject else ():
            found[index][finding.rule] = None
    return {index: tuple(ids) for index, ids in found.items()}


def severity_rank(finding: FindingRecord) -> int:
    return SEVERITIES.index(severity_of(finding.severity))


NEAR = 1.1
"""Times within this ratio are one time to a reader."""


def lines_of(paths: Iterable[Path]) -> list[list[Path]]:
    """Paths with the same result and problems and about the same time, the fastest first.

    Of an array without times, what the call does about queued work takes the time's place.
    """
    groups: dict[tuple[object, ...], list[list[Path]]] = defaultdict(list)
    for path in sorted(paths, key=lambda path: path.place):
        queued = "" if path.is_timed else queued_work(path)
        key = path.result_cell.text, path.problems, path.safety.level, path.is_copy, queued
        found = groups[key]
        if found and path.cost_ns <= NEAR * found[-1][0].cost_ns:
            found[-1].append(path)
        else:
            found.append([path])
    lines = [line for lines in groups.values() for line in lines]
    return sorted(lines, key=lambda line: plainest(line).place)


def plainest(line: Sequence[Path]) -> Path:
    """The path that stands for a line: the shortest code, with its own time."""
    return min(line, key=lambda path: len(path.code))


def queued_work(path: Path) -> str:
    """What the call does behind queued work: ``waits 45 ms of 45 ms``, ``ordered``, ``race``."""
    order, loaded = path.case.order, path.case.loaded
    words = {None: "", "synchronous": "", "stream-ordered": "ordered", "unordered": "race"}
    word = words.get(order, order or "")
    if path.case.waits_for is None:
        return word
    race = "race, " if order == "unordered" else ""
    if loaded is None:
        return f"{race}waits {_share(path)}".rstrip()
    call, queue = loaded
    if path.case.waits_for_all:
        return f"{race}waits for all {plain_time(queue)}"
    return f"{race}waits {plain_time(call)} of {plain_time(queue)}"


def _share(path: Path) -> str:
    """What a call waits for, of a device without times: ``for the queue``, ``for 40 % of it``."""
    if path.case.waits_for_all:
        return "for the device" if path.case.order == "device-sync" else "for the queue"
    return f"for {path.case.share_text} of it" if path.case.share_text else ""
