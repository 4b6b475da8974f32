"""The self-test as a document: what was planted, what was found, and what the timers can tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dlprof.analysis.quantity import plain_time
from dlprof.measuring.selftest import Outcome, Selftest
from dlprof.reports.document import (
    Answer,
    Cell,
    Column,
    Document,
    Facts,
    Level,
    Lines,
    Section,
    Table,
    Tone,
)
from dlprof.selftest.faults import NOT_ON_DEVICE, NOT_PLANTED

PLACES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "cpu": ("On the host, where queues are threads", NOT_PLANTED),
    "cuda": ("On a GPU, where queues are streams", NOT_ON_DEVICE),
}
"""The heading of each place, and the rules for which nothing is planted there."""
COLUMNS = (Column("planted"), Column("rule"), Column("found"), Column("result"))
TONES: dict[str, Tone] = {"MISSED": "bad", "FALSE ALARM": "bad", "NOT MEASURED": "copy"}


def selftest_document(found: Selftest, no_streams: str | None = None) -> Document:
    """``no_streams`` is why nothing was planted on a device."""
    unmeasured = [
        f"{outcome.plant.name} on {outcome.plant.device}: {outcome.reason or 'no reason given'}"
        for outcome in found.unmeasured
    ]
    sections = list(_places(found))
    if unmeasured:
        sections.append(Section("Not measured", (Lines(tuple(unmeasured)),), Level.FIRST))
    resolution = "?" if found.resolution_ns is None else plain_time(found.resolution_ns)
    noise = "?" if found.noise is None else f"±{found.noise:.1%}"
    facts = [("timer resolution", resolution), ("noise of a view's time", noise)]
    if no_streams:
        facts.append(("on a GPU", f"nothing was planted: {no_streams.rstrip('.')}"))
    sections.append(Section("This machine", (Facts(tuple(facts)),), Level.FIRST))
    return Document("Self-test", answers=_answers(found), sections=tuple(sections))


def _answers(found: Selftest) -> tuple[Answer, ...]:
    measured = [outcome for outcome in found.outcomes if not outcome.unmeasured]
    faults = [outcome for outcome in measured if outcome.plant.rule is not None]
    controls = [outcome for outcome in measured if outcome.plant.rule is None]
    right = sum(not outcome.missed for outcome in faults)
    alarms = sum(bool(outcome.false_alarms) for outcome in controls)
    return (
        Answer("faults found", "", "", f"{right} of {len(faults)}"),
        Answer("false alarms", "", "", f"{alarms} on {len(controls)} controls"),
    )


def _places(found: Selftest) -> Iterator[Section]:
    for device, (heading, not_planted) in PLACES.items():
        here = [outcome for outcome in found.outcomes if outcome.plant.device == device]
        if here:
            table = Table(COLUMNS, tuple(map(_row, here)))
            left = tuple(f"{rule} is not planted: {why}" for rule, why in not_planted.items())
            yield Section(heading, (table, Lines(left)), Level.FIRST)


def _row(outcome: Outcome) -> tuple[Cell, ...]:
    verdict = _verdict(outcome)
    return (
        Cell(outcome.plant.name),
        Cell(outcome.plant.rule or "control"),
        Cell(", ".join(outcome.found) or "nothing"),
        Cell(verdict, TONES.get(verdict, "better")),
    )


def _verdict(outcome: Outcome) -> str:
    if outcome.unmeasured:
        return "NOT MEASURED"
    if outcome.missed:
        return "MISSED"
    return "FALSE ALARM" if outcome.false_alarms else "ok"
