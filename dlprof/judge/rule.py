"""Rules, one object per kind of problem, and what a finding says.

A finding says which paths do what, what it costs, and what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

from dlprof.judge.case_view import CaseView
from dlprof.judge.cases import Cases, Look, by
from dlprof.judge.safety import Fault
from dlprof.judge.script import Show
from dlprof.runner.axes import shape_text
from dlprof.runner.quantity import brief_text, plain_time
from dlprof.runner.session import FindingRecord, Result
from dlprof.runner.survey import label_of
from dlprof.text.clean import listed

LONGEST_CODE = 160
MOST_ADVICE = 6
MOST_ARRAYS = 3
NONE_INSTEAD = "No measured path is known to replace it."
DO_NOT_TRY = "Do not try the call to find out whether it works."


Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""Worst first: unsafe or wrong, slow for no reason, worth knowing."""

Severities = Mapping[Severity, str]
"""Severities with the condition of each, in words; an empty one is all that is left."""

BY_COST: Severities = MappingProxyType({"warning": "from 10 µs per call on", "info": ""})
"""Those of rules on speed."""

NAME_ONE = "name a rule or a severity"

Expect = Callable[[FindingRecord, Result], str]
"""Markdown: what should happen instead, with its source."""


def expect(text: str, source: str = "") -> Expect:
    """Expect ``text``; cite ``source`` only for conversions by DLPack."""

    def expected(_: FindingRecord, result: Result) -> str:
        is_dlpack = result.case.protocol in ("dlpack", "dlpack-capsule")
        return f"{text} {source if is_dlpack else ''}".strip()

    return expected


@dataclass(frozen=True)
class Rule:
    """The id never changes its meaning. The page of a rule is ``pages/{id}.md``."""

    id: str
    name: str
    severity: Severity | Severities
    """How severe its findings are; where they differ, :func:`finding` says it
    of each.
    """
    check: Callable[[Cases], Iterator[FindingRecord]]
    """What the rule finds: see :func:`finding`."""
    expected: Expect
    effect: Show
    """The script that reproduces a finding."""
    instrument: str = ""
    """The instrument that proves a finding, and without which there is none."""
    fault: Fault | None = None
    """How the rule makes a path unsafe; None if it does not."""
    changes: tuple[str, ...] = ()
    """The changes for the worse that it speaks of: verdicts of HEAD, or what is not a verdict, as
    :mod:`dlprof.compare.verdicts` names them.
    """
    times: bool = False
    """Whether it compares times, which takes several processes."""
    needs_times: bool = False
    """Whether it finds nothing where none were taken, as on a simulated device."""
    other_arrays: bool = False
    """Whether its reproducer needs arrays besides the one that a user's own setup makes."""

    @property
    def severities(self) -> tuple[Severity, ...]:
        """All that its findings may have."""
        return (self.severity,) if isinstance(self.severity, str) else tuple(self.severity)

    @property
    def severity_text(self) -> str:
        """``error``, or with conditions ``error where …, else warning``."""
        if isinstance(self.severity, str):
            return self.severity
        return ", ".join(
            f"{one} {when}" if when else f"else {one}" for one, when in self.severity.items()
        )

    def findings(self, cases: Cases) -> Iterator[FindingRecord]:
        for found in self.check(cases.timed if self.times else cases):
            severity = found.severity or self.severity
            named = {"rule": self.id, "name": self.name, "severity": severity}
            yield found.model_copy(update=named)


def severity_of(word: str) -> Severity:
    """Read a severity from a session; the mildest if it is unknown."""
    return next((one for one in SEVERITIES if one == word), "info")


def number(found: FindingRecord, name: str) -> float | None:
    """Return a number from a finding's evidence; None if it is not a number."""
    value = found.evidence.get(name)
    return value if isinstance(value, int | float) else None


def worst_first(findings: Iterable[FindingRecord]) -> list[FindingRecord]:
    """By severity, then by what it costs, then by rule and by the first case."""

    def rank(found: FindingRecord) -> tuple[int, float, str, list[int]]:
        cost = found.evidence.get("cost_ns", 0.0)
        return SEVERITIES.index(found.severity), -cost, found.rule, found.results

    return sorted(findings, key=rank)


