"""A history in words: names, steps, and what changed at them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from dlprof.analysis.quantity import plain_time
from dlprof.history.series import Cause, Series
from dlprof.history.trend import TimeStep, Trend
from dlprof.history.verdicts import VerdictStep
from dlprof.plan.axes import shape_text
from dlprof.text.clean import clean

LONGEST_LABEL = 40
HASH, COMMIT = 40, 12
"""Characters of a commit, and how many of them are shown."""
MOST_DIFFERENCES = 6
HEXADECIMAL = frozenset("0123456789abcdef")
LARGE, SMALL = 10.0, 0.1


@dataclass(frozen=True)
class Told:
    """A step in words. ``style`` is ``worse``, ``better`` or ``other``."""

    when: datetime
    trend: Trend
    what: str
    brought: str
    style: str


def name_of(series: Series) -> str:
    return clean(series.case.code)


def array_of(series: Series) -> str:
    """The pair and the array."""
    case = series.case
    words = [f"{case.producer} → {case.consumer}", shape_text(case.shape), case.dtype]
    words += [case.layout, case.device]
    return clean("  ".join(words))


def when_text(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M}"


def label_text(label: str) -> str:
    """A commit is shown by its first characters."""
    stem, dash, rest = label.partition("-")
    if len(stem) == HASH and set(stem) <= HEXADECIMAL:
        label = stem[:COMMIT] + dash + rest
    return clean(label, LONGEST_LABEL)


def steps_of(trends: Iterable[Trend]) -> list[Told]:
    """All steps in words, newest first."""
    found = [told for trend in trends for told in _told(trend)]
    return sorted(found, key=lambda told: told.when, reverse=True)


def _told(trend: Trend) -> Iterator[Told]:
    for step in trend.steps:
        when = step.cause.behind.entry.created
        style = "worse" if step.slower else "better"
        yield Told(when, trend, time_step_text(step), brought_text(step.cause), style)
    for verdict in trend.verdicts:
        when = verdict.cause.behind.entry.created
        style = verdict.change.direction if verdict.change.direction != "lost" else "other"
        yield Told(when, trend, verdict_text(verdict), brought_text(verdict.cause), style)


def time_step_text(step: TimeStep) -> str:
    """``2.0 us → 2.4 us: 1.20 (1.17-1.23) times as long``."""
    old, new = (plain_time(value, 3) for value in step.times_ns)
    found = step.step
    low, high = (number(end) for end in found.interval)
    text = f"{old} → {new}: {number(found.ratio)} ({low}-{high}) times as long"
    if step.page_faults is not None:
        few, many = (f"{value:.0f}" for value in step.page_faults)
        text += f"; page faults per call {few} → {many}: another mode"
    if step.shared:
        count, cases = step.shared
        which = f"all {cases}" if count == cases else f"{count} of {cases}"
        text += f"; {which} cases shift here: the machine, or what they share"
    return text


def number(ratio: float) -> str:
    if ratio >= LARGE:
        return f"{ratio:,.0f}"
    return f"{ratio:.2f}" if ratio >= SMALL else f"{ratio:.2g}"


def verdict_text(step: VerdictStep) -> str:
    """``ownership: view, now copy (worse)``."""
    change = step.change
    word = change.severity if change.worse else change.direction
    return clean(f"{change} ({word})")


def brought_text(brought: Cause) -> str:
    """What changed between the sessions around a step; labels first, then versions."""
    old, new = (label_text(label) for label in brought.labels)
    parts = [] if old == new else [f"label {old or 'none'} → {new or 'none'}"]
    order = {"version": 0, "machine": 1, "setting": 2}
    found = sorted(brought.differences, key=lambda one: order.get(one.kind, 3))
    parts += [clean(str(one)) for one in found[:MOST_DIFFERENCES]]
    if len(found) > MOST_DIFFERENCES:
        parts.append(f"{len(found) - MOST_DIFFERENCES} more")
    since = f"since {when_text(brought.before.entry.created)}: "
    return since + (", ".join(parts) or "no change of a version, setting or label is known")


def pending_of(trends: Sequence[Trend]) -> list[str]:
    """What newest sessions look like that are too few to tell."""
    machines = len({trend.series.machine for trend in trends}) > 1
    arrays = len({array_of(trend.series) for trend in trends}) > 1
    found = []
    for trend in trends:
        where = f" {array_of(trend.series)}" if arrays else ""
        where += f" on {trend.series.machine.name}" if machines else ""
        text = pending_text(trend)
        found += [f"{name_of(trend.series)}{where}: {text}"] if text else []
    return found


def pending_text(trend: Trend) -> str:
    """What the newest sessions look like; empty where they look like those before."""
    found = trend.pending
    if found is None:
        return ""
    sessions = "newest session" if found.sessions == 1 else f"{found.sessions} newest sessions"
    verb = "takes" if found.sessions == 1 else "take"
    return f"its {sessions} {verb} {number(found.ratio)} times as long; too few yet to tell"


def doubts_of(trends: Sequence[Trend]) -> dict[str, list[str]]:
    """Why sessions have no time for a case, and of which cases."""
    found: dict[str, list[str]] = {}
    for trend in trends:
        points = trend.series.points
        if points and points[-1].doubt:
            reason = clean(points[-1].doubt.strip().splitlines()[0])
            found.setdefault(f"no time in the newest session of the case: {reason}", []).append(
                name_of(trend.series)
            )
        if trend.series.missing:
            count = trend.series.missing
            reason = f"missing in the {count} newest session{'s' if count > 1 else ''}"
            found.setdefault(f"{reason} that were asked for it", []).append(name_of(trend.series))
    return found
