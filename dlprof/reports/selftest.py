"""The selftest as text: planted against found, false alarms, and what the timers can tell."""

from __future__ import annotations

from dlprof.quantity import plain_time
from dlprof.selftest import Outcome, Selftest
from dlprof.synthetic.faults import NOT_PLANTED


def render(found: Selftest) -> str:
    """One line for each plant, then the sums."""
    lines = [f"{'planted':<18}{'rule':<9}{'found':<32}verdict"]
    lines += [_line(outcome) for outcome in found.outcomes]
    lines += [f"{'-':<18}{rule:<9}{why}" for rule, why in NOT_PLANTED.items()]
    return "\n".join([*lines, "", *_sums(found)]) + "\n"


def _line(outcome: Outcome) -> str:
    plant = outcome.plant
    verdict = "ok"
    if outcome.missed:
        verdict = "MISSED"
    elif outcome.false_alarms:
        verdict = "FALSE ALARM"
    rules = ", ".join(outcome.found) or "nothing"
    return f"{plant.name:<18}{plant.rule or 'control':<9}{rules:<32}{verdict}"


def _sums(found: Selftest) -> list[str]:
    faults = [outcome for outcome in found.outcomes if outcome.plant.rule is not None]
    controls = [outcome for outcome in found.outcomes if outcome.plant.rule is None]
    missed = sum(outcome.missed for outcome in faults)
    alarms = sum(bool(outcome.false_alarms) for outcome in controls)
    resolution = "?" if found.resolution_ns is None else plain_time(found.resolution_ns)
    noise = "?" if found.noise is None else f"±{found.noise:.1%}"
    found_text = f"{len(faults) - missed} of {len(faults)} faults found"
    return [
        f"{found_text}, {alarms} false alarms on {len(controls)} controls.",
        f"Timer resolution {resolution}; noise of a view's time {noise} (95 %, 3 processes).",
        "On a GPU: nothing was planted.",
    ]
