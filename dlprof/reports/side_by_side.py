"""Environments side by side: what each path costs and does in each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlprof.analysis.case_view import mapping
from dlprof.analysis.quantity import brief_text, times_text
from dlprof.reports.answer import slower
from dlprof.reports.cell_text import told_time
from dlprof.reports.row import Row
from dlprof.session.model import Header

MOST_PACKAGES = 12
LEAST_PROCESSES = 3
"""From so many processes on, their interval tells two times apart."""
UNREPEATED = 2.0


@dataclass(frozen=True)
class Line:
    """One path on one array, by environment."""

    frameworks: str
    array: str
    code: str
    rows: dict[str, Row]

    @property
    def cost_ns(self) -> float:
        return min(row.cost_ns for row in self.rows.values())


def names(rows: Sequence[Row]) -> list[str]:
    """The environments in their order; none where there is one only."""
    return [name for name in dict.fromkeys(row.environment for row in rows) if name]


def lines(rows: Sequence[Row]) -> list[Line]:
    """Every path, cheapest first within its pair and array."""
    found: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in rows:
        array = f"{row.shape} {row.dtype} {row.layout} {row.device}"
        found.setdefault((row.frameworks, array, row.code), {})[row.environment] = row
    order = list(dict.fromkeys(key[:2] for key in found))
    made = [Line(*key, cells) for key, cells in found.items()]
    return sorted(made, key=lambda line: (order.index((line.frameworks, line.array)), line.cost_ns))


def cell(row: Row | None) -> str:
    """Time and verdict; else the status."""
    if row is None:
        return "-"
    if row.ready is None:
        return row.status
    word = "wrong" if row.changed else row.owner if row.status == "ok" else row.status
    return f"{told_time(row)} {word}"


def answer(rows: Sequence[Row]) -> str:
    """How many paths differ between the environments, and the one that differs most."""
    every = names(rows)
    both = [line for line in lines(rows) if _is_whole(line, every)]
    if not both:
        return f"No path was measured in all of {', '.join(every)}."
    differing = [line for line in both if _ratio(line) is not None]
    kinds = [line for line in both if {"view", "copy"} <= {row.owner for row in line.rows.values()}]
    text = (
        f"Of {len(both)} paths measured in all of {', '.join(every)}, other times:"
        f" {len(differing)}, view in one and copy in another: {len(kinds)}."
        f"{_unsure(both, differing)}"
    )
    if differing:
        worst = max(differing, key=lambda line: _ratio(line) or 0.0)
        slow, fast = _ends(worst)
        text += (
            f" Most of all {worst.code}: {_brief(slow)} in {slow.environment},"
            f" {_brief(fast)} in {fast.environment}{_times(slow, fast)}."
        )
    return text


def _unsure(both: Sequence[Line], differing: Sequence[Line]) -> str:
    """How many times rest on too few processes to be called other ones."""
    few = [line for line in both if line not in differing and not _is_repeated(line)]
    if not few:
        return ""
    return (
        f" Of {len(few)} of them no other time can be told: an environment has fewer than"
        f" {LEAST_PROCESSES} processes."
    )


def described(header: Header) -> list[str]:
    """Name, Python and packages of each environment."""
    return [
        f"{entry.get('name')}: Python {entry.get('python')}"
        + "".join(
            f", {name} {version}"
            for name, version in list(mapping(entry.get("packages")).items())[:MOST_PACKAGES]
        )
        for entry in header.environments
    ]


def _is_whole(line: Line, every: Sequence[str]) -> bool:
    return all(name in line.rows and line.rows[name].ready is not None for name in every)


def _ends(line: Line) -> tuple[Row, Row]:
    ordered = sorted(line.rows.values(), key=lambda row: row.cost_ns)
    return ordered[-1], ordered[0]


def _ratio(line: Line) -> float | None:
    """How many times the slowest takes, if it can be told from the fastest.

    An interval of two processes is of two numbers: there the fastest process of the one must take
    twice as long as the slowest of the other, as without an interval.
    """
    slow, fast = _ends(line)
    if not (slow.is_known and fast.is_known and slower(fast, slow)):
        return None
    if not _is_repeated(line):
        long, short = slow.process_medians_ns, fast.process_medians_ns
        if not long or not short or min(long) <= UNREPEATED * max(short):
            return None
    return slow.cost_ns / fast.cost_ns


def _brief(row: Row) -> str:
    return brief_text(row.ready, row.process_medians_ns) if row.ready is not None else "-"


def _times(slow: Row, fast: Row) -> str:
    """How many times as long; nothing where the processes leave no number."""
    if slow.ready is None or fast.ready is None:
        return ""
    medians = slow.process_medians_ns, fast.process_medians_ns
    told = times_text(slow.ready, fast.ready, *medians)
    return f", {told} times" if told else ""


def _is_repeated(line: Line) -> bool:
    return all(len(row.process_medians_ns) >= LEAST_PROCESSES for row in _ends(line))
