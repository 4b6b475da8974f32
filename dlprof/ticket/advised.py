"""What the advice comes to in code."""

from __future__ import annotations

from collections.abc import Sequence

from dlprof.errors import NoReproducer
from dlprof.repro.lines import folded
from dlprof.repro.subject import subject
from dlprof.rules.known import number
from dlprof.rules.layout import NO_WAY_OUT
from dlprof.session import FindingRecord, Result
from dlprof.ticket.markdown import fenced


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
