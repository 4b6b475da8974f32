"""A rule: an id that never changes its meaning, and a function from a survey to claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dlprof.analysis.known import Known
from dlprof.rules.finding import Finding
from dlprof.rules.survey import Survey
from dlprof.session.model import Result


@dataclass(frozen=True)
class Claim:
    """What a rule found, before it has the rule's name; the clearest case stands first."""

    severity: str
    cases: Sequence[Known]
    summary: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    advice: str = ""
    against: Known | None = None


@dataclass(frozen=True)
class Rule:
    """Its page is ``pages/{id}.md``. ``needs`` is the instrument of the diagnosis without which it
    finds nothing; empty where there is none. ``lacks`` says what else it would need that none of
    these results has, in words; empty where it could look. ``times`` says that it finds one time to
    be longer than another, which one process hardly tells; such a finding is no error.
    """

    id: str
    name: str
    claims: Callable[[Survey], Iterator[Claim]]
    needs: str = ""
    lacks: Callable[[Sequence[Result]], str] = lambda _: ""
    times: bool = False

    def findings(self, survey: Survey) -> Iterator[Finding]:
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
