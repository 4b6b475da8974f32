"""Steps of inference: a table of strategies for each model and input, and what it comes to."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dlprof.analysis.quantity import plain_time, significant, time_text
from dlprof.reports.placement import share_text
from dlprof.reports.row import Row
from dlprof.session.model import Share, TimeMeasure
from dlprof.session.step_record import ShapeChange, Step
from dlprof.text.clean import clean, first_line
from dlprof.text.lists import listed

AHEAD = "ahead"
ORDINALS = {1: "next", 2: "2nd", 3: "3rd"}
LEAST_PERCENT = 2
ON_THE_HOST = (
    "On the host a step is done when its call returns: what 'ahead' allocates then overlaps with"
    " nothing, so it cannot help there."
)


def compose(rows: Sequence[Row]) -> list[RenderableType]:
    """A block for each model and input, and what the strategies are; empty without steps."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row.is_step and row.ready is not None:
            groups.setdefault(row.array, []).append(row)
    parts = [part for array, group in groups.items() for part in _block(array, group)]
    return [*parts, *_legend([row for group in groups.values() for row in group])]


def _block(array: tuple[str, ...], rows: Sequence[Row]) -> list[RenderableType]:
    name, shape, dtype, _, device = array
    return [Text(f"\n{name}, input {shape} {dtype} on {device}:"), _table(rows)]


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), show_edge=False, header_style="dim")
    table.add_column("strategy", no_wrap=True)
    table.add_column("latency", justify="right", overflow="fold")  # of several modes it is long
    for title in ("saves", "steps/s", "allocs", "buffers", "output", "new shape"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        step = row.step or Step()
        table.add_row(
            row.strategy,
            time_text(row.ready, row.process_medians_ns),
            saved_text(saved_of(row)),
            rate_text(reading(row)),
            allocations_text(step),
            buffers_text(step),
            output_text(row),
            change_text(step.shape_change),
            style="red" if row.changed or row.status != "ok" else "",
        )
    return table


def reading(row: Row) -> TimeMeasure | None:
    """A step of the strategy and the reading of its output."""
    return row.step.versus.reading if row.step and row.step.versus else None


def saved_text(share: Share | None) -> str:
    """``7 ±2 %``, ``22 ±<1 %``; ``?`` where the processes do not agree."""
    text = share_text(share)
    return text.removeprefix("-") if text.startswith("-0 ") else text


def saved_of(row: Row) -> Share | None:
    return row.step.versus.saved if row.step and row.step.versus else None


def tells(share: Share) -> bool:
    """Whether a share is told from nothing: two hundredths at least, as they are written, known
    well enough to be a number, and zero not in its interval.
    """
    if share.ci95 is None or not share.is_known or abs(round(100 * share.median)) < LEAST_PERCENT:
        return False
    return share.ci95[0] > 0 or share.ci95[1] < 0


def rate_text(pipeline: TimeMeasure | None) -> str:
    """Steps per second where each output is read."""
    if pipeline is None or pipeline.median_ns <= 0:
        return "-"
    rate = 1e9 / pipeline.median_ns
    return significant(rate, 3) if rate >= 100 else significant(rate, 2)  # noqa: PLR2004


def allocations_text(step: Step) -> str:
    """Allocations per step; ``?`` where the framework does not count."""
    found = step.allocations
    return "?" if found is None or found.per_call is None else f"{found.per_call:g}"


def buffers_text(step: Step) -> str:
    """``8 of 8``: how many outputs that were kept lie in memory of their own."""
    found = step.allocations
    if found is None or found.buffers is None or found.kept is None:
        return "?"
    return f"{found.buffers} of {found.kept}"


def output_text(row: Row) -> str:
    """How long an output lasts: ``stays``, ``until next``, ``until 2nd`` call."""
    if row.changed:
        return "wrong"
    reuse, after = row.step.reuse if row.step else None, after_calls(row)
    if after is not None:
        return f"until {ORDINALS.get(after, f'call {after}')}"
    words = {"kept": "stays", "unknown": "?"}
    return "?" if reuse is None else words.get(reuse.verdict, clean(reuse.verdict))


def after_calls(row: Row) -> int | None:
    """After how many further calls an output was another; None where it was not, or is unknown."""
    reuse = row.step.reuse if row.step else None
    found = reuse.evidence.get("after_calls") if reuse and reuse.verdict == "overwritten" else None
    return found if isinstance(found, int) else None


def change_text(change: ShapeChange | None) -> str:
    """What a change of shape adds to a step; ``?`` where it cannot be told from nothing."""
    if change is None:
        return "-"
    if change.cost_ci95_ns is None:
        return f"~{signed(change.cost_ns)}"
    return signed(change.cost_ns) if is_told(change) else "?"


def is_told(change: ShapeChange) -> bool:
    """Whether the cost can be told from nothing: its interval does not hold zero."""
    return change.cost_ci95_ns is not None and not (
        change.cost_ci95_ns[0] <= 0 <= change.cost_ci95_ns[1]
    )


def signed(value_ns: float) -> str:
    return f"{'+' if value_ns >= 0 else '-'}{plain_time(abs(value_ns))}"


def _legend(rows: Sequence[Row]) -> list[RenderableType]:
    """Each strategy as code with what it needs, once; and what could not be seen."""
    lines: dict[str, None] = {}
    for row in rows:
        before = f"; before: {row.setup}" if row.setup else ""
        lines[f"{row.pair} {row.code}{before}"] = None
    if any(row.strategy == AHEAD and row.device == "cpu" for row in rows):
        lines[ON_THE_HOST] = None
    return [Text(), *map(Text, (*lines, *_gap_lines(rows)))] if rows else []


def _gap_lines(rows: Sequence[Row]) -> list[str]:
    """What could not be seen of which steps; the same reason is told once for each model."""
    whole: dict[str, set[str]] = {}
    gaps: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        whole.setdefault(row.pair, set()).add(row.strategy)
        for gap in _gaps(row):
            gaps.setdefault((row.pair, gap), {})[row.strategy] = None
    return [
        f"{pair}{'' if set(names) == whole[pair] else f' {listed(list(names))}'}: {gap}"
        for (pair, gap), names in gaps.items()
    ]


def _gaps(row: Row) -> list[str]:
    """What was not found of a step that was measured, and why."""
    step, gaps = row.step, [note.replace("shape_change:", "new shape:") for note in row.notes]
    if row.status != "ok":
        gaps.append(f"{row.status}: {first_line(row.reason)}")
    if row.changed:
        gaps.append(f"another output than at first: {', '.join(row.changed)}")
    if step and step.allocations and step.allocations.reason:
        gaps.append(f"allocations unknown: {first_line(step.allocations.reason)}")
    if step and step.reuse and step.reuse.verdict == "unknown":
        gaps.append(f"output unknown: {first_line(str(step.reuse.evidence.get('reason')))}")
    return gaps
