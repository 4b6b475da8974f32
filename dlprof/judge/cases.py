"""The cases of a session together: comparable cases, safety, and paths to advise."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from dlprof.judge import thresholds
from dlprof.judge.case_view import WORDS, CaseView, all_looks, is_too_fast_to_copy
from dlprof.judge.safety import (
    Fault,
    Level,
    Safety,
    has_gap,
    is_open,
    is_unchecked,
    is_unknown_kind,
    is_unmeasured,
)
from dlprof.probes.base import CONTIGUOUS, Protocol
from dlprof.runner.evidence import Alignment, Verdict
from dlprof.runner.session import Result, grouped

NO_COPY = re.compile(r"\bcopy\s*=\s*False\b")
"""The keyword of the array API standard."""

Look = tuple[str, str]
"""An instrument, and a verdict that some processes may have."""


def by_size(case: CaseView) -> tuple[bool, float]:
    """Rank cases with times before those of a survey, and the smallest array first."""
    return not case.surveyed, -(case.size_bytes or math.inf)


class PathFacts(NamedTuple):
    """Facts on a path at all its shapes. The diagnosis looks at the first shape only."""

    broken: frozenset[str]
    conditions: frozenset[str]
    is_doubtful: bool
    is_written: bool
    """Whether an instrument wrote to the source right after a copy, or found it immutable."""
    outlasts: bool
    """Whether its lifetime was looked at, and is safe."""
    is_open: bool
    """Whether the diagnosis left something open at every shape."""


@dataclass(frozen=True)
class Cases:
    """All cases of a session. ``faults`` are those of the rules, by their ids."""

    cases: tuple[CaseView, ...]
    faults: Mapping[str, Fault]

    @cached_property
    def timed(self) -> Cases:
        """The cases with times: all except the survey."""
        timed = tuple(case for case in self.cases if not case.surveyed)
        return self if len(timed) == len(self.cases) else replace(self, cases=timed)

    @cached_property
    def arrays(self) -> dict[tuple[Any, ...], list[CaseView]]:
        """The cases of each pair and array."""
        return grouped(self.cases, lambda case: case.array)

    def groups(
        self,
        cause: Callable[[CaseView], Hashable],
        rank: Callable[[CaseView], Any] = by_size,
        look: Look | None = None,
    ) -> Iterator[list[CaseView]]:
        """Yield the cases of each cause, which are one finding, by falling rank.

        Cases whose cause is false are left out. With a ``look``, cases are grouped also by the
        number of processes that saw it.
        """
        groups = grouped(
            (case for case in self.cases if cause(case)),
            lambda case: (cause(case), case.how_often(*look) if look else ""),
        )
        for group in groups.values():
            yield sorted(group, key=rank, reverse=True)

    @cached_property
    def _paths(self) -> dict[tuple[str, ...], PathFacts]:
        paths = grouped(self.cases, lambda case: case.path)
        return {path: self._facts(cases) for path, cases in paths.items()}

    def _facts(self, cases: Sequence[CaseView]) -> PathFacts:
        rules = {rule for rule, fault in self.faults.items() if any(map(fault.is_in, cases))}
        broken = {rule for rule in rules if any(self.breaks(case, rule) for case in cases)}
        # The diagnosis looks at one shape, which stands for the others.
        ok = [case for case in cases if case.result.status == "ok"]
        diagnosed = [case for case in ok if case.result.lifetime is not None]
        lifetimes = [case.result.lifetime for case in cases]
        return PathFacts(
            broken=frozenset(broken),
            conditions=frozenset(rules),
            is_doubtful=any(
                look is not None and look.saw("unknown")
                for case in cases
                for look in (case.result.lifetime, case.result.ordering)
            ),
            is_written=any(map(_is_written, cases)),
            outlasts=any(look is not None and look.verdict == "safe" for look in lifetimes),
            is_open=bool(ok) and all(map(is_open, diagnosed or ok)),
        )

    @cached_property
    def _torn(self) -> set[tuple[Hashable, ...]]:
        return {(*_copier(case), case.is_synchronous) for case in self.cases if case.is_torn}

    @cached_property
    def _looks(self) -> dict[Hashable, list[tuple[str, float | None]]]:
        """By path, at all shapes: views, copies and refusals, with the source's alignment."""
        found: dict[Hashable, list[tuple[str, float | None]]] = defaultdict(list)
        for case in self.cases:
            looks = found[_path(case)]
            for word, evidence in case.kinds:
                if word in WORDS:
                    looks += [(word, size) for size in evidence.alignments or (None,)]
            alignment = case.result.alignment
            if alignment is not None:
                for _, look in alignment.evidence.places:
                    if look.verdict in WORDS or alignment.says("dependent"):
                        looks.append((str(look.verdict), look.alignment_bytes))
        return found

    @cached_property
    def _sources(self) -> dict[Hashable, set[float]]:
        found: dict[Hashable, set[float]] = defaultdict(set)
        for case in self.cases:
            for word, evidence in case.kinds:
                if word in WORDS:
                    found[_source(case)].update(map(capped, evidence.alignments))
        return found

    @cached_property
    def _sound(self) -> dict[tuple[Any, ...], list[CaseView]]:
        """Cases of each array that may be advised if the result is waited for, as a report's first
        lines rank them: safe, with a certain time, cheapest.
        """

        def rank(case: CaseView) -> tuple[bool, bool, float]:
            is_disturbed = case.ready is not None and case.ready.is_disturbed
            return self.safety(case).level == "right", is_disturbed, case.cost_ns

        return grouped(
            sorted(filter(self._is_sound, self.cases), key=rank), lambda case: case.array
        )

    def safety(self, case: CaseView) -> Safety:
        """Decide whether the case is safe: the only place that does."""
        facts = self._paths[case.path]
        broken = facts.broken
        late = self._ends_with_wait
        suspected = () if broken & late or not self.may_tear(case) else tuple(sorted(late))
        conditions = tuple(sorted(facts.conditions - broken))
        against = broken | {*suspected}
        level = self._level(case, bool(against))
        needs_wait = level == "unsafe" and against <= late
        return Safety(level, tuple(sorted(broken)), suspected, conditions, needs_wait)

    def _level(self, case: CaseView, is_unsafe: bool) -> Level:
        if case.result.status == "ok" and is_unsafe:
            return "unsafe"
        if is_unmeasured(case):
            return "unmeasured"
        if is_unchecked(case):
            return "unchecked"
        facts = self._paths[case.path]
        is_empty = 0 in case.result.case.shape  # an empty array shares nothing
        # A call of a consumer that has nothing to wait for ends with a whole copy.
        is_late = case.kind == "copy" and not case.is_synchronous
        if (
            facts.is_open
            or has_gap(case, "values")
            or (not is_empty and is_unknown_kind(case))
            or (is_late and not facts.is_written)
        ):
            return "right"
        return "safe"

    def may_be_advised(self, case: CaseView) -> bool:
        """Whether the case may be advised: a view or a copy, right, without a known hazard.

        An unknown lifetime or ordering forbids it; a run without diagnosis does not.
        """
        return self._is_sound(case) and not self.may_tear(case)

    def _is_sound(self, case: CaseView) -> bool:
        safety = self.safety(case)
        is_right = safety.needs_wait and case.is_right and case.is_measured
        is_trusted = safety.level in ("safe", "right") or is_right
        return is_trusted and case.kind in WORDS and not self._paths[case.path].is_doubtful

    def may_tear(self, case: CaseView) -> bool:
        """Whether it copies like a path with a torn copy: one whole copy does not disprove that.

        A call of a consumer that has nothing to wait for ends with a whole copy, unless such a
        copy was seen torn. A view here may be a copy where the source begins elsewhere.
        """
        if self._paths[case.path].broken & self._ends_with_wait:
            return True
        if case.kind == "view" and not case.copies_elsewhere:
            return False
        return any((*_copier(case), ends) in self._torn for ends in (True, case.is_synchronous))

    def outlasts(self, case: CaseView) -> bool:
        """Whether its result outlives its source and leaves nothing behind."""
        return self._paths[case.path].outlasts

    def waiting_helps(self, case: CaseView) -> bool:
        """Whether the case is safe after a wait for its result."""
        return self.safety(case).needs_wait and not self._paths[case.path].is_doubtful

    def copies(self, case: CaseView) -> bool:
        """Whether it copies all at any address, and its code does not forbid that."""
        is_forbidden = case.promise == "view" or NO_COPY.search(case.code) is not None
        is_copy = case.kind == "copy" and not is_forbidden and self.is_constant(case)
        return is_copy and (case.is_cached_copy or not is_too_fast_to_copy(case))

    def offered(self, case: CaseView) -> str:
        """Return ``view`` or ``copy``, the kind to offer it as; empty if it is neither for sure."""
        if self.copies(case):
            return "copy"
        return "view" if case.outcome == "view" else ""

    def is_constant(self, case: CaseView) -> bool:
        """Whether the path gives the same kind at any shape and alignment of its source.

        A copy of a source at 64 bytes counts as a copy at 16, and a view at 16 as a view at 64.
        If alignments are not known, it counts as constant.
        """
        looks = self._looks[_path(case)]
        if any(word != case.kind for word, _ in looks):
            return False
        known = [capped(size) for _, size in looks if size is not None]
        begins = self._sources[_source(case)]
        if not known or not begins:
            return True
        return max(known) >= max(begins) if case.kind == "copy" else min(known) <= min(begins)

    def scope_text(self, case: CaseView) -> str:
        """Return `` for this array`` if the path is another kind for other arrays."""
        return "" if self.is_constant(case) else " for this array"

    def breaks(self, case: CaseView, rule: str) -> bool:
        """Whether the case has the rule's fault, and another case avoids it if the rule asks so."""
        fault = self.faults[rule]
        if not fault.is_in(case):
            return False
        return fault.is_avoided is None or any(map(fault.is_avoided, self.arrays[case.array]))

    @cached_property
    def _ends_with_wait(self) -> frozenset[str]:
        return frozenset(rule for rule, fault in self.faults.items() if fault.ends_with_wait)

    def replacement(
        self,
        case: CaseView,
        fits: Callable[[CaseView], bool] = lambda _: True,
    ) -> CaseView | None:
        """Return the cheapest safe case that can replace ``case`` and ``fits``.

        A documented copy is replaced by a documented copy, wherever the source begins; a view by
        a view.
        """
        candidates = (
            other
            for other in self._sound.get(case.array, ())
            if other is not case
            and not self.may_tear(other)
            and serves(other, case)
            and (case.promise != "copy" or self.copies(other))
            and fits(other)
        )
        return next(candidates, None)

    def late_copy(self, case: CaseView) -> CaseView | None:
        """Return the cheapest copy that can replace ``case`` after a wait for its result."""
        copies = filter(self.copies, filter(self.waiting_helps, self._sound.get(case.array, ())))
        return next((other for other in copies if serves(other, case)), None)


