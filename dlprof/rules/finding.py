"""A finding: a rule's claim about one or more cases, with evidence, cost and advice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

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
