"""Memory on a terminal: whose a result is, and what its bytes cost."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group

from dlprof.cli.show import say, width
from dlprof.reports import ingest
from dlprof.reports.faults import suspected
from dlprof.reports.row import Row
from dlprof.reports.terminal import (
    circumstances_text,
    findings_text,
    printed,
    reasons,
    unmeasured_text,
)
from dlprof.session.model import Header


def show_ingest(header: Header, rows: Sequence[Row]) -> None:
    """A table for each source, what was not measured and why, and the findings."""
    rows = suspected(rows, header.findings)
    say(circumstances_text(header, width()))
    say(printed(Group(*ingest.blocks(rows)), width()))
    say(printed(Group(*reasons([row for row in rows if row.ready is None], rows)), width()))
    say(f"\n{unmeasured_text(rows)}")
    say(findings_text(header, rows, width()))


def ingest_answer(header: Header, rows: Sequence[Row]) -> str:
    """What copies and what does not, and what the copies cost."""
    return ingest.answer(suspected(rows, header.findings))
