"""``--fail-on RULE|SEVERITY``: which findings end in exit code 1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dlprof.errors import FindingsFailed, FindingsUnknown, UsageError
from dlprof.judge import BY_WORD, NEED_SURVEY, NEED_TIMES, NEEDS, RULES, WRITTEN
from dlprof.judge.rule import NAME_ONE, NO_CONVERSION, SEVERITIES, Rule, Unknown, could_tell
from dlprof.runner.axes import NO_TIMES
from dlprof.runner.option import split
from dlprof.runner.session import FindingRecord, Result
from dlprof.text.clean import counted, first_line, nearest


@dataclass(frozen=True)
class FailOn:
    """Rule ids, and severities with all that are worse."""

    rules: frozenset[str]
    severities: frozenset[str]

    def fails(self, finding: FindingRecord) -> bool:
        """Whether such a finding is not allowed."""
        return finding.rule in self.rules or finding.severity in self.severities

    def check_asked(self, *, diagnosed: bool, timed: bool) -> None:
        """Raise :class:`UsageError` where a rule is named that such a run cannot find."""
        untold = ", ".join(rule for rule in NEED_TIMES if rule in self.rules and not timed)
        if untold:
            raise UsageError(f"--fail-on {untold} needs {NO_TIMES}")
        named = ", ".join(rule for rule in NEEDS if rule in self.rules and not diagnosed)
        if named:
            raise UsageError(
                f"--fail-on {named} needs the diagnosis, which this run leaves out; add --diagnose"
            )

    def unlooked(self, *, diagnosed: bool, timed: bool, surveyed: bool) -> str:
        """Which findings of the severities nothing looks for in such a run, in words; empty where
        no severity is named.
        """
        lost = {
            "there is no diagnosis": () if diagnosed else tuple(NEEDS),
            "there are no times": () if timed else NEED_TIMES,
            "there is no survey": () if surveyed else NEED_SURVEY,
        }
        asked = {one.id for one in RULES if self._has_severity_of(one)}
        found = {words: asked.intersection(rules) for words, rules in lost.items()}
        if not any(found.values()):
            return ""
        why = " and ".join(words for words, rules in found.items() if rules)
        rules = ", ".join(sorted(set[str]().union(*found.values())))
        return f"--fail-on: {why}, so nothing looks for {rules}"

    def unseen(self, results: Iterable[Result]) -> dict[str, str]:
        """What was named and could look at no result, with what it would need, in words."""
        results = list(results)
        found = {
            rule.id: missing
            for rule in RULES
            if rule.id in self.rules and (missing := rule.lack(results))
        }
        if self.severities and results and RULES[0].lack(results) == NO_CONVERSION:
            found[max(self.severities, key=SEVERITIES.index)] = NO_CONVERSION
        return found

    def lacking(self, results: Iterable[Result]) -> str:
        """Which rules of the severities could look at no result for lack of an array, a flag or a
        handshake, in words; empty where all could. What :meth:`unseen` names is left out.
        """
        results, lost = list(results), dict[str, list[str]]()
        for rule in RULES:
            if rule.needs and rule.id not in self.rules and self._has_severity_of(rule):
                lost.setdefault(rule.lack(results), []).append(rule.id)
        return "; ".join(
            f"nothing looked for {', '.join(rules)}: not measured: {lack}"
            for lack, rules in lost.items()
            if lack not in ("", NO_CONVERSION)
        )

    def _has_severity_of(self, rule: Rule) -> bool:
        return not self.severities.isdisjoint(rule.severities)

    def unknown(self, results: Iterable[Result]) -> str:
        """For how many conversions the answer is unknown, and why, in words; empty where it is
        known for all. What :meth:`unseen` names is left out.
        """
        results = list(results)
        lost: dict[Unknown, list[str]] = {}
        for rule in RULES:
            asked = rule.id in self.rules or self._has_severity_of(rule)
            found = rule.unknown(results) if asked and not rule.lack(results) else None
            if found is not None and found.conversions:
                lost.setdefault(found, []).append(rule.id)
        return "; ".join(f"{', '.join(rules)} {found}" for found, rules in lost.items())

    def untried(self, results: Iterable[Result]) -> str:
        """For how many conversions a probe or dlprof itself failed, and how, in words; empty for
        none.
        """
        faults = [one.fault for one in results]
        failed = [*filter(None, faults)]
        if not failed:
            return ""
        total, how = counted(len(faults), "conversion"), first_line(failed[0])
        return f"{len(failed):,} of {total} not wholly looked at: {how}"

    def check_looked_for(self, results: Iterable[Result]) -> None:
        """Raise :class:`FindingsUnknown` for what :meth:`unseen` or :meth:`untried` names."""
        results = list(results)
        if untried := self.untried(results):
            raise FindingsUnknown(f"--fail-on: {untried}")
        lost = self.unseen(results)
        if lost:
            raise FindingsUnknown(
                f"--fail-on: nothing looked for {', '.join(lost)}: not measured:"
                f" {'; '.join(dict.fromkeys(lost.values()))}"
            )

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
    if any(not text.strip(" ,") for text in texts):
        # An empty variable of a CI job must not let everything pass.
        raise UsageError(f"{where} is empty: name a rule or a severity, or leave it out")
    for text in split(texts):
        word = text.strip().lower()
        if word in BY_WORD:
            rules.add(BY_WORD[word].id)
        elif word in SEVERITIES:
            severities |= set(SEVERITIES[: SEVERITIES.index(word) + 1])
        else:
            hint = nearest(word, (*WRITTEN, *SEVERITIES), NAME_ONE)
            raise UsageError(f"{where} {text!r} is no rule and no severity: {hint}")
    return FailOn(frozenset(rules), frozenset(severities))


def is_diagnosed(results: Iterable[Result]) -> bool:
    """Whether an instrument of the diagnosis that a rule needs could tell something."""
    return any(could_tell(result, name) for result in results for name in set(NEEDS.values()))
