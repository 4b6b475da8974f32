"""A result with its place in the session: every number on the page can be traced to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress

from dlprof.reports.faults import suspected
from dlprof.reports.result_row import rows_of
from dlprof.reports.row import Row
from dlprof.session.model import FindingRecord, Result, Session

MOST_OF_A_FINDING = 3
LONGEST_LABEL = 44
LONGEST_LINE = 58


@dataclass(frozen=True)
class Entry:
    """``index`` is that of ``session.results``."""

    index: int
    row: Row
    result: Result

    @property
    def anchor(self) -> str:
        return f"r{self.index}"

    @property
    def measured(self) -> bool:
        """Whether it has a time to be trusted: one that came before a refusal is not."""
        return self.row.ready is not None and self.row.status == "ok"


def entries(session: Session) -> list[Entry]:
    """All results in the session's order, told which of them a finding calls wrong or unsafe."""
    rows = suspected(rows_of(session.results), session.findings)
    return [
        Entry(index, row, result)
        for index, (row, result) in enumerate(zip(rows, session.results, strict=True))
    ]


def choose(
    candidates: Sequence[Entry], findings: Iterable[FindingRecord], most: int
) -> list[Entry]:
    """At most so many: those that findings name, then the largest array of each path.

    The clearest case of a finding stands first in it; paths stand cheapest first.
    """
    by_index = {entry.index: entry for entry in candidates}
    named = [index for found in findings for index in found.results[:MOST_OF_A_FINDING]]
    order = dict.fromkeys([*named, *(entry.index for entry in _largest_first(candidates))])
    return [by_index[index] for index in order if index in by_index][:most]


def _largest_first(candidates: Sequence[Entry]) -> list[Entry]:
    """The largest array of every path, then the next largest of every path."""
    places: dict[tuple[str, str], int] = {}
    ranked = []
    for entry in sorted(candidates, key=lambda entry: -entry.row.size_bytes):
        way = entry.row.pair, entry.row.path
        places[way] = places.get(way, -1) + 1
        ranked.append((places[way], entry.row.cost_ns, entry))
    return [entry for *_, entry in sorted(ranked, key=lambda found: found[:2])]


def chosen_text(shown: int, of: int) -> str:
    """Which cases a chart shows; nothing where it shows all."""
    if shown == of:
        return ""
    return (
        f" Shown are {shown} of {of:,} cases: those that findings name, then"
        " the largest array of each path, cheapest first. The table of all cases has the rest."
    )


def label_lines(shown: Sequence[Entry]) -> tuple[list[str], list[str]]:
    """``#3 numpy.array(x) 4096x4096``: the index, the code, and what tells the arrays apart.

    Where that does not fit one line, it stands in lines of its own: the second list, else empty.
    """
    arrays = [(entry.row.pair.replace(" → ", "→"), *entry.row.array[1:]) for entry in shown]
    varying = [len(set(values)) > 1 for values in zip(*arrays, strict=True)]
    wheres = [" ".join(compress(array, varying)) for array in arrays]
    names = [f"#{entry.index} {entry.row.code}" for entry in shown]
    both = [f"{name} {where}".strip() for name, where in zip(names, wheres, strict=True)]
    if all(len(text) <= LONGEST_LABEL for text in both) or not any(wheres):
        return [short(text, LONGEST_LABEL) for text in both], []
    return (
        [short(name, LONGEST_LABEL) for name in names],
        [short(where, LONGEST_LINE) for where in wheres],
    )


def short(text: str, longest: int) -> str:
    """``text`` with its middle left out where it is longer: calls differ at both ends."""
    longest = max(longest, 12)
    if len(text) <= longest:
        return text
    tail = longest // 3
    return f"{text[: longest - tail - 1]}…{text[-tail:]}"
