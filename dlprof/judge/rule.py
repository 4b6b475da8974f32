"""A rule: one object that holds all that is known of a problem."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from dlprof.judge.case_view import CaseView
from dlprof.judge.cases import Cases
from dlprof.judge.safety import Fault
from dlprof.judge.script import Show
from dlprof.probes.base import Protocol
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner.axes import NO_TIMES
from dlprof.runner.evidence import Verdict
from dlprof.runner.session import FindingRecord, Result
from dlprof.text.clean import first_line

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""Worst first: wrong or unsafe; slow for no reason; worth knowing."""

Severities = Mapping[Severity, str]
"""Severities with the condition of each, in words; an empty one is all that is left."""

BY_COST: Severities = MappingProxyType({"warning": "from 10 µs per call on", "info": ""})
"""Those of rules on speed."""

NAME_ONE = "name a rule or a severity"
NO_CONVERSION = "a conversion: rules say nothing of steps"

Expect = Callable[[FindingRecord, Result], str]
"""Markdown: what is expected of a case of a finding instead, with the source of that."""


def expect(text: str, source: str = "") -> Expect:
    """The expectation ``text``, with a source that holds where DLPack hands arrays over."""

    def expected(_: FindingRecord, result: Result) -> str:
        is_dlpack = result.case.protocol in ("dlpack", "dlpack-capsule")
        return f"{text} {source if is_dlpack else ''}".strip()

    return expected


Tells = Callable[[Verdict[Any]], bool]
"""Whether a verdict answers the question of a rule."""


def is_known(verdict: Verdict[Any]) -> bool:
    """Whether an instrument could tell, or had nothing to look at, such as copies of a view."""
    return verdict.is_known


def could_tell(result: Result, instrument: str, tells: Tells = is_known) -> bool:
    verdict = getattr(result, instrument)
    return verdict is not None and tells(verdict)


class Unknown(NamedTuple):
    """Of how many ``conversions`` it is unknown whether they break a rule, of how many that it
    could look at; and why, each reason once.
    """

    conversions: int
    of: int
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        """``unknown for 2 of 9 conversions (it crashed, and 1 more reason)``."""
        first, *others = self.reasons
        more = f", and {len(others)} more reason{'s' * (len(others) > 1)}" if others else ""
        return f"unknown for {self.conversions:,} of {self.of:,} conversions ({first}{more})"


IF_ASKED = ("refusal", "settings")
"""Instruments that look at some conversions by design: at those that are refused, or in a survey
at those of which most is asked.
"""


def why_untold(result: Result, instrument: str, tells: Tells) -> str:
    """Why an instrument could not tell, in words; empty where it could."""
    verdict = getattr(result, instrument)
    if verdict is not None:
        return "" if tells(verdict) else first_line(verdict.evidence.reason) or "unknown"
    reasons = {note.instrument: note.reason for note in result.notes}
    found = reasons.get(instrument) or reasons.get("diagnosis") or result.reason
    return first_line(found) if found else "not looked at"


