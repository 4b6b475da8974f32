"""Report checks of a framework against the standards, and a self-test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dlprof.conformance.check import SEVERITIES, STANDARDS
from dlprof.measuring.selftest import PlantResult, Selftest
from dlprof.report.document import Answer, Cell, Column, Document, Section, Table, Tone
from dlprof.runner.conformance import CRASHED, Found
from dlprof.runner.session import SIMULATED
from dlprof.text import json_text
from dlprof.text.clean import counted, first_words

SCHEMA = "dlprof.conformance/1"
CHECK_FIELDS = ("name", "role", "severity", "source", "link", "clause")
WRONG = (CRASHED, "violated")
ORDER = (*WRONG, "unknown", "refused", "holds", "not applicable")
TONES: dict[str, Tone] = {
    CRASHED: "bad",
    "violated": "bad",
    "unknown": "copy",
    "holds": "better",
}
OPEN_COLUMNS = tuple(map(Column, ("", "check", "what the standard says, and what was seen")))
COLUMNS = tuple(map(Column, ("check", "verdict", "clause", "source")))
MOST_WORDS = 10
"""Words of an observation on the first screen."""


@dataclass(frozen=True)
class Conformance:
    """The verdicts of all checks of one framework."""

    framework: str
    version: str
    python: str
    found: tuple[Found, ...]
    device: str = "cpu"
    options: str = ""
    """The options that choose interpreter, probes and device, for the next command."""

    def wrong(self, least: str = SEVERITIES[-1]) -> list[Found]:
        """Return violations and crashes of at least this severity, worst first."""
        return self.having(WRONG, least)

    def having(self, verdicts: Sequence[str], least: str) -> list[Found]:
        """Return checks with one of these verdicts and at least this severity, worst first."""
        strict = SEVERITIES[: SEVERITIES.index(least) + 1]
        return sorted(
            (row for row in self.found if row.verdict in verdicts and row.check.severity in strict),
            key=lambda row: (SEVERITIES.index(row.check.severity), ORDER.index(row.verdict)),
        )


def conformance_document(measured: Conformance) -> Document:
    name = f"{measured.framework} {measured.version}".strip()
    roles = {
        role: [row for row in measured.found if row.check.role == role]
        for role in ("consumer", "producer")
    }
    wrong = measured.wrong()
    unknown = measured.having(("unknown",), SEVERITIES[-1])
    is_simulated = measured.device.startswith("simulated")
    place = "a simulated CUDA device" if is_simulated else measured.device
    suffix = f" · arrays on {place}" if place != "cpu" else ""
    again = f"dlprof conformance {measured.framework} {measured.options}".rstrip()
    return Document(
        f"Conformance of {name}",
        f"{STANDARDS} · Python {measured.python}{suffix}",
        answers=(
            Answer("answer", "", "", _answer(measured.framework, wrong, unknown)),
            *(Answer(f"as {role}", "", "", counts(rows)) for role, rows in roles.items()),
        ),
        tables=(Table(OPEN_COLUMNS, tuple(map(_row, (*wrong, *unknown)))),),
        sections=tuple(
            Section(f"All clauses as {role}", (Table(COLUMNS, tuple(_rows(rows))),))
            for role, rows in roles.items()
        ),
        commands=(
            f"{again} --full",
            *(f"{again} --repro {row.check.name}" for row in wrong[:1]),
        ),
    )


NOUNS = {"must": "requirement", "should": "recommendation", "may": "option"}


def _answer(framework: str, wrong: Sequence[Found], unknown: Sequence[Found]) -> str:
    """Count the violated clauses by severity, and the unknown ones."""
    words = [row.check.severity for row in wrong]
    counts = (
        f"{counted(words.count(word), noun)} ({word.upper()}) not met"
        for word, noun in NOUNS.items()
        if word in words
    )
    verb = f": {', '.join(counts)}" if words else " violates no clause"
    open_ = f"; {len(unknown)} could not be checked" if unknown else ""
    return f"{framework}{verb}{open_}"


def counts(rows: Sequence[Found]) -> str:
    """Count the clauses that hold, among those that apply."""
    verdicts = [row.verdict for row in rows if row.verdict != "not applicable"]
    if not verdicts:
        return f"no clause applies: {rows[0].observation}"
    words = {"refused": "refused (allowed)"}
    texts = [
        f"{verdicts.count(verdict)} {words.get(verdict, verdict)}"
        for verdict in ORDER
        if verdict in verdicts and verdict != "holds"
    ]
    return "; ".join((f"{verdicts.count('holds')} of {len(verdicts)} clauses hold", *texts))


def _row(row: Found) -> tuple[Cell, ...]:
    word = "Unknown" if row.verdict == "unknown" else "Seen"
    return (
        Cell(row.check.severity, "bad" if row.check.severity == "must" else "copy"),
        Cell(row.check.name, note=f"({row.check.role})"),
        Cell(f"{row.check.clause} {word}: {first_words(row.observation, MOST_WORDS)}"),
    )


def _rows(rows: Sequence[Found]) -> Iterator[tuple[Cell, ...]]:
    for row in sorted(rows, key=lambda row: ORDER.index(row.verdict)):
        observation = f" Seen: {row.observation}" if row.observation else ""
        yield (
            Cell(row.check.name, code=True),
            Cell(row.verdict, TONES.get(row.verdict, "dim")),
            Cell(f"{row.check.severity}: {row.check.clause}{observation}"),
            Cell(row.check.source, link=row.check.link),
        )


def as_json(measured: Conformance) -> str:
    """One JSON object, with a line end."""
    checks = [
        {
            **{name: getattr(row.check, name) for name in CHECK_FIELDS},
            "verdict": row.verdict,
            "observation": row.observation,
        }
        for row in measured.found
    ]
    content = {
        "schema": SCHEMA,
        "framework": measured.framework,
        "version": measured.version,
        "python": measured.python,
        "device": measured.device,
        "standards": STANDARDS,
        "checks": checks,
    }
    return f"{json_text.dump(content)}\n"


PLACES = {"cpu": "On the host, where queues are threads", "cuda": "On a GPU"}
PLANT_COLUMNS = (Column("planted"), Column("rule"), Column("found"), Column("result"))


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
            name = "On the simulated device" if simulated and device == "cuda" else heading
            table = Table(PLANT_COLUMNS, tuple(map(_plant_row, ranked)))
            yield Section(name, (table,), is_first=True)


def _plant_row(outcome: PlantResult) -> tuple[Cell, ...]:
    verdict = Cell("FALSE ALARM", "bad") if outcome.false_alarms else Cell("ok", "better")
    if outcome.missed:
        verdict = Cell("MISSED", "bad")
    if outcome.unmeasured:
        verdict = Cell("NOT MEASURED", "copy")
    found = (outcome.unmeasured and outcome.reason) or ", ".join(outcome.found) or "nothing"
    return Cell(outcome.plant.name), Cell(outcome.plant.rule or "control"), Cell(found), verdict
