"""Environments side by side on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group

from dlprof.cli.listing import plain_table, text_of
from dlprof.cli.show import say, width
from dlprof.reports import placement
from dlprof.reports.faults import suspected
from dlprof.reports.row import Row
from dlprof.reports.side_by_side import answer, cell, described, lines, names
from dlprof.reports.terminal import circumstances_text, findings_text, printed, unmeasured_text
from dlprof.session.model import Header
from dlprof.text.clean import clean

MOST_LINES = 60


def show_side_by_side(header: Header, rows: Sequence[Row]) -> None:
    """A table for each pair and array: paths down, environments across."""
    rows = suspected(rows, header.findings)
    for words in described(header):
        say(printed(clean(words), width()))
    say(f"{circumstances_text(header, width())}\n")
    every, found = names(rows), lines(rows)
    arrays = dict.fromkeys((line.frameworks, line.array) for line in found[:MOST_LINES])
    for frameworks, array in arrays:
        table = plain_table(f"{frameworks}  {array}", *every)
        for line in found[:MOST_LINES]:
            if (line.frameworks, line.array) == (frameworks, array):
                table.add_row(line.code, *(cell(line.rows.get(name)) for name in every))
        say(f"{text_of(table)}\n")
    if len(found) > MOST_LINES:
        say(f"… and {len(found) - MOST_LINES:,} more paths in the session file\n")
    loops = placement.compose(rows)
    if loops:
        say(printed(Group(*loops), width()))
    say(unmeasured_text(rows))
    say(findings_text(header, rows, width()))
    say(printed(f"\n{answer(rows)}", width()))
