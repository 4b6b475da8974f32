"""The comparison for a terminal: one row for each time, worst first, and the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dlprof.analysis.quantity import plain_time
from dlprof.analysis.slower import FASTER, SAME, SLOWER, UNSURE
from dlprof.compare.comparison import GONE, INVALID, NEW, Compared, Comparison
from dlprof.compare.outcome import Outcome
from dlprof.compare.surroundings import Difference
from dlprof.compare.times import Time
from dlprof.compare.verdicts import BETTER, LOST, WORSE, Change
from dlprof.reports.comparison_text import (
    answers,
    array_of,
    code_of,
    is_by_verdicts,
    left_out_texts,
    name_of,
    ratio_text,
    shows_times,
    slower_than_general,
)
from dlprof.reports.terminal import printed
from dlprof.session.model import Header
from dlprof.text.clean import clean
from dlprof.text.lists import listed

MOST_ROWS = 60
MOST_LINES = 12
ORDER = (SLOWER, GONE, UNSURE, INVALID, FASTER, NEW, SAME)
STYLES = {SLOWER: "red", GONE: "red", UNSURE: "yellow", INVALID: "yellow", FASTER: "green"}
DIRECTIONS = (WORSE, LOST, "other", BETTER)


@dataclass(frozen=True)
class Names:
    """What the two sides are called: as a rule the names of their files."""

    base: str = "BASE"
    head: str = "HEAD"


def render(
    comparison: Comparison,
    outcome: Outcome,
    names: Names = Names(),
    width: int = 80,
    colour: bool = False,
) -> str:
    """The report as text of ``width`` columns, with ANSI colours if ``colour``."""
    return printed(Group(*compose(comparison, outcome, names)), width, colour)


def compose(comparison: Comparison, outcome: Outcome, names: Names) -> Iterator[RenderableType]:
    yield _heading(comparison, names)
    cases = comparison.cases if shows_times(comparison, outcome) else ()
    rows = sorted(((case, time) for case in cases for time in case.times), key=_badness)
    if rows:
        yield _table(comparison, rows[:MOST_ROWS])
    if len(rows) > MOST_ROWS:
        yield Text(f"… and {len(rows) - MOST_ROWS:,} more in the JSON report")
    yield from _changes(comparison.cases)
    yield from _reasons(rows)
    yield from _untimed(comparison)
    yield Text()
    for answer in answers(comparison, outcome):
        yield Text(answer, style="bold")


def _badness(row: tuple[Compared, Time]) -> tuple[bool, int, float]:
    case, time = row
    worse = any(change.worse for change in case.changes)
    return not worse, ORDER.index(time.word), -(time.ratio or 0.0)


def _headed(cases: Sequence[Compared]) -> bool:
    """Whether all cases are of one array, which the heading names."""
    return len({array_of(case) for case in cases}) == 1


def _heading(comparison: Comparison, names: Names) -> Text:
    text = Text()
    if _headed(comparison.cases):
        text.append(f"{array_of(comparison.cases[0])}\n", style="bold")
    text.append(f"BASE {_side(comparison.base, names.base)}\n")
    text.append(f"HEAD {_side(comparison.head, names.head)}\n")
    versions = _kind(comparison.differences, "python", "version")
    text.append(f"compared: {versions}" if versions else "the same versions on both sides")
    settings = _kind(comparison.differences, "setting")
    if settings:
        text.append(f"\nalso different: {settings}", style="dim")
    if comparison.invalid is not None:
        text.append(f"\ntimes cannot be compared: {clean(comparison.invalid)}", style="red")
    if comparison.load is not None:
        text.append(f"\n{clean(comparison.load)}", style="red")
    return text


def _side(header: Header, name: str) -> str:
    rounds = f"{header.rounds} round{'s' if header.rounds != 1 else ''}"
    stopped = "" if header.complete else "; stopped before its end"
    return clean(f"{name}: {rounds}, {header.created}{stopped}")


def _kind(differences: Iterable[Difference], *kinds: str) -> str:
    found = [clean(str(one)) for one in differences if one.kind in kinds]
    more = len(found) - MOST_LINES
    return ", ".join(found[:MOST_LINES]) + (f" and {more} more" if more > 0 else "")


def _table(comparison: Comparison, rows: Sequence[tuple[Compared, Time]]) -> Table:
    headed = _headed(comparison.cases)
    table = Table(box=None, padding=(0, 1, 0, 0), show_edge=False, header_style="dim")
    several = len({time.measure for _, time in rows}) > 1
    table.add_column("path", overflow="fold", ratio=1)
    for title in ("BASE", "HEAD", "HEAD/BASE (interval)"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for case, time in rows:
        path = code_of(case) + (f" [{clean(time.measure)}]" if several else "")
        if not headed:
            path += f"\n  {array_of(case)}"
        word = (
            f"{time.word} *" if slower_than_general(comparison, time) or time.beyond else time.word
        )
        cells = (_time(time.base_ns), _time(time.head_ns), ratio_text(time), word)
        table.add_row(Text(path), *cells, style=STYLES.get(time.word, ""))
    return table


def _time(value_ns: float | None) -> str:
    return "-" if value_ns is None else plain_time(value_ns, 3)


def _changes(cases: Sequence[Compared]) -> Iterator[RenderableType]:
    found = sorted(
        ((case, change) for case in cases for change in case.changes),
        key=lambda one: (DIRECTIONS.index(one[1].direction), one[1].severity),
    )
    if not found:
        return
    yield Text("\nverdicts that changed, worst first:", style="dim")
    for case, change in found[:MOST_LINES]:
        yield _change(case, change)
    if len(found) > MOST_LINES:
        yield Text(f"… and {len(found) - MOST_LINES:,} more in the JSON report")


def _change(case: Compared, change: Change) -> Text:
    words = {WORSE: change.severity, BETTER: "better", LOST: "unsure"}
    style = {WORSE: "red", BETTER: "green", LOST: "yellow"}.get(change.direction, "")
    text = Text()
    text.append(words.get(change.direction, "changed"), style=style)
    text.append(f" {name_of(case)}: {clean(str(change))}")
    reason = (case.reasons[1] or "").strip().splitlines()
    if change.what == "status" and reason:
        text.append(f": {clean(reason[0])}")
    return text


def _reasons(rows: Sequence[tuple[Compared, Time]]) -> Iterator[RenderableType]:
    """Why a word is what it is; the same reason is told once."""
    groups: dict[tuple[str, str], list[str]] = {}
    for case, time in rows:
        for reason in (time.reason, time.note):
            if reason:
                groups.setdefault((time.word, clean(reason)), []).append(name_of(case))
    if not groups:
        return
    yield Text("\nbecause:", style="dim")
    for (word, reason), codes in list(groups.items())[:MOST_LINES]:
        yield Text(f"{word}: {reason}: {listed(dict.fromkeys(codes))}")
    if len(groups) > MOST_LINES:
        yield Text(f"… and {len(groups) - MOST_LINES:,} more reasons in the JSON report")


def _untimed(comparison: Comparison) -> Iterator[RenderableType]:
    for line in left_out_texts(comparison):
        yield Text(f"\n{line}", style="yellow")
    untimed = sum(not (case.times or is_by_verdicts(case)) for case in comparison.cases)
    if untimed:
        yield Text(f"\n{untimed:,} more without a time on either side", style="dim")
