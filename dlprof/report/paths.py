"""The paths of a session with their findings, by the array that was converted; and their chart."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dlprof.judge import cases_in
from dlprof.judge.case_view import CaseView, is_certain
from dlprof.judge.cases import Cases
from dlprof.judge.rule import SEVERITIES
from dlprof.judge.safety import Safety
from dlprof.probes.base import LIST
from dlprof.probes.generic import UNKNOWN
from dlprof.probes.list import HOLDS, NESTED
from dlprof.protocol.messages import NO_ARRAY
from dlprof.report.document import Cell, Chart, ChartRow, Column, Mark, Tone
from dlprof.runner.axes import shape_text
from dlprof.runner.quantity import MARK, plain_time, size_text
from dlprof.runner.session import FindingRecord, Session, TimeMeasure, pair_text
from dlprof.text.clean import first_line

AT_LEAST = "\N{GREATER-THAN OR EQUAL TO}"
"""Stands before the time of a call, if nothing says when its result is ready."""
BY = "\N{MULTIPLICATION SIGN}"
LAYOUTS = {"C": "C order", "F": "F order"}
KINDS = ("view", "copy")
ORDERS = ("synchronous", "stream-ordered", "host-sync", "device-sync")
"""Orders of a call behind queued work, cheapest first; all others come later."""
TONES: dict[str, Tone] = {
    "view": "view",
    "copy": "copy",
    "narrowed": "copy",
    "refused": "dim",
    "?": "",
    "no array": "",
}
"""Any other result is bad."""
NEAR = 1.1
"""Times within this ratio are one time to a reader."""
MOST_TICKS = 6
FEWEST_SHARED = 4
"""A table with this many paths or more says a rule of all of them once, above its rows."""
PATH_COLUMNS = (Column("time", right=True), *map(Column, ("result", "path", "problem")))

CONDITION = re.compile(r" \([^()]*\)$")
"""The end of what a finding says, such as `` (bool, int8)``."""

Scale = Callable[[float], float]
"""From ns to a share of the width in percent."""


@dataclass(frozen=True)
class JudgedPath:
    """One case; ``rules`` are the ids of its findings, worst first."""

    case: CaseView
    safety: Safety
    rules: tuple[str, ...] = ()
    worst: str | None = None
    """The worst severity of its findings."""
    offered: str = ""
    """``view`` or ``copy`` if it may be offered as one: see
    :meth:`dlprof.judge.cases.Cases.offered`."""

    @property
    def code(self) -> str:
        return self.case.code

    @property
    def cost_ns(self) -> float:
        """Return the ready time, infinite if unknown. A kept copy has the time of a new array."""
        if self.case.new_ns is not None:
            return self.case.new_ns
        time = self.ready or self._call
        return time.median_ns if time is not None else float("inf")

    @property
    def _call(self) -> TimeMeasure | None:
        """Return the time of the call, if nothing says when its result is ready."""
        result = self.case.result
        return result.host_time if result.status == "ok" and result.ready_time is None else None

    @property
    def interval_ns(self) -> tuple[float, float]:
        """Return the interval; twice the time of one process."""
        if self.case.new_ns is not None or self.ready is None:
            return self.cost_ns, self.cost_ns
        return self.ready.ci95_ns or (self.cost_ns, self.cost_ns)

    @property
    def ready(self) -> TimeMeasure | None:
        """Return the ready time; None for a path that one process refused, and another timed."""
        result = self.case.result
        return result.ready_time if result.status in ("ok", "invalid") else None

    @property
    def is_timed(self) -> bool:
        return self.ready is not None or self._call is not None

    @property
    def is_measured(self) -> bool:
        """Whether it has a time, or an answer if no times are taken."""
        return self.is_timed or self.case.is_measured

    @property
    def place(self) -> tuple[float, int]:
        """Return its place among the paths of its array: by time, else the cheapest order first."""
        order = self.case.order
        return self.cost_ns, ORDERS.index(order) if order in ORDERS else len(ORDERS)

    @property
    def is_certain(self) -> bool:
        """Whether several processes agree on the time."""
        return is_certain(self.case.ready)

    @cached_property
    def array(self) -> tuple[str, ...]:
        """Return pair, shape, dtype, layout and device: paths with the same can be compared."""
        case = self.case.result.case
        shape = shape_text(case.shape).replace("x", BY) if case.shape else "scalar"
        layout = LAYOUTS.get(case.layout, case.layout)
        return pair_text(self.case.pair), shape, case.dtype, layout, case.device

    @property
    def other_results(self) -> frozenset[str]:
        """Return its other results if the array begins at another address."""
        return self.case.words_by_address - {self.case.kind}

    @property
    def result(self) -> str:
        """Return the result in one word, or that there is none."""
        owned = self.case.result.ownership
        has_none = owned is not None and owned.evidence.reason == NO_ARRAY
        return "no array" if has_none and self.case.outcome == "?" else self.case.outcome

    @property
    def brief_time(self) -> str:
        """Return the time in two digits, marked if another process may not repeat it."""
        if not self.is_timed:
            return ""
        if self._call is not None:
            return f"{AT_LEAST}{plain_time(self.cost_ns)}"
        is_own = self.is_certain and not self.case.is_cached_copy
        return ("" if is_own else MARK) + plain_time(self.cost_ns)

    @property
    def result_cell(self) -> Cell:
        """Return ``view``, ``copy on cuda``; a star if it depends on the address of the array."""
        star = "*" if self.case.result.status == "ok" and self.other_results else ""
        device, is_numpy = self.case.result_device, self.case.pair[1] == "numpy"
        # NumPy has no other memory than the host's.
        stays = device in (None, self.case.result.case.device) or is_numpy
        place = "" if stays or self.result != "copy" else f" on {device}"
        return Cell(self.result + star + place, TONES.get(self.result, "bad"))

    @property
    def problems(self) -> str:
        """Return the rules that it breaks; one that only similar paths break has a ``?``."""
        return " ".join((*self.rules, *(f"{rule}?" for rule in self.safety.suspected)))

    @property
    def unknown_reason(self) -> str:
        """Return the reason why the time, or view or copy, is unknown; empty if both are known."""
        if not self.case.is_measured:
            return self.reason
        result = self.case.result
        reasons = [note.reason for note in result.notes if note.instrument == "ownership"]
        if result.ownership is not None and result.ownership.evidence.reason:
            reasons.append(result.ownership.evidence.reason)
        return first_line(reasons[0]) if self.result == "?" and reasons else ""

    @property
    def reason(self) -> str:
        """Return the reason why there is no ready time, in a line."""
        result = self.case.result
        notes = [note.reason for note in result.notes if note.instrument == "ready_time"]
        notes = notes or [*map(str, result.notes), ""]
        return first_line(result.reason if result.reason is not None else notes[0])


@dataclass(frozen=True)
class Array:
    """The paths of one pair and array, the fastest first."""

    paths: tuple[JudgedPath, ...]
    cases: Cases
    phrases: Mapping[str, str] = field(default_factory=dict)
    """What several paths do that break a rule, by the rule: ``wait for the work …``."""
    is_part: bool = False
    """Whether ``--path`` left out paths of the pair."""

    @cached_property
    def shared(self) -> tuple[str, ...]:
        """Return the rules that all measured paths break: tables say them once."""
        measured = [path for path in self.paths if path.is_measured]
        if len(measured) < FEWEST_SHARED:
            return ()
        return tuple(rule for rule in self.phrases if all(rule in path.rules for path in measured))

    @property
    def shared_lines(self) -> tuple[str, ...]:
        """Return ``All 27 paths return before they have read x: DLP020``, for each such rule."""
        count = sum(path.is_measured for path in self.paths)
        return tuple(f"All {count} paths {self.phrases[rule]}: {rule}" for rule in self.shared)

    def problems(self, path: JudgedPath) -> str:
        """Return the rules of a path that set it apart."""
        return " ".join(
            word for word in path.problems.split() if word.rstrip("?") not in self.shared
        )

    @property
    def name(self) -> tuple[str, ...]:
        producer, *_ = self.pair
        consumers = dict.fromkeys(path.case.pair[1] for path in self.paths)
        return (pair_text((producer, ", ".join(consumers))), *self.paths[0].array[1:])

    @property
    def is_comparison(self) -> bool:
        """Whether a user wrote the paths, to compare them."""
        return len(self.paths) > 1 and self.paths[0].case.result.case.is_statement

    @property
    def takes_many(self) -> bool:
        """Whether a call takes several arrays."""
        return any(path.case.result.case.arrays > 1 for path in self.paths)

    @property
    def pair(self) -> tuple[str, str]:
        """Return producer and consumer."""
        return self.paths[0].case.pair

    @property
    def pair_text(self) -> str:
        return self.name[0]

    @property
    def text(self) -> str:
        """Return dtype and shape, layout, size and device, without an unknown part."""
        _, shape, dtype, layout, device = self.name
        case = self.paths[0].case
        size = size_text(case.size_bytes) if case.size_bytes else ""
        array = f"{dtype} {shape}"
        if dtype == UNKNOWN:
            array = f"unknown dtype {shape}" if case.result.case.shape else "unknown array"
        if self.pair[0] in LIST and layout == UNKNOWN:
            array = f"{self.pair[0]} of objects"
        elif self.pair[0] in LIST:
            array, layout = list_text(shape, dtype, layout), UNKNOWN
        parts = [array, "" if layout == UNKNOWN else layout, size, device]
        return ", ".join(filter(None, parts))


def list_text(shape: str, dtype: str, layout: str) -> str:
    """Return ``64 arrays float32 64 by 64 in a list``, with a sign for "by"."""
    count, _, item = shape.partition(BY)
    plural = "" if count == "1" and not (item and layout == NESTED) else "s"
    if layout == NESTED:
        return f"{shape} number{plural} in {'nested lists' if item else 'a list'}"
    container, _, library = layout.partition(HOLDS)
    dtype = "" if dtype == UNKNOWN else f"{dtype} "
    kind = f"array{plural} {dtype}{item}" if item else f"{dtype}scalar{plural}"
    where = "a tuple" if container == "tuple" else "a list"
    return f"{count} {library} {kind} in {where}".replace("  ", " ")


def session_arrays(session: Session, known: Cases | None = None) -> list[Array]:
    """Return the arrays in the order of the session. Steps of inference are no conversions.

    ``known`` are the cases of the session, if the caller has them.
    """
    rules = rules_by_case(session.findings)
    path_findings = [record for record in session.findings if not record.subject]
    ranked = sorted(path_findings, key=severity_rank, reverse=True)
    worst = {index: record.severity for record in ranked for index in record.results}
    cases = known or cases_in(session.results)
    found: dict[tuple[Any, ...], list[JudgedPath]] = defaultdict(list)
    for case in cases.timed.cases:
        ids, offered = rules.get(case.index, ()), cases.offered(case)
        path = JudgedPath(case, cases.safety(case), ids, worst.get(case.index), offered)
        # A user's own statements are compared whatever they return.
        is_statement = case.result.case.is_statement
        found[case.spec if is_statement else case.array].append(path)
    phrases: dict[str, str] = {}
    for record in path_findings:
        phrases.setdefault(record.rule, deed(record))
    is_part = bool(session.request.globs)
    return [
        Array(tuple(sorted(paths, key=lambda path: path.place)), cases, phrases, is_part)
        for paths in found.values()
    ]


def deed(finding: FindingRecord) -> str:
    """Return what its paths do, without a condition: ``return before they finish reading x``."""
    return CONDITION.sub("", finding.said.partition(". ")[0].rstrip("."))


def rules_by_case(findings: Iterable[FindingRecord]) -> Mapping[int, tuple[str, ...]]:
    """Return the ids of the rules that name each case, worst first."""
    found: dict[int, dict[str, None]] = defaultdict(dict)
    for finding in sorted(findings, key=severity_rank):
        for index in finding.results if not finding.subject else ():
            found[index][finding.rule] = None
    return {index: tuple(ids) for index, ids in found.items()}


def severity_rank(finding: FindingRecord) -> int:
    return SEVERITIES.index(finding.severity)


def path_lines(paths: Iterable[JudgedPath]) -> list[list[JudgedPath]]:
    """Group paths with the same result and problems and about the same time, fastest first.

    The first of a line stands for it.

    Without times, what the call does about queued work takes the place of the time.
    """
    groups: dict[tuple[object, ...], list[list[JudgedPath]]] = defaultdict(list)
    for path in sorted(paths, key=lambda path: path.place):
        queued = "" if path.is_timed else queued_work(path)
        problems = path.problems or path.unknown_reason
        key = path.result_cell.text, problems, path.safety.level, path.offered, queued
        group = groups[key]
        if group and path.cost_ns <= NEAR * group[-1][0].cost_ns:
            group[-1].append(path)
        else:
            group.append([path])
    lines = [line for lines in groups.values() for line in lines]
    return sorted(lines, key=lambda line: line[0].place)


def queued_work(path: JudgedPath) -> str:
    """Return the order behind queued work: ``waits 45 ms of 45 ms``, ``ordered``, ``race``."""
    case, ordering = path.case, path.case.result.ordering
    if ordering is not None and ordering.evidence.upload_waits is not None:
        return "waits for the queue" if ordering.evidence.upload_waits else "no wait"
    words = {None: "", "synchronous": "", "stream-ordered": "ordered", "unordered": "race"}
    if case.waits_for is None:
        return words.get(case.order, case.order or "")
    race = "race, " if case.order == "unordered" else ""
    if case.loaded is not None:  # there are no times of a simulated device
        call, queue = map(plain_time, case.loaded)
        return f"{race}waits {f'for all {queue}' if case.waits_for_all else f'{call} of {queue}'}"
    return f"{race}waits for the {'device' if case.order == 'device-sync' else 'queue'}"


# The chart of a page


def paths_chart(arrays: Sequence[Array]) -> Chart | None:
    """Return the table of the timed paths of one array, each with its bar; None for several."""
    paths = [path for array in arrays for path in array.paths if path.is_timed]
    if len(arrays) != 1 or not paths:
        return None
    place, ticks = _scale(paths)
    rows = []
    for path in paths:
        problem = Cell(arrays[0].problems(path))
        cells = Cell(path.brief_time), path.result_cell, Cell(path.code, code=True), problem
        rows.append(ChartRow(path.code, (_point(path, place),), cells=cells))
    return Chart(
        tuple(rows),
        tuple((place(tick_ns), plain_time(tick_ns).replace(".0 ", " ")) for tick_ns in ticks),
        "Time until the result is ready, log scale. A bar is the 95 % interval of the median.",
        PATH_COLUMNS,
        arrays[0].shared_lines,
    )


def _point(path: JudgedPath, place: Scale) -> Mark:
    low_ns, high_ns = path.interval_ns
    parts = (path.code, plain_time(path.cost_ns), path.result, path.problems)
    return Mark(
        ", ".join(filter(None, parts)),
        place(low_ns),
        place(high_ns),
        path.worst or "plain",
        place(path.cost_ns),
    )


def _scale(paths: Sequence[JudgedPath]) -> tuple[Scale, list[float]]:
    """Return a log scale over all times, from 2 to 96 % of the width, and its ticks."""
    low = 0.9 * min(path.interval_ns[0] for path in paths)
    high = 1.1 * max(path.interval_ns[1] for path in paths)

    def place(ns: float) -> float:
        return 2 + 94 * math.log(ns / low) / math.log(high / low)

    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if high > 100 * low else (1, 3) if high > 10 * low else (1, 2, 5)
    ticks = [step * 10.0**decade for decade in decades for step in steps]
    ticks = [time for time in ticks if low <= time <= high]
    return place, ticks[:: max(math.ceil(len(ticks) / MOST_TICKS), 1)]