@dataclass(frozen=True)
class Rule:
    """The id never changes its meaning. The page of a rule is ``pages/{id}.md``."""

    id: str
    name: str
    severity: Severity | Severities
    """How severe its findings are; where they differ, :func:`dlprof.judge.finding.finding` says it
    of each.
    """
    check: Callable[[Cases], Iterator[FindingRecord]]
    """What the rule finds: see :func:`dlprof.judge.finding.finding`."""
    expected: Expect
    effect: Show
    """What the reproducer of a finding shows."""
    instrument: str = ""
    """The instrument that proves a finding, and without which there is none."""
    fault: Fault | None = None
    """How it makes a path unsafe, if it does."""
    changes: tuple[str, ...] = ()
    """The changes for the worse that it speaks of: verdicts of HEAD, or what is not a verdict, as
    :mod:`dlprof.compare.verdicts` names them.
    """
    is_avoided: Callable[[CaseView], bool] = lambda _: False
    """Whether such a case shows that another one has a choice, and so the worst severity."""
    lacks: Callable[[Sequence[Result]], str] = lambda _: ""
    """What else it needs that none of these results has, in words; empty where it could look."""
    times: bool = False
    """Whether it compares times, which takes several processes."""
    needs_times: bool = False
    """Whether it finds nothing where none were taken, as on a simulated device."""
    other_arrays: bool = False
    """Whether its reproducer puts another array or object in the place of ``x``."""
    of_views: bool = False
    """Whether its claim depends on what is a view, and so on where arrays begin."""
    made_again: bool = False
    """Whether its reproducer makes the source several times."""
    tells: Tells = is_known
    """Whether a verdict of the instrument is an answer."""
    needs: str = ""
    """In words: what a conversion must have to break it, such as ``a read-only array``."""
    has_need: Callable[[CaseView], bool] = lambda _: True
    """Whether a conversion has what the rule ``needs``."""
    untold: Callable[[CaseView], str] = lambda _: ""
    """Why it cannot tell of a conversion although its instrument answered, in words."""

    def lack(self, results: Sequence[Result]) -> str:
        """What it needs that none of these results has, in words; empty where it could look."""
        conversions = [result for result in results if result.case.protocol != Protocol.STEP]
        if results and not conversions:
            return NO_CONVERSION
        known = (could_tell(result, self.instrument, self.tells) for result in conversions)
        if self.needs:
            fit = [result for result in conversions if self._has_need(result)]
            reasons = [self._why_untold(result) for result in fit]
            return self.needs if not fit else reasons[0] if all(reasons) else ""
        if self.instrument and not any(known):
            name = self.instrument.replace("_", " ")
            return f"{name} (see --diagnose)" if self.instrument in DIAGNOSIS else name
        if self.needs_times and conversions and all(one.ready_time is None for one in conversions):
            return NO_TIMES if all(one.untimed for one in conversions) else "times"
        return self.lacks(conversions)

    def _has_need(self, result: Result) -> bool:
        """Whether a conversion, which was tried, could break it."""
        case = CaseView(0, result)
        is_tried = result.status != "unsupported" or case.failure == "refused"
        return is_tried and self.has_need(case)

    def _why_untold(self, result: Result) -> str:
        """Why it cannot tell of a conversion, in words; empty where it can."""
        is_kept = bool(self.needs) and result.status == "unsupported"  # a refusal breaks nothing
        if self.instrument and not is_kept:
            why = why_untold(result, self.instrument, self.tells)
            if why:
                return why
        return self.untold(CaseView(0, result))

    def _is_asked(self, result: Result) -> bool:
        """Whether its instrument looks at such a result by design."""
        if self.needs:
            return self._has_need(result)
        if self.instrument in IF_ASKED:
            return getattr(result, self.instrument) is not None
        is_refused = result.status == "unsupported" and not result.is_of_faulty_probe
        return not is_refused and not (self.instrument in DIAGNOSIS and result.case.survey)

    def unknown(self, results: Sequence[Result]) -> Unknown:
        """Of how many conversions it could not tell. What has no elements does not count. The
        diagnosis looks at one shape of each.
        """
        looks: dict[object, list[str]] = defaultdict(list)
        once = self.instrument in DIAGNOSIS
        for result in results if self.instrument or self.needs else ():
            case = result.case
            if case.protocol == Protocol.STEP or 0 in case.shape:
                continue
            if self._is_asked(result):
                key = case.conversion if once else (case.conversion, case.shape, case.survey)
                looks[key].append(self._why_untold(result))
        lost = [reasons for reasons in looks.values() if all(reasons)]
        told = dict.fromkeys(reason for reasons in lost for reason in reasons[-1:])
        return Unknown(len(lost), len(looks), tuple(told))

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
            if severity not in self.severities:
                raise ValueError(f"{self.id} declares no finding of severity {severity!r}")
            yield found.model_copy(
                update={"rule": self.id, "name": self.name, "severity": severity}
            )


def severity_of(word: str) -> Severity:
    """The severity that a session names; of one that is not known, the mildest."""
    return next((one for one in SEVERITIES if one == word), "info")


def number(found: FindingRecord, name: str) -> float | None:
    """A number in a finding's evidence; None if a file holds something else there."""
    value = found.evidence.get(name)
    return value if isinstance(value, int | float) else None


def worst_first(findings: Iterable[FindingRecord]) -> list[FindingRecord]:
    """By severity, then by what it costs, then by rule and by the first case."""

    def rank(found: FindingRecord) -> tuple[int, float, str, list[int]]:
        cost = found.evidence.get("cost_ns", 0.0)
        return SEVERITIES.index(found.severity), -cost, found.rule, found.results

    return sorted(findings, key=rank)
