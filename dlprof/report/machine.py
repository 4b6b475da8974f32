"""What the self-test found, as a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dlprof.judge import NEED_TIMES
from dlprof.measuring.selftest import Outcome, Selftest
from dlprof.report.document import (
    Answer,
    Cell,
    Column,
    Document,
    Facts,
    Level,
    Lines,
    Section,
    Table,
)
from dlprof.runner.header import SIMULATED
from dlprof.runner.quantity import plain_time, significant
from dlprof.selftest.faults import NOT_ON_DEVICE, NOT_PLANTED

Places = Mapping[str, tuple[str, Mapping[str, str]]]
PLACES: Places = {
    "cpu": ("On the host, where queues are threads", NOT_PLANTED),
    "cuda": ("On a GPU, where queues are streams", NOT_ON_DEVICE),
}
"""The heading of each place, and the rules for which nothing is planted there."""
NO_TIMES = dict.fromkeys(NEED_TIMES, "dlprof takes no times on a simulated device")
SIMULATED_PLACES: Places = {
    "cuda": ("On the simulated device, where queues are threads", NOT_ON_DEVICE | NO_TIMES)
}
COLUMNS = (Column("planted"), Column("rule"), Column("found"), Column("result"))


def selftest_document(
    found: Selftest, no_streams: str | None = None, simulated: bool = False
) -> Document:
    """``no_streams`` is why nothing was planted on a device, which may be a ``simulated`` one."""
    measured = [outcome for outcome in found.outcomes if not outcome.unmeasured]
    faults = [outcome for outcome in measured if outcome.plant.rule is not None]
    controls = [outcome for outcome in measured if outcome.plant.rule is None]
    right = sum(not outcome.missed for outcome in faults)
    missed = ", ".join(f"{one.plant.name} ({one.plant.rule})" for one in faults if one.missed)
    alarms = sum(bool(outcome.false_alarms) for outcome in controls)
    answers = (
        Answer("faults found", "", "", f"{right} of {len(faults)}"),
        *([Answer("missed", "", note=missed)] if missed else []),
        Answer("false alarms", "", "", f"{alarms} on {len(controls)} controls"),
    )
    facts = (
        []
        if simulated
        else [
            (
                "timer resolution",
                "?" if found.resolution_ns is None else plain_time(found.resolution_ns),
            ),
            (
                "noise of a view's time",
                "?" if found.noise is None else f"±{significant(100 * found.noise, 2)} %",
            ),
        ]
    )
    if no_streams:
        facts.append(("on a GPU", f"nothing was planted: {no_streams.rstrip('.')}"))
    machine = [Section("This machine", (Facts(tuple(facts)),), Level.FIRST)] if facts else []
    sections = (*_places(found, SIMULATED_PLACES if simulated else PLACES), *machine)
    notices = (f"{SIMULATED[:1].upper()}{SIMULATED[1:]}.",) if simulated else ()
    return Document("Self-test", notices=notices, answers=answers, sections=sections)


def _places(found: Selftest, places: Places) -> Iterator[Section]:
    for device, (heading, not_planted) in places.items():
        here = [outcome for outcome in found.outcomes if outcome.plant.device == device]
        if here:
            ranked = sorted(here, key=lambda one: not (one.missed or one.false_alarms))
            table = Table(COLUMNS, tuple(map(_row, ranked)))
            lines = [f"{rule} is not planted: {why}" for rule, why in not_planted.items()]
            lines += [
                f"{one.plant.name} was not measured: {one.reason}" for one in here if one.unmeasured
            ]
            yield Section(heading, (table, Lines(tuple(lines))), Level.FIRST)


def _row(outcome: Outcome) -> tuple[Cell, ...]:
    verdict = Cell("FALSE ALARM", "bad") if outcome.false_alarms else Cell("ok", "better")
    if outcome.missed:
        verdict = Cell("MISSED", "bad")
    if outcome.unmeasured:
        verdict = Cell("NOT MEASURED", "copy")
    found = ", ".join(outcome.found) or "nothing"
    return Cell(outcome.plant.name), Cell(outcome.plant.rule or "control"), Cell(found), verdict
