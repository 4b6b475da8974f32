"""The cases of a session side by side: which can be compared, and which can be advised."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from dlprof.judge.alignment import Steady
from dlprof.judge.case_view import CaseView, seen
from dlprof.judge.safety import (
    Fault,
    Level,
    Safety,
    gap,
    not_looked_at,
    unchecked,
    unknown_kind,
    unmeasured,
)
from dlprof.judge.slower import is_too_fast_to_copy
from dlprof.probes.base import Protocol
from dlprof.runner.evidence import Alignment, Verdict
from dlprof.runner.session import FindingRecord, Result

NO_COPY = re.compile(r"\bcopy\s*=\s*False\b")
"""As the array API standard writes it."""

Thing = TypeVar("Thing")
Key = TypeVar("Key", bound=Hashable)


class PathFacts(NamedTuple):
    """What was seen of a path at any of its shapes: the diagnosis looks at the first only."""

    broken: frozenset[str]
    conditions: frozenset[str]
    is_doubtful: bool
    is_written: bool
    """Whether an instrument wrote to the source of a copy right after the call, or found that
    nothing can."""
    outlasts: bool
    """Whether all of a look at its lifetime was taken, and found nothing."""
    not_looked_at: str
    """What the diagnosis left open at every shape, in words."""


@dataclass(frozen=True)
class Cases:
    """All cases of a session; with its findings, if they are known by then.

    ``faults`` are those of the rules, by their ids.
    """

    cases: tuple[CaseView, ...]
    faults: Mapping[str, Fault]
    findings: tuple[FindingRecord, ...] = ()

    @cached_property
    def timed(self) -> Cases:
        """The cases with times: all but those of the survey."""
        timed = tuple(case for case in self.cases if not case.surveyed)
        return self if len(timed) == len(self.cases) else replace(self, cases=timed)

    def looked_at(self, instrument: str) -> Sequence[CaseView]:
        """The cases of which an instrument says something."""
        return [case for case in self.cases if getattr(case.result, instrument)]

    @cached_property
    def arrays(self) -> dict[tuple[Any, ...], list[CaseView]]:
        """The cases of each pair and array."""
        return by(self.cases, lambda case: case.array)

    def with_findings(self, findings: Iterable[FindingRecord]) -> Cases:
        """The same cases with the findings of their session."""
        return replace(self, findings=tuple(findings))

    @cached_property
    def _paths(self) -> dict[tuple[str, ...], PathFacts]:
        errors: dict[int, set[str]] = defaultdict(set)
        for finding in self.findings:
            for index in finding.results if finding.severity == "error" else ():
                errors[index].add(finding.rule)
        paths = by(self.cases, lambda case: case.path)
        found = {path: self._facts(cases) for path, cases in paths.items()}
        for case in self.cases:
            if case.index in errors:
                known = found[case.path]
                found[case.path] = known._replace(broken=known.broken | errors[case.index])
        return found

    def _facts(self, cases: Sequence[CaseView]) -> PathFacts:
        found = {rule for rule, one in self.faults.items() if any(map(one.is_in, cases))}
        broken = {rule for rule in found if any(self.breaks(case, rule) for case in cases)}
        # The shape that was diagnosed tells of the path; of the others it is told by design.
        ok = [case for case in cases if case.result.status == "ok"]
        diagnosed = [case for case in ok if case.result.lifetime is not None]
        unseen = [not_looked_at(case) for case in diagnosed or ok]
        lifetimes = [case.result.lifetime for case in cases]
        return PathFacts(
            broken=frozenset(broken),
            conditions=frozenset(found),
            is_doubtful=any(
                look is not None and look.saw("unknown")
                for case in cases
                for look in (case.result.lifetime, case.result.ordering)
            ),
            is_written=any(map(_is_written, cases)),
            outlasts=any(one is not None and one.verdict == "safe" for one in lifetimes),
            not_looked_at=unseen[-1] if unseen and all(unseen) else "",
        )

    @cached_property
    def _torn(self) -> set[tuple[str, str, bool]]:
        """The consumer and device of each torn copy, and whether its call ends with the copy."""
        torn = (case for case in self.looked_at("early_write") if case.is_torn)
        return {(case.pair[1], case.result.case.device, case.is_synchronous) for case in torn}

    @cached_property
    def _steady(self) -> Steady:
        return Steady(self.cases)

    @cached_property
    def _sound(self) -> dict[tuple[Any, ...], list[CaseView]]:
        """The cases that may be advised if a result is waited for, the cheapest first."""
        return by(
            sorted(filter(self._is_sound, self.cases), key=lambda case: case.cost_ns),
            lambda case: case.array,
        )

    def safety(self, case: CaseView) -> Safety:
        """Decide whether the case is safe: the only place that does."""
        facts = self._paths[case.path]
        broken = facts.broken
        late = self._ends_with_wait
        suspected = () if broken & late or not self.may_tear(case) else tuple(sorted(late))
        conditions = tuple(sorted(facts.conditions - broken))
        against = broken | {*suspected}
        level, unknown = self._level(case, bool(against))
        needs_wait = level == "unsafe" and against <= late
        return Safety(level, tuple(sorted(broken)), suspected, unknown, conditions, needs_wait)

    def _level(self, case: CaseView, is_unsafe: bool) -> tuple[Level, str]:
        if case.result.status != "ok":
            return "unmeasured", unmeasured(case)
        if is_unsafe:
            return "unsafe", ""
        if missing := unmeasured(case):
            return "unmeasured", missing
        if missing := unchecked(case):
            return "unchecked", missing
        missing = self._paths[case.path].not_looked_at or gap(case, "values")
        if not missing and 0 not in case.result.case.shape:  # what is empty shares nothing
            missing = unknown_kind(case)
        # A call of a consumer that has nothing to wait for ends with a whole copy.
        is_late = case.kind == "copy" and not case.is_synchronous
        if not missing and is_late and not self._paths[case.path].is_written:
            missing = "whether it still reads its source"
        return ("right", missing) if missing else ("safe", "")

    def may_be_advised(self, case: CaseView) -> bool:
        """Whether the case may be advised: a view or a copy, right, and no hazard is known.

        What the diagnosis could not tell keeps a case from being advised. Without a diagnosis,
        what is right is advised: nothing better is known.
        """
        return self._is_sound(case) and not self.may_tear(case)

    def _is_sound(self, case: CaseView) -> bool:
        """Whether the case may be advised if its result is waited for."""
        safety = self.safety(case)
        return (
            (safety.is_trusted or (safety.needs_wait and case.is_right and case.is_measured))
            and case.kind in ("view", "copy")
            and not self._paths[case.path].is_doubtful
        )

    def may_tear(self, case: CaseView) -> bool:
        """Whether it copies as what was seen torn does: that this one was whole proves nothing.

        A call of a consumer that has nothing to wait for ends with a whole copy, unless such a
        copy was seen torn. A view here may be a copy where the source begins elsewhere.
        """
        if self._paths[case.path].broken & self._ends_with_wait:
            return True
        if case.kind == "view" and not case.copies_elsewhere:
            return False
        consumer = case.pair[1], case.result.case.device
        return any((*consumer, ends) in self._torn for ends in (True, case.is_synchronous))

    def outlasts(self, case: CaseView) -> bool:
        """Whether its result was seen to outlive its source, and to leave nothing behind."""
        return self._paths[case.path].outlasts

    def waiting_helps(self, case: CaseView) -> bool:
        """Whether nothing is known against the case but that it may be torn."""
        return self.safety(case).needs_wait and not self._paths[case.path].is_doubtful

    def copies(self, case: CaseView) -> bool:
        """Whether it copies all wherever the source begins, and its code does not forbid that."""
        is_forbidden = case.promise == "view" or NO_COPY.search(case.code) is not None
        is_copy = case.kind == "copy" and not is_forbidden and self.is_constant(case)
        return is_copy and (case.is_cached_copy or not is_too_fast_to_copy(case))

    def offered(self, case: CaseView) -> str:
        """The kind as which it may be offered; empty if it is neither a view nor such a copy."""
        if self.copies(case):
            return "copy"
        return "view" if case.outcome == "view" else ""

    def is_constant(self, case: CaseView) -> bool:
        """Whether it is a view, or a copy, at every alignment that was measured of its source."""
        return self._steady.is_constant(case)

    def where(self, case: CaseView) -> str:
        """Return `` for this array`` if the path is something else of other arrays."""
        return "" if self.is_constant(case) else " for this array"

    def breaks(self, case: CaseView, rule: str) -> bool:
        """Whether the case has the rule's fault, and had a choice where that takes one."""
        return self.faults[rule].is_in(case) and (
            rule not in self._avoided or case.array in self._avoided[rule]
        )

    @cached_property
    def _avoided(self) -> dict[str, set[tuple[Any, ...]]]:
        """By rule: the arrays of which a case does without its fault."""
        return {
            rule: {case.array for case in self.cases if fault.is_avoided(case)}
            for rule, fault in self.faults.items()
            if fault.is_avoided is not None
        }

    @cached_property
    def _ends_with_wait(self) -> frozenset[str]:
        return frozenset(rule for rule, fault in self.faults.items() if fault.ends_with_wait)

    def replacement(
        self,
        case: CaseView,
        fits: Callable[[CaseView], bool] = lambda _: True,
    ) -> CaseView | None:
        """The cheapest safe case that gives what ``case`` gives, and that ``fits``.

        What is documented to copy is replaced by what is documented to copy, wherever the source
        begins; a view by a view. A copy that may be torn, for which nothing safe stands, is
        replaced by a view whose copies of other memory may be torn: nothing is lost by that.
        """
        return next((other for other in self._fitting(case, fits) if other is not case), None)

    def waited(self, case: CaseView) -> CaseView | None:
        """The cheapest copy that may stand for ``case`` if its result is waited for."""
        copies = filter(self.copies, filter(self.waiting_helps, self._sound.get(case.array, ())))
        return next((other for other in copies if serves(other, case)), None)

    def _fitting(self, case: CaseView, fits: Callable[[CaseView], bool]) -> Iterator[CaseView]:
        """What can replace ``case`` and its like, the best first; it may be among them."""
        for other in self._sound.get(case.array, ()):
            if (
                not self.may_tear(other)
                and serves(other, case)
                and (case.promise != "copy" or self.copies(other))
                and fits(other)
            ):
                yield other


