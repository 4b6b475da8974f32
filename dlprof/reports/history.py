"""A history for a terminal: a line for each case, the steps, and what changed at them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dlprof.analysis.quantity import plain_time
from dlprof.compare.matching import code_key
from dlprof.history.series import Machine
from dlprof.history.store import History
from dlprof.history.trend import Trend
from dlprof.reports.history_text import (
    Told,
    array_of,
    doubts_of,
    name_of,
    pending_of,
    steps_of,
    when_text,
)
from dlprof.reports.sparkline import BARS, sparkline
from dlprof.reports.terminal import printed
from dlprof.text.clean import clean
from dlprof.text.lists import listed

MOST_ROWS = 60
MOST_STEPS = 30
MOST_LINES = 12
LINE = 20
STYLES = {"worse": "red", "better": "green"}


def render(
    history: History,
    trends: Sequence[Trend],
    measure: str,
    width: int = 80,
    colour: bool = False,
    marks: str = BARS,
) -> str:
    """The trends as text of ``width`` columns; ``marks`` draw the lines, low to high."""
    return printed(Group(*compose(history, trends, measure, marks)), width, colour)


def compose(
    history: History, trends: Sequence[Trend], measure: str, marks: str = BARS
) -> Iterator[RenderableType]:
    yield Text(heading(history, trends, measure))
    several = len({trend.series.machine for trend in trends}) > 1
    shown = trends[:MOST_ROWS]
    for machine, group in groupby(shown, key=lambda trend: trend.series.machine):
        yield from _of_machine(machine, list(group), marks)
    if len(trends) > len(shown):
        yield Text(f"… and {len(trends) - len(shown):,} more; --case GLOB shows fewer")
    yield from _steps(trends, several)
    yield from _lines("not told yet:", pending_of(trends))
    yield from _lines("also:", [_doubt(*one) for one in doubts_of(trends).items()])
    yield Text("\n" + answer(trends), style="bold")


def heading(history: History, trends: Sequence[Trend], measure: str) -> str:
    """How many sessions of which time, and what is shown of them."""
    entries = history.entries
    times = when_text(entries[0].created), when_text(entries[-1].created)
    span = times[0] if times[0] == times[1] else f"{times[0]} to {times[1]} UTC"
    count = f"{len(entries):,} session{'s' if len(entries) != 1 else ''}"
    older = f" (and {history.left_out:,} older)" if history.left_out else ""
    machines = len({trend.series.machine for trend in trends})
    where = f", {machines} machines" if machines > 1 else ""
    return f"{count}{older}, {span}{where}; {clean(measure)} time per call"


def _of_machine(machine: Machine, trends: Sequence[Trend], marks: str) -> Iterator[RenderableType]:
    arrays = {array_of(trend.series) for trend in trends}
    text = Text(f"\n{machine.name}", style="bold")
    if len(arrays) == 1:
        text.append(f"\n{arrays.pop()}")
        arrays = set()
    yield text
    table = Table(box=None, padding=(0, 1, 0, 0), show_edge=False, header_style="dim")
    table.add_column("path", overflow="fold", ratio=1)
    table.add_column("trend", no_wrap=True)
    for title in ("first", "newest", "steps"):
        table.add_column(title, justify="right", no_wrap=True)
    for trend in trends:
        table.add_row(*_row(trend, bool(arrays), marks))
    yield table


def _row(trend: Trend, with_array: bool, marks: str) -> tuple[Text | str, ...]:
    name = name_of(trend.series) + (f"\n  {array_of(trend.series)}" if with_array else "")
    times = [point.time_ns for point in trend.series.points]
    known = [time for time in times if time is not None]
    first, newest = (plain_time(known[0], 3), plain_time(known[-1], 3)) if known else ("-", "-")
    count = len(trend.steps) + len(trend.verdicts)
    return Text(name), Text(sparkline(times, LINE, marks)), first, newest, str(count or "-")


def _steps(trends: Sequence[Trend], several: bool) -> Iterator[RenderableType]:
    found = steps_of(trends)
    if not found:
        return
    yield Text("\nsteps, newest first:", style="dim")
    arrays = len({array_of(trend.series) for trend in trends}) > 1
    for told in found[:MOST_STEPS]:
        yield _step(told, arrays, several)
    if len(found) > MOST_STEPS:
        yield Text(f"… and {len(found) - MOST_STEPS:,} more in the JSON")


def _step(told: Told, with_array: bool, with_machine: bool) -> Group:
    name = name_of(told.trend.series)
    where = [array_of(told.trend.series)] if with_array else []
    where += [f"on {told.trend.series.machine.name}"] if with_machine else []
    line = Text(f"{when_text(told.when)} {name}: ")
    line.append(told.what, style=STYLES.get(told.style, ""))
    parts: list[RenderableType] = [line, *(Padding(Text(text), (0, 0, 0, 4)) for text in where)]
    return Group(*parts, Padding(Text(told.brought), (0, 0, 0, 4)))


def _lines(title: str, lines: Sequence[str]) -> Iterator[RenderableType]:
    if lines:
        yield Text(f"\n{title}", style="dim")
        yield from map(Text, lines[:MOST_LINES])
    if len(lines) > MOST_LINES:
        yield Text(f"… and {len(lines) - MOST_LINES:,} more")


def _doubt(reason: str, names: Sequence[str]) -> str:
    return f"{reason}: {listed(dict.fromkeys(names))}"


def answer(trends: Sequence[Trend]) -> str:
    """The sentence that answers: did anything change?"""
    slower = sum(step.slower for trend in trends for step in trend.steps)
    faster = sum(not step.slower for trend in trends for step in trend.steps)
    verdicts = sum(len(trend.verdicts) for trend in trends)
    of = _cases(trends)
    if not (slower or faster or verdicts):
        return f"No step in {of}."
    parts = [(slower, "slower"), (faster, "faster")]
    said = [f"{count} {word}" for count, word in parts if count]
    if verdicts:
        said.append(f"{verdicts} change{'s' if verdicts > 1 else ''} of verdict")
    return f"Steps in {of}: {', '.join(said)}."


def _cases(trends: Sequence[Trend]) -> str:
    """``4 cases on 2 machines``."""
    machines = len({trend.series.machine for trend in trends})
    count = len({code_key(trend.series.case) for trend in trends})
    where = f" on {machines} machines" if machines > 1 else ""
    return f"{count:,} case{'s' if count != 1 else ''}{where}"