def _is_written(case: CaseView) -> bool:
    """Whether a look at early writes holds for copies. Looks at views say nothing of copies."""
    return any(
        word in ("safe", "unsafe") or "immutable" in (evidence.sizes_bytes or {}).values()
        for word, evidence in all_looks(case.result.early_write)
    )


def _copier(case: CaseView) -> tuple[Hashable, ...]:
    asks = re.search(r"\w*blocking=\w+", case.code)
    devices = case.result.case.device, case.result_device
    return case.pair[1], *devices, case.bounces, asks and asks[0]


def _source(case: CaseView) -> Hashable:
    return case.pair[0], case.result.case.device


def _path(case: CaseView) -> Hashable:
    """Return the path at all shapes; contiguous layouts differ only in alignment."""
    record = case.result.case
    layout = CONTIGUOUS[0] if is_contiguous(case) else record.layout
    return (*case.pair, record.export, record.import_, record.dtype, layout, record.device)


def is_contiguous(case: CaseView) -> bool:
    return case.result.case.layout in CONTIGUOUS


def capped(alignment: float) -> float:
    """Return an alignment of at most a cache line, in bytes. More is an accident."""
    return min(alignment, thresholds.ALIGNED_BYTES)


def serves(other: CaseView, case: CaseView) -> bool:
    """Whether the result of ``other`` can replace the result of ``case``."""
    if case.kind is None:  # it never came back
        return case.promise != "copy" or other.kind == other.promise == "copy"
    if case.result_device is None or other.result_device != case.result_device:
        return False
    if case.promise == "copy":
        return other.kind == other.promise == "copy"
    return other.kind == "view" or case.kind == "copy" or case.is_wrong


