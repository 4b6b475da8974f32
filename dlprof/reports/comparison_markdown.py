"""A comparison as GitHub-flavoured Markdown, as for ``$GITHUB_STEP_SUMMARY``: the answer first.

Text of sessions is anybody's: see :mod:`dlprof.reports.markdown`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dlprof.analysis.quantity import plain_time
from dlprof.compare.comparison import Compared, Comparison
from dlprof.compare.outcome import Outcome
from dlprof.compare.times import Time
from dlprof.compare.verdicts import BETTER, WORSE, Change
from dlprof.reports.comparison import ORDER, Names
from dlprof.reports.comparison_text import (
    answers,
    array_of,
    code_of,
    left_out_texts,
    ratio_text,
    shows_times,
)
from dlprof.reports.markdown import code, prose, table
from dlprof.session.model import Header

MOST_ROWS = 200
MOST_LINES = 50
TITLES = ("path", "BASE", "HEAD", "HEAD/BASE (interval)", "", "because")
RIGHT = (False, True, True, True, False, False)


def render(comparison: Comparison, outcome: Outcome, names: Names) -> str:
    """The summary; at most a few hundred lines, however many cases there are."""
    blocks = [
        _title(comparison),
        *(f"**{prose(answer)}**" for answer in answers(comparison, outcome)),
        *_changes(comparison.cases),
        *_times(comparison.cases if shows_times(comparison, outcome) else ()),
        _about(comparison, names),
    ]
    return "\n\n".join(blocks) + "\n"


def _title(comparison: Comparison) -> str:
    arrays = {array_of(case) for case in comparison.cases}
    what = f"{len(comparison.cases):,} cases" if len(arrays) != 1 else arrays.pop()
    return f"## dlprof: BASE and HEAD, {prose(what)}"


def _changes(cases: Sequence[Compared]) -> Iterator[str]:
    found = [(case, change) for case in cases for change in case.changes]
    if not found:
        return
    yield "### Verdicts that changed"
    found.sort(key=lambda one: (not one[1].worse, one[1].direction, one[1].severity))
    yield "\n".join(_change(*one) for one in found[:MOST_LINES])
    if len(found) > MOST_LINES:
        yield f"… and {len(found) - MOST_LINES:,} more in the JSON report"


def _change(case: Compared, change: Change) -> str:
    words = {WORSE: change.severity, BETTER: "better"}
    word = words.get(change.direction, "changed")
    which = f" ({prose(case.distinction)})" if case.distinction else ""
    return f"- **{prose(word)}** {code(code_of(case))}{which}: {prose(str(change))}"


def _times(cases: Sequence[Compared]) -> Iterator[str]:
    rows = [(case, time) for case in cases for time in case.times]
    rows.sort(key=lambda row: (ORDER.index(row[1].word), -(row[1].ratio or 0.0)))
    if not rows:
        return
    several = len({array_of(case) for case in cases}) > 1
    yield "### Times"
    yield table(TITLES, (_row(*row, several) for row in rows[:MOST_ROWS]), RIGHT)
    if len(rows) > MOST_ROWS:
        yield f"… and {len(rows) - MOST_ROWS:,} more in the JSON report"


def _row(case: Compared, time: Time, several: bool) -> list[str]:
    path = code(code_of(case)) + (f" {prose(array_of(case))}" if several else "")
    if time.measure != "ready":
        path += f" {prose(time.measure)}"
    times = [_time(time.base_ns), _time(time.head_ns), ratio_text(time)]
    return [path, *times, f"**{time.word}**", prose(time.reason or time.note)]


def _time(value_ns: float | None) -> str:
    return "-" if value_ns is None else plain_time(value_ns, 3)


def _about(comparison: Comparison, names: Names) -> str:
    sides = (("BASE", comparison.base, names.base), ("HEAD", comparison.head, names.head))
    lines = [_side(*side) for side in sides]
    found = [str(one) for one in comparison.differences[:MOST_LINES]]
    lines.append(f"different: {', '.join(found)}" if found else "the same versions on both sides")
    lines += [comparison.load] if comparison.load else []
    lines += left_out_texts(comparison)
    return "\n".join(f"- {prose(line)}" for line in lines)


def _side(word: str, header: Header, name: str) -> str:
    rounds = f"{header.rounds} round{'s' if header.rounds != 1 else ''}"
    return f"{word} {name}: {rounds}, {header.created}"
