"""How severe a change for the worse is: as severe as what the rules find of HEAD's case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from dlprof.compare.matching import Key, key
from dlprof.rules import RULES, cases_in, find_in
from dlprof.rules.rule import SEVERITIES, Severity, severity_of
from dlprof.session.model import Result

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
        """The severity of the finding on HEAD's case, in HEAD's session or beside BASE's result,
        whichever is worse.

        For a rule that asks whether another path does better, BASE's result is such a path. Where
        the rules find nothing, it is the worst that they could find.
        """
        judges = [rule for rule in JUDGES if change in rule.changes]
        if not judges:
            return OF_NO_RULE[change]
        declared = {severity for rule in judges for severity in rule.severities}
        if len(declared) > 1:
            case = base.case.model_copy(update={"export": f"{base.case.export} of BASE"})
            beside = self._found([head, base.model_copy(update={"case": case})])
            names = [(key(head.case), rule.id) for rule in judges]
            sides = (beside, self._in_session)
            declared = {side[name] for side in sides for name in names if name in side} or declared
        return min(declared, key=SEVERITIES.index)

    @cached_property
    def _in_session(self) -> Mapping[tuple[Key, str], Severity]:
        return self._found(self.results)

    def _found(self, results: Sequence[Result]) -> Mapping[tuple[Key, str], Severity]:
        """By case and rule; of several findings on a case the worst."""
        findings = find_in(cases_in(results), self.thresholds, JUDGES)
        return {
            (key(results[index].case), finding.rule): severity_of(finding.severity)
            for finding in reversed(findings)
            for index in finding.results
        }
