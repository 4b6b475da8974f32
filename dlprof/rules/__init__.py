"""Rules: pure functions from what was measured to findings.

Nothing here measures, reads or writes, or knows a framework by name. Every number on which a rule
decides stands in :mod:`dlprof.analysis.thresholds`; what is unknown fires nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dlprof.analysis import thresholds
from dlprof.analysis.cases import by_environment
from dlprof.rules import (
    copying,
    correctness,
    cost,
    crash,
    handshake,
    layout,
    lifetime,
    observations,
    promise,
    unsafe_copy,
    waiting,
)
from dlprof.rules.rule import SEVERITIES, Finding, Rule, worst_first
from dlprof.session.model import FindingRecord, Result

__all__ = ["NEEDS", "RULES", "SEVERITIES", "Finding", "Rule", "findings", "observed"]

FAMILIES = (
    waiting,
    copying,
    correctness,
    lifetime,
    cost,
    handshake,
    crash,
    layout,
    promise,
    unsafe_copy,
)
RULES: tuple[Rule, ...] = tuple(
    sorted((rule for family in FAMILIES for rule in family.RULES), key=lambda rule: rule.id)
)
"""In the order of their ids, which never change their meaning."""

NEEDS = {rule.id: rule.needs for rule in RULES if rule.needs}
"""By rule: the instrument of the diagnosis without which it finds nothing."""


def findings(
    results: Iterable[Result], own_thresholds: Mapping[str, float] | None = None
) -> list[Finding]:
    """All findings of a session, worst first. ``results`` may be slim.

    Environments are judged apart: nothing is compared with, or advised from, another one.
    ``own_thresholds`` stand for those of :mod:`dlprof.analysis.thresholds` of the same names.
    """
    seen = by_environment(results)
    with thresholds.replaced(own_thresholds or {}):
        return worst_first(
            found.inside(name)
            for name, apart in seen.items()
            for rule in RULES
            for found in rule.findings(apart)
        )


def observed(
    finding: FindingRecord, results: Sequence[Result], against: Result | None = None
) -> list[str]:
    """What proves a finding: one line for each look at its clearest case, the first of ``results``.

    ``against`` is the case that it is compared with: their times stand side by side.
    """
    rule = next((rule for rule in RULES if rule.id == finding.rule), None)
    if rule is None or not results:
        return []
    told = observations.first_lines(rule.seen(results[0]))
    return told + (observations.side_by_side(results[0], against) if rule.times and against else [])