def _is_written(case: CaseView) -> bool:
    """A view tells nothing of the copies of another shape."""
    return any(
        word in ("safe", "unsafe") or "immutable" in (evidence.sizes_bytes or {}).values()
        for word, evidence in seen(case.result.early_write)
    )


def serves(other: CaseView, case: CaseView) -> bool:
    """Whether the result of ``other`` can stand for that of ``case``."""
    if case.kind is None:  # it never came back: anything of its kind will do
        return case.promise != "copy" or other.kind == other.promise == "copy"
    if case.result_device is None or other.result_device != case.result_device:
        return False
    if case.promise == "copy":
        return other.kind == other.promise == "copy"
    return other.kind == "view" or case.kind == "copy" or case.is_wrong


def views(results: Iterable[Result]) -> Iterator[CaseView]:
    """The cases with what the instrument *alignment* saw at the first shape of their path."""
    known = [one for one in enumerate(results) if one[1].case.protocol != Protocol.STEP]
    looks = alignments(result for _, result in known)
    for index, result in known:
        of_path = None if result.case.survey else looks.get(result.case.conversion)
        yield CaseView(index, result, result.alignment or of_path)


def coverage(results: Iterable[Result]) -> str:
    """``looked at 212 of 240 (28 refused)``: how many conversions gave a result."""
    tried = [one for one in results if one.case.protocol != Protocol.STEP]
    lost = Counter(CaseView(0, one).failure or one.status for one in tried if one.status != "ok")
    told = ", ".join(f"{count:,} {word}" for word, count in lost.items())
    looked_at = f"looked at {len(tried) - lost.total():,} of {len(tried):,}"
    return f"{looked_at} ({told})" if told else looked_at


def alignments(results: Iterable[Result]) -> dict[tuple[str, ...], Verdict[Alignment]]:
    """What the instrument *alignment* saw of each conversion, at the first shape."""
    found: dict[tuple[str, ...], Verdict[Alignment]] = {}
    for result in results:
        if result.alignment is not None:
            found.setdefault(result.case.conversion, result.alignment)
    return found


def by(things: Iterable[Thing], key: Callable[[Thing], Key]) -> dict[Key, list[Thing]]:
    """The things of each key, in their order."""
    found: dict[Key, list[Thing]] = defaultdict(list)
    for thing in things:
        found[key(thing)].append(thing)
    return dict(found)


Look = tuple[str, str]
"""An instrument, and a word that processes may have seen it say."""


def groups(
    cases: Iterable[CaseView],
    cause: Callable[[CaseView], Hashable],
    rank: Callable[[CaseView], Any] = lambda _: 0,
    look: Look | None = None,
) -> list[list[CaseView]]:
    """The cases of each cause, which are one finding; the clearest, of the highest rank, first.

    With a ``look``, those that were seen in as many processes.
    """
    found = by(cases, lambda case: (cause(case), case.how_often(*look) if look else ""))
    return [sorted(alike, key=rank, reverse=True) for alike in found.values()]
