"""The sentences that answer for steps of inference: what is saved, what does not last."""

from __future__ import annotations

from collections.abc import Sequence

from dlprof.analysis.quantity import plain_time
from dlprof.inference.base import FRESH
from dlprof.plan.axes import shape_text
from dlprof.reports.row import Row
from dlprof.reports.steps import (
    after_calls,
    is_told,
    rate_text,
    reading,
    saved_of,
    saved_text,
    signed,
    tells,
)
from dlprof.session.model import Share

WORDS = {1: "next", 2: "second", 3: "third"}


def answer(rows: Sequence[Row]) -> str:
    """What the strategies for one model and input come to, against an output for each call."""
    where = f"{rows[0].pair}, {rows[0].shape} {rows[0].dtype} on {rows[0].device}"
    measured = [row for row in rows if row.ready is not None and not row.changed]
    fresh = next((row for row in measured if row.strategy == FRESH), None)
    others = [row for row in measured if row.strategy != FRESH]
    if fresh is None or not others:
        return f"{where}: no strategy could be compared with an output allocated at each call."
    sentences = [_savings(fresh, others), _hazards(others), _changes(measured)]
    return f"{where}: {' '.join(filter(None, sentences))}"


def _savings(fresh: Row, others: Sequence[Row]) -> str:
    """What is saved, and what costs more, as far as it can be told."""
    known = [(row, share) for row in others if (share := saved_of(row)) is not None]
    told = sorted((one for one in known if tells(one[1])), key=lambda one: -one[1].median)
    whole = f"{plain_time(fresh.cost_ns)} of a step that allocates its output"
    if not known:
        return f"what is saved of the {whole} could not be measured."
    if not any(share.ci95 for _, share in known):
        return f"one process has no interval, so what is saved of the {whole} is unknown."
    slower = [row.strategy for row, share in told if share.median < 0]
    text = f"no strategy saves what can be told of the {whole}."
    if told and told[0][1].median > 0:
        text = f"{_saving(*told[0], fresh)}{_throughput(told[0][0], fresh)}"
    return text + (f" {_and(slower)} {_take(slower)} more." if slower else "")


def _take(names: Sequence[str]) -> str:
    return "takes" if len(names) == 1 else "take"


def _saving(row: Row, share: Share, fresh: Row) -> str:
    """What one strategy saves: its share, of the latency that the table has."""
    return (
        f"{row.strategy} saves {plain_time(share.median * fresh.cost_ns)} of the"
        f" {plain_time(fresh.cost_ns)} of a step that allocates its output ({saved_text(share)})."
    )


def _throughput(row: Row, fresh: Row) -> str:
    """Both rates as the table has them; whether they differ is told by loops sampled in turn."""
    versus, before = row.step.versus if row.step else None, reading(fresh)
    if versus is None or versus.reading is None or before is None:
        return ""
    now, then = rate_text(versus.reading), rate_text(before)
    told = versus.saved_reading is not None and tells(versus.saved_reading)
    return f" With each output read: {now} steps/s instead of {then}" + (
        "." if told else ", which cannot be told apart."
    )


def _hazards(others: Sequence[Row]) -> str:
    """Which outputs do not last."""
    lost: dict[int, list[str]] = {}
    for row in others:
        after = after_calls(row)
        if after is not None:
            lost.setdefault(after, []).append(row.strategy)
    told = [
        f"that of {_and(names)} changes with the {WORDS.get(calls, f'{calls}th')} call"
        for calls, names in sorted(lost.items())
    ]
    return f"But an output does not always last: {', '.join(told)} after it." if told else ""


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _changes(rows: Sequence[Row]) -> str:
    """What another shape at each call costs, where that can be told."""
    found = [(row.strategy, row.step.shape_change) for row in rows if row.step]
    known = [(name, change) for name, change in found if change is not None]
    told = [f"{name} {signed(change.cost_ns)}" for name, change in known if is_told(change)]
    if not told:
        return ""
    other = shape_text(known[0][1].shape)
    return f"Another shape at each call ({other} and back) adds to a step: {', '.join(told)}."
