"""Rules: one object per kind of problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from dlprof.judge.cases import Cases
from dlprof.judge.safety import Fault
from dlprof.judge.script import Show
from dlprof.runner.session import FindingRecord, Result

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
    """How severe its findings are; where they differ, :func:`dlprof.judge.finding.finding` says it
    of each.
    """
    check: Callable[[Cases], Iterator[FindingRecord]]
    """What the rule finds: see :func:`dlprof.judge.finding.finding`."""
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
            if severity not in self.severities:
                raise ValueError(f"{self.id} declares no finding of severity {severity!r}")
            yield found.model_copy(
                update={"rule": self.id, "name": self.name, "severity": severity}
            )


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
