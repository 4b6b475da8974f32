"""What the advice comes to in code."""

from __future__ import annotations

from collections.abc import Sequence

from dlprof.analysis.known import number
from dlprof.errors import NoReproducer
from dlprof.evidence.repro.lines import folded
from dlprof.evidence.repro.subject import subject
from dlprof.evidence.ticket.markdown import fenced
from dlprof.rules.layout import NO_WAY_OUT
from dlprof.session.model import FindingRecord, Result


def memory(finding: FindingRecord, results: Sequence[Result]) -> str:
    """Markdown: how such an array is made where it is a view, if alignment decides and the
    producer's probe knows how; else empty, also where the view is advised against.
    """
    aligned = number(finding.evidence.get("view_alignment_bytes"))
    advised = finding.rule == "DLP017" and finding.advice != NO_WAY_OUT
    if not advised or aligned is None or not results:
        return ""
    try:
        made = folded(subject(results[0]).create_as("aligned"))
    except NoReproducer:
        return ""
    return f"Such an array, made by hand:\n\n{fenced(made, 'python')}"
