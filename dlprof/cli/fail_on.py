"""``--fail-on RULE|SEVERITY``: which findings end in exit code 1."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dlprof.axes import split
from dlprof.errors import FindingsFailed, UsageError
from dlprof.rules import RULES
from dlprof.rules.finding import SEVERITIES
from dlprof.session import FindingRecord


@dataclass(frozen=True)
class FailOn:
    """Rule ids, and severities with all that are worse."""

    rules: frozenset[str]
    severities: frozenset[str]

    def fails(self, finding: FindingRecord) -> bool:
        """Whether such a finding is not allowed."""
        return finding.rule in self.rules or finding.severity in self.severities

    def check(self, findings: Iterable[FindingRecord]) -> None:
        """Raise :class:`FindingsFailed` if there is a finding that is not allowed."""
        found = [finding for finding in findings if self.fails(finding)]
        if found:
            names = ", ".join(dict.fromkeys(f"{f.rule} {f.name}" for f in found))
            raise FindingsFailed(f"--fail-on: found {names}")


def parse(texts: Sequence[str], where: str = "--fail-on") -> FailOn:
    """``DLP001``, ``host-sync`` or ``warning``, repeated or with commas. Raises UsageError.

    ``where`` names the option or the function that they were given to.
    """
    rules: set[str] = set()
    severities: set[str] = set()
    names = {word.lower(): rule.id for rule in RULES for word in (rule.id, rule.name)}
    if any(not text.strip(" ,") for text in texts):
        # An empty variable of a CI job must not let everything pass.
        raise UsageError(f"{where} is empty: name a rule or a severity, or leave it out")
    for text in split(texts):
        word = text.strip().lower()
        if word in names:
            rules.add(names[word])
        elif word in SEVERITIES:
            severities |= set(SEVERITIES[: SEVERITIES.index(word) + 1])
        else:
            near = difflib.get_close_matches(word, [*names, *SEVERITIES], n=1)
            hint = f"did you mean {near[0]!r}?" if near else "name a rule or a severity"
            raise UsageError(f"{where} knows no {text!r}: {hint}")
    return FailOn(frozenset(rules), frozenset(severities))