def views(results: Iterable[Result]) -> Iterator[CaseView]:
    """Yield the cases, with the verdict of *alignment* at the first shape of their path.

    Steps of inference are no conversions: they are left out.
    """
    known = [item for item in enumerate(results) if item[1].case.protocol != Protocol.STEP]
    looks = alignments(result for _, result in known)
    for index, result in known:
        look = None if result.case.survey else looks.get(result.case.conversion)
        yield CaseView(index, result, result.alignment or look)


def coverage(results: Iterable[Result]) -> str:
    """Return ``looked at 212 of 240 (28 refused)``: the conversions that gave a result."""
    conversions = [result for result in results if result.case.protocol != Protocol.STEP]
    failures = Counter(
        CaseView(0, result).failure
        or ("not made" if result.refused_at == "create" else result.status)
        for result in conversions
        if result.status != "ok"
    )
    words = ", ".join(f"{count:,} {word}" for word, count in failures.items())
    text = f"looked at {len(conversions) - failures.total():,} of {len(conversions):,}"
    return f"{text} ({words})" if words else text


def alignments(results: Iterable[Result]) -> dict[tuple[str, ...], Verdict[Alignment]]:
    """Return the verdict of *alignment* on each conversion, at its first shape."""
    found: dict[tuple[str, ...], Verdict[Alignment]] = {}
    for result in results:
        if result.alignment is not None:
            found.setdefault(result.case.conversion, result.alignment)
    return found
