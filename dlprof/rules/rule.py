"""A rule: an id that never changes its meaning, and a function from a survey to claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dlprof.analysis.case_view import CaseView
from dlprof.analysis.cases import Cases
from dlprof.session.model import Result

SEVERITIES = ("error", "warning", "info")
"""Worst first: wrong or unsafe; slow for no reason; worth knowing."""


@dataclass(frozen=True)
class Finding:
    """``results`` are the indices of the cases in the session, the clearest one first.

    ``evidence`` holds what was measured, with units in the names; ``cost_ns`` there, if any, is
    what the finding costs per call. ``advice`` names only paths that were measured in the session;
    anything else it calls *not measured*. ``against`` is the index of the case that the first of
    them is compared with, if there is one.
    """

    rule: str
    name: str
    severity: str
    results: tuple[int, ...]
    summary: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    advice: str = ""
    against: int | None = None

    def inside(self, environment: str) -> Finding:
        """The same, told as found in one environment of several; as it is if that has no name."""
        if not environment:
            return self
        return replace(self, summary=f"in {environment}: {self.summary}")

    def as_dict(self) -> dict[str, Any]:
        """For the session file."""
        return {
            "rule": self.rule,
            "name": self.name,
            "severity": self.severity,
            "results": list(self.results),
            "summary": self.summary,
            "evidence": dict(self.evidence),
            "advice": self.advice,
            "against": self.against,
        }


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """By severity, then by what it costs, then by rule and by the first case."""
    return sorted(findings, key=_rank)


def _rank(finding: Finding) -> tuple[int, float, str, tuple[int, ...]]:
    cost = finding.evidence.get("cost_ns", 0.0)
    return SEVERITIES.index(finding.severity), -cost, finding.rule, finding.results


@dataclass(frozen=True)
class Claim:
    """What a rule found, before it has the rule's name; the clearest case stands first."""

    severity: str
    cases: Sequence[CaseView]
    summary: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    advice: str = ""
    against: CaseView | None = None


@dataclass(frozen=True)
class Rule:
    """Its page is ``pages/{id}.md``. ``needs`` is the instrument of the diagnosis without which it
    finds nothing; empty where there is none. ``lacks`` says what else it would need that none of
    these results has, in words; empty where it could look. ``times`` says that it finds one time to
    be longer than another, which one process hardly tells; such a finding is no error. ``seen``
    tells what the instrument that proves its claim saw of a case; rules on times alone have none.
    """

    id: str
    name: str
    claims: Callable[[Cases], Iterator[Claim]]
    needs: str = ""
    lacks: Callable[[Sequence[Result]], str] = lambda _: ""
    times: bool = False
    seen: Callable[[Result], list[str]] = lambda _: []

    def findings(self, survey: Cases) -> Iterator[Finding]:
        for claim in self.claims(survey):
            yield Finding(
                rule=self.id,
                name=self.name,
                severity=claim.severity,
                results=tuple(case.index for case in claim.cases),
                summary=claim.summary,
                evidence={
                    name: value for name, value in claim.evidence.items() if value is not None
                },
                advice=claim.advice,
                against=None if claim.against is None else claim.against.index,
            )
