"""A claim that does not hold, in words: the ways, the findings about them, and where to look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dlprof.claims.claim import Judged
from dlprof.plan.axes import shape_text
from dlprof.session.model import FindingRecord, Session
from dlprof.text.clean import clean

MOST_WAYS = 12
MOST_FINDINGS = 6
MOST_EVIDENCE = 6


def text(claim: str, judged: Judged, session: Session, file: str) -> str:
    """Several lines; ``claim`` is one sentence, ``file`` the session file."""
    lines = [f"{_what(session)}: {_headline(claim, judged)}"]
    lines += [f"  {one.code}: {one.said}" for one in judged.complaints[:MOST_WAYS]]
    if len(judged.complaints) > MOST_WAYS:
        lines.append(f"  … and {len(judged.complaints) - MOST_WAYS:,} more ways")
    if not judged.ways:
        lines += [f"  unsupported: {reason}" for reason in judged.refused[:MOST_WAYS]]
    lines += _findings(_about(session.findings, judged))
    return "\n".join([*lines, f"session: {clean(file)} (dlprof report prints it)"])


def _what(session: Session) -> str:
    if not session.results:
        return "no case"
    case = session.results[0].case
    array = f"{shape_text(case.shape)} {case.dtype} {case.layout} on {case.device}"
    return clean(f"{case.producer} -> {case.consumer}, {array}")


def _headline(claim: str, judged: Judged) -> str:
    if not judged.ways:
        return f"{claim}? No way could be measured"
    return f"{claim}? Not so for {len(judged.complaints)} of {judged.ways}"


def _about(findings: Sequence[FindingRecord], judged: Judged) -> list[FindingRecord]:
    """The findings about the ways that speak against the claim, worst first."""
    guilty = {complaint.index for complaint in judged.complaints}
    return [finding for finding in findings if guilty & set(finding.results)]


def _findings(findings: Sequence[FindingRecord]) -> Iterator[str]:
    for finding in findings[:MOST_FINDINGS]:
        yield clean(f"{finding.severity} {finding.rule} {finding.name}: {finding.summary}")
        if finding.evidence:
            yield f"    evidence: {_evidence(finding.evidence)}"
        if finding.advice:
            yield f"    {clean(finding.advice)}"
        yield f"    dlprof explain {clean(finding.rule)} explains it"
    if len(findings) > MOST_FINDINGS:
        yield f"… and {len(findings) - MOST_FINDINGS:,} more findings"


def _evidence(evidence: dict[str, Any]) -> str:
    items = list(evidence.items())[:MOST_EVIDENCE]
    return clean(", ".join(f"{name} {_value(value)}" for name, value in items))


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
