"""How severe a change for the worse is: as severe as what the rules find of HEAD's case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from dlprof.compare.matching import Key, key
from dlprof.judge import RULES, cases_in, find_in
from dlprof.judge.case_view import CaseView
from dlprof.judge.rule import SEVERITIES, Severity, severity_of
from dlprof.runner.session import Result

OF_NO_RULE: Mapping[str, Severity] = MappingProxyType({"copy": "warning"})
"""Changes that no rule speaks of: a run cannot tell that its copy was a view before."""
JUDGES = tuple(rule for rule in RULES if rule.changes)


@dataclass(frozen=True)
class Severities:
    """The severities of changes for the worse in HEAD.

    ``results`` are those of HEAD's session, and ``thresholds`` those that its scenario sets.
    """

    results: Sequence[Result] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)

    def of(self, change: str, base: Result, head: Result) -> Severity:
        """The severity of the finding on HEAD's case.

        It is the worst of its rule where nothing is found, and where BASE shows that there is a
        choice: a rule that looks for another path which does better sees HEAD alone.
        """
        judges = [rule for rule in JUDGES if change in rule.changes]
        if not judges:
            return OF_NO_RULE[change]
        declared = {severity for rule in judges for severity in rule.severities}
        if len(declared) > 1 and not any(rule.is_avoided(CaseView(0, base)) for rule in judges):
            names = [(key(head.case), rule.id) for rule in judges]
            declared = {self._found[name] for name in names if name in self._found} or declared
        return min(declared, key=SEVERITIES.index)

    @cached_property
    def _found(self) -> Mapping[tuple[Key, str], Severity]:
        """By case and rule; of several findings on a case the worst."""
        findings = find_in(cases_in(self.results), self.thresholds, JUDGES)
        return {
            (key(self.results[index].case), finding.rule): severity_of(finding.severity)
            for finding in reversed(findings)
            for index in finding.results
        }
