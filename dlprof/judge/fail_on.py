"""``--fail-on RULE|SEVERITY``: the findings that end in exit code 1, and runs that cannot tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dlprof.errors import FindingsFailed, Unsure, UsageError
from dlprof.judge import BY_WORD, NEED_TIMES, NEEDS, WRITTEN
from dlprof.judge.cases import coverage
from dlprof.judge.rule import NAME_HINT, SEVERITIES
from dlprof.runner.axes import NO_TIMES
from dlprof.runner.options import split
from dlprof.runner.session import FindingRecord, Result
from dlprof.text.clean import first_line, nearest


@dataclass(frozen=True)
class FailOn:
    """Rule ids, and severities; each severity with the worse ones."""

    rules: frozenset[str]
    severities: frozenset[str]

    def fails(self, finding: FindingRecord) -> bool:
        """Whether such a finding is not allowed."""
        return finding.rule in self.rules or finding.severity in self.severities

    def missing(self, *, diagnosed: bool, timed: bool, repeated: bool = True) -> str:
        """Return the need of a named rule that such a run does not meet; empty if there is none.

        ``repeated`` says whether several processes take the times.
        """
        untimed = sorted(self.rules.intersection(() if timed and repeated else NEED_TIMES))
        if untimed:
            need = "several processes for each path, such as --rounds 3" if timed else NO_TIMES
            return f"--fail-on {', '.join(untimed)} needs {need}"
        undiagnosed = sorted(self.rules.intersection(() if diagnosed else NEEDS))
        return f"--fail-on {', '.join(undiagnosed)} needs the diagnosis" if undiagnosed else ""

    def check(self, findings: Iterable[FindingRecord]) -> None:
        """Raise :class:`FindingsFailed` if there is a finding that is not allowed."""
        matches = [finding for finding in findings if self.fails(finding)]
        if matches:
            names = ", ".join(dict.fromkeys(f"{match.rule} {match.name}" for match in matches))
            raise FindingsFailed(f"--fail-on: found {names}")

    def check_coverage(self, results: Sequence[Result]) -> None:
        """Raise :class:`Unsure` if an instrument failed, or nothing looked for a rule."""
        if missing := self.missing(
            diagnosed=any(getattr(result, name) for result in results for name in NEEDS.values()),
            timed=not all(result.untimed for result in results),
        ):
            raise Unsure(missing)
        failures = [result.fault for result in results if result.fault]
        if failures:
            raise Unsure(f"--fail-on: {coverage(results)}: {first_line(failures[0])}")


def parse(texts: Sequence[str], source: str = "--fail-on") -> FailOn:
    """Read ``DLP001``, ``host-sync`` or ``warning``, repeated or with commas.

    ``source`` names the option or function for messages. Raises :class:`UsageError`.
    """
    rules: set[str] = set()
    severities: set[str] = set()
    if any(not text.strip(" ,") for text in texts):
        # An empty variable of a CI job must not let everything pass.
        raise UsageError(f"{source} is empty: name a rule or a severity, or leave it out")
    for text in split(texts):
        word = text.strip().lower()
        if word in BY_WORD:
            rules.add(BY_WORD[word].id)
        elif word in SEVERITIES:
            severities |= set(SEVERITIES[: SEVERITIES.index(word) + 1])
        else:
            hint = nearest(word, (*WRITTEN, *SEVERITIES), NAME_HINT)
            raise UsageError(f"{source} {text!r} is no rule and no severity: {hint}")
    return FailOn(frozenset(rules), frozenset(severities))