def finding(  # noqa: PLR0913 - one keyword for each part
    cases: Sequence[CaseView],
    verb: tuple[str, str],
    does: str = "",
    numbers: str = "",
    *,
    evidence: Mapping[str, Any],
    brief: str = "",
    more: str = "",
    advice: str = "",
    against: CaseView | None = None,
    severity: Severity | None = None,
    look: Look | None = None,
    subject: str = "",
    is_named: bool = False,
) -> FindingRecord:
    """Build a finding of ``cases``, the clearest one first, before it has its rule's name.

    ``verb``, for one path and for several, and ``does`` say what the paths do, in at most 20 words.
    ``numbers`` ends that sentence; of several cases they are the first's. ``brief`` is a sentence
    that follows, and ``more`` follows in the summary only. ``evidence`` has units in its names;
    ``cost_ns`` is what the finding costs per call. ``advice`` names only paths that were measured.
    ``against`` is what the first case is compared with. ``severity`` is needed if those of the rule
    differ. ``look`` is that of :func:`groups`: it says in how many processes it was seen.
    ``subject`` is a call of the first case's source, made besides the case's own. ``is_named`` says
    that the headline names the first path, and does not only count.
    """
    first, count = cases[0], 1 if subject else count_paths(cases)
    others = {1: "", 2: " and 1 more path"}.get(count, f" and {count - 1:,} more paths")
    named = f"{subject} of {first.pair[0]}" if subject else f"{code(first)}{others}"
    counted = named if subject or is_named else f"{count:,} path{'s' * (count > 1)}"
    where = "" if subject else _among(cases)
    said = f"{verb[count > 1]} {does}".strip() + where
    told = f": {numbers}" if numbers else ""
    which = _which(cases) if numbers and not subject else ""
    how_often = first.how_often(*look) if look else ""
    briefly = " ".join(filter(None, (brief, how_often)))
    fully = " ".join(filter(None, (brief, more, how_often)))
    return FindingRecord(
        rule="",
        name="",
        severity=severity or "",
        results=[first.index] if subject else [case.index for case in cases],
        headline=f"{counted} {said}{told}. {briefly}".strip(),
        said=f"{said}."
        if subject
        else f"{verb[1]} {does}".strip() + f"{where}. {briefly}".rstrip(),
        summary=f"{named} {said}{told}{which}. {fully}".strip(),
        evidence={name: value for name, value in evidence.items() if value is not None},
        advice=advice,
        against=None if against is None else against.index,
        subject=subject,
    )


def count_paths(cases: Sequence[CaseView]) -> int:
    return len({case.result.case.way for case in cases})


def _among(cases: Sequence[CaseView]) -> str:
    """The small arrays of a survey, as `` (bool, int8)``; empty if a timed array shows it too."""
    if not all(case.surveyed for case in cases):
        return ""
    names = list(dict.fromkeys(label_of(case.result.case).name for case in cases))
    shown = listed(names) if len(names) <= MOST_ARRAYS else f"{len(names)} kinds of small arrays"
    return f" ({shown})"


def _which(cases: Sequence[CaseView]) -> str:
    """Which of several cases the numbers are of: `` (the first, a to b, 4x4 float32 C)``."""
    first = cases[0]
    told = ["the first"] if count_paths(cases) > 1 else []
    if len({case.pair for case in cases}) > 1:
        told.append(first.direction)
    if len({case.spec for case in cases}) > 1 or first.surveyed:
        shape, dtype, layout, _ = first.spec
        told.append(f"{shape_text(shape)} {dtype} {layout}")
    return f" ({', '.join(told)})" if told else ""


def code(case: CaseView) -> str:
    return case.code if len(case.code) <= LONGEST_CODE else f"{case.code[: LONGEST_CODE - 1]}…"


def time(case: CaseView) -> str:
    """Format a time: ``5.0 us``, or ``190 to 840 us`` where processes differ."""
    return plain_time(case.cost_ns) if case.ready is None else brief_text(case.ready)


def instead_of(case: CaseView, other: CaseView, what: str) -> str:
    """``f(x) is a view: 74 us instead of 400 us.``

    A time is left out if it may be that of other programs, or of a framework that keeps its
    result with the array.
    """
    found = f"{code(other)} {what}"
    if not other.is_known or (other.is_cached and other.kind == "copy"):
        return f"{found}."
    return f"{found}: {time(other)}{f' instead of {time(case)}' * case.is_known}."


def for_each_producer(cases: Sequence[CaseView], advise: Callable[[CaseView], str]) -> str:
    """The advice for the first case of each producer, told apart where it differs."""
    firsts = [found[0] for found in by(cases, lambda case: case.pair[0]).values()]
    told = by(firsts, advise)
    if len(told) == 1:
        return next(iter(told))
    return " ".join(
        f"From {', '.join(case.pair[0] for case in found)}: {text}"
        for text, found in [*told.items()][:MOST_ADVICE]
        if text
    )


def replacements(
    cases: Cases,
    found: Sequence[CaseView],
    does: str,
    fits: Callable[[CaseView], bool] = lambda _: True,
    none: str = "",
) -> str:
    """``f(x) keeps the dtype.``: for each producer what stands for its first case, or ``none``."""

    def advise(case: CaseView) -> str:
        other = cases.replacement(case, fits)
        return none if other is None else f"{code(other)} {does}."

    return for_each_producer(found, advise)


def or_a_copy(cases: Cases, case: CaseView, advice: str) -> str:
    """``advice``, with a measured path that gives a safe copy of the array, if there is one."""
    copies = filter(cases.copies, filter(cases.may_be_advised, cases.arrays[case.array]))
    best = min(copies, key=lambda other: other.cost_ns, default=None)
    return advice if best is None else f"{advice} Or: {code(best)} copies it."
