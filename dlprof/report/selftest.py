"""Report a self-test."""

from __future__ import annotations

from collections.abc import Iterator

from dlprof.measuring.selftest import PlantResult, Selftest
from dlprof.report.document import Answer, Cell, Column, Document, Lines, Section, Table
from dlprof.runner.session import SIMULATED

PLACES = {"cpu": "On the host, where queues are threads", "cuda": "On a GPU"}
COLUMNS = (Column("planted"), Column("rule"), Column("found"), Column("result"))


def selftest_document(
    selftest: Selftest, no_streams: str | None = None, simulated: bool = False
) -> Document:
    """Return the document; ``no_streams`` is the reason if nothing was planted on a device."""
    measured = [outcome for outcome in selftest.outcomes if not outcome.unmeasured]
    faults = [outcome for outcome in measured if outcome.plant.rule is not None]
    controls = [outcome for outcome in measured if outcome.plant.rule is None]
    right = sum(not outcome.missed for outcome in faults)
    missed = ", ".join(f"{item.plant.name} ({item.plant.rule})" for item in faults if item.missed)
    alarms = sum(bool(outcome.false_alarms) for outcome in controls)
    answers = [Answer("faults found", note=f"{right} of {len(faults)}")]
    answers += [Answer("missed", note=missed)] if missed else []
    answers.append(Answer("false alarms", note=f"{alarms} on {len(controls)} controls"))
    if no_streams:
        answers.append(Answer("on a GPU", note=f"nothing was planted: {no_streams.rstrip('.')}"))
    return Document(
        "Self-test",
        notices=(SIMULATED,) if simulated else (),
        answers=tuple(answers),
        sections=tuple(_places(selftest, simulated)),
    )


def _places(selftest: Selftest, simulated: bool) -> Iterator[Section]:
    for device, heading in PLACES.items():
        group = [outcome for outcome in selftest.outcomes if outcome.plant.device == device]
        if group:
            ranked = sorted(group, key=lambda item: not (item.missed or item.false_alarms))
            texts = tuple(f"{item.plant.name}: {item.reason}" for item in group if item.unmeasured)
            notes = (Lines(texts),) if texts else ()
            name = "On the simulated device" if simulated and device == "cuda" else heading
            yield Section(name, (Table(COLUMNS, tuple(map(_row, ranked))), *notes), is_first=True)


def _row(outcome: PlantResult) -> tuple[Cell, ...]:
    verdict = Cell("FALSE ALARM", "bad") if outcome.false_alarms else Cell("ok", "better")
    if outcome.missed:
        verdict = Cell("MISSED", "bad")
    if outcome.unmeasured:
        verdict = Cell("NOT MEASURED", "copy")
    found = ", ".join(outcome.found) or "nothing"
    return Cell(outcome.plant.name), Cell(outcome.plant.rule or "control"), Cell(found), verdict
