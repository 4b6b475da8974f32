"""The selftest as text: planted against found, false alarms, and what the timers can tell."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from dlprof.analysis.quantity import plain_time
from dlprof.measuring.selftest import STOPPED, Outcome, Selftest
from dlprof.selftest.faults import NOT_ON_DEVICE, NOT_PLANTED
from dlprof.text.clean import clean

LONGEST_REASON = 200
COLUMNS = 80


def render(found: Selftest, no_streams: str | None = None) -> str:
    """A line for each plant, on the host and on a device, then the sums.

    ``no_streams`` is why nothing was planted on a device.
    """
    lines: list[str] = []
    for device, (title, not_planted) in PLACES.items():
        here = [outcome for outcome in found.outcomes if outcome.plant.device == device]
        if here:
            lines += [title, *_table(here, not_planted), ""]
    sums = _sums(found)
    if no_streams:
        reason = clean(no_streams.rstrip("."), LONGEST_REASON)
        sums.append(f"On a GPU: nothing was planted: {reason}.")
    return "\n".join([*lines, *(textwrap.fill(line, COLUMNS) for line in sums)]) + "\n"


PLACES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "cpu": ("On the host, where queues are threads:", NOT_PLANTED),
    "cuda": ("On a GPU, where queues are streams:", NOT_ON_DEVICE),
}
"""The title of each table, and the rules for which nothing is planted in that place."""
WHERE = {"cpu": "the host", "cuda": "a GPU"}


def _table(outcomes: Sequence[Outcome], not_planted: Mapping[str, str]) -> list[str]:
    return [
        f"{'planted':<18}{'rule':<9}{'found':<32}verdict",
        *map(_line, outcomes),
        *(f"{'-':<18}{rule:<9}{why}" for rule, why in not_planted.items()),
    ]


def _line(outcome: Outcome) -> str:
    plant = outcome.plant
    rules = ", ".join(outcome.found) or "nothing"
    return f"{plant.name:<18}{plant.rule or 'control':<9}{rules:<32}{_verdict(outcome)}"


def _verdict(outcome: Outcome) -> str:
    if outcome.unmeasured:
        return "NOT MEASURED"
    if outcome.missed:
        return "MISSED"
    return "FALSE ALARM" if outcome.false_alarms else "ok"


def _sums(found: Selftest) -> list[str]:
    measured = [outcome for outcome in found.outcomes if not outcome.unmeasured]
    faults = [outcome for outcome in measured if outcome.plant.rule is not None]
    controls = [outcome for outcome in measured if outcome.plant.rule is None]
    missed = sum(outcome.missed for outcome in faults)
    alarms = sum(bool(outcome.false_alarms) for outcome in controls)
    resolution = "?" if found.resolution_ns is None else plain_time(found.resolution_ns)
    noise = "?" if found.noise is None else f"±{found.noise:.1%}"
    found_text = f"{len(faults) - missed} of {len(faults)} faults found"
    return [
        f"{found_text}, {alarms} false alarms on {len(controls)} controls.",
        *_unmeasured(found.unmeasured),
        f"Timer resolution {resolution}; noise of a view's time {noise} (95 %, 3 processes).",
    ]


def _unmeasured(outcomes: Sequence[Outcome]) -> list[str]:
    stopped = sum(outcome.reason == STOPPED for outcome in outcomes)
    told = [f"Not measured, since {STOPPED}: {stopped} of what was planted."] if stopped else []
    return told + [
        f"Not measured on {WHERE[outcome.plant.device]}: {outcome.plant.name}:"
        f" {clean(outcome.reason or '', LONGEST_REASON)}"
        for outcome in outcomes
        if outcome.reason != STOPPED
    ]
