"""Report the verdicts of one framework on DLPack and the array API standard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dlprof.conformance.check import SEVERITIES, STANDARDS
from dlprof.report.document import Answer, Cell, Column, Document, Section, Table, Tone
from dlprof.runner.conformance import CRASHED, Found
from dlprof.text import json_text
from dlprof.text.clean import counted, first_words

SCHEMA = "dlprof.conformance/1"
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

    def wrong(self, least: str = SEVERITIES[-1]) -> list[Found]:
        """Return violations and crashes of at least this severity, worst first."""
        return self.having(WRONG, least)

    def having(self, verdicts: Sequence[str], least: str) -> list[Found]:
        """Return checks with one of these verdicts and at least this severity, worst first."""
        strict = SEVERITIES[: SEVERITIES.index(least) + 1]
        return sorted(
            (one for one in self.found if one.verdict in verdicts and one.check.severity in strict),
            key=lambda one: (SEVERITIES.index(one.check.severity), ORDER.index(one.verdict)),
        )


def conformance_document(measured: Conformance) -> Document:
    name = f"{measured.framework} {measured.version}".strip()
    roles = {
        role: [one for one in measured.found if one.check.role == role]
        for role in ("consumer", "producer")
    }
    wrong = measured.wrong()
    unknown = measured.having(("unknown",), SEVERITIES[-1])
    return Document(
        f"Conformance of {name}",
        f"{STANDARDS} · Python {measured.python}",
        answers=(
            Answer("answer", "", "", _answer(measured.framework, wrong, unknown)),
            *(Answer(f"as {role}", "", "", counts(found)) for role, found in roles.items()),
        ),
        tables=(Table(OPEN_COLUMNS, tuple(map(_row, (*wrong, *unknown)))),),
        sections=tuple(
            Section(f"All clauses as {role}", (Table(COLUMNS, tuple(_rows(found))),))
            for role, found in roles.items()
        ),
        commands=(
            f"dlprof conformance {measured.framework} --full",
            *(
                f"dlprof conformance {measured.framework} --repro {one.check.name}"
                for one in wrong[:1]
            ),
        ),
    )


def _answer(framework: str, wrong: Sequence[Found], unknown: Sequence[Found]) -> str:
    """Count the violated clauses by severity, and the unknown ones."""
    words = [one.check.severity for one in wrong]
    counts = ", ".join(f"{words.count(word)} {word}" for word in SEVERITIES if word in words)
    clauses = counted(len(words), "clause")
    verb = f"violates {clauses} of the standards: {counts}" if words else "violates no clause"
    open_ = f"; {len(unknown)} could not be checked" if unknown else ""
    return f"{framework} {verb}{open_}"


def counts(found: Sequence[Found]) -> str:
    """Count the clauses that hold, among those that apply."""
    verdicts = [one.verdict for one in found if one.verdict != "not applicable"]
    if not verdicts:
        return f"no clause applies: {found[0].observation}"
    words = {"refused": "refused (allowed)"}
    others = [
        f"{verdicts.count(one)} {words.get(one, one)}"
        for one in ORDER
        if one in verdicts and one != "holds"
    ]
    return "; ".join((f"{verdicts.count('holds')} of {len(verdicts)} clauses hold", *others))


def _row(one: Found) -> tuple[Cell, ...]:
    word = "Unknown" if one.verdict == "unknown" else "Seen"
    return (
        Cell(one.check.severity, "bad" if one.check.severity == "must" else "copy"),
        Cell(one.check.name, note=f"({one.check.role})"),
        Cell(f"{one.check.clause} {word}: {first_words(one.observation, MOST_WORDS)}"),
    )


def _rows(found: Sequence[Found]) -> Iterator[tuple[Cell, ...]]:
    for one in sorted(found, key=lambda one: ORDER.index(one.verdict)):
        observation = f" Seen: {one.observation}" if one.observation else ""
        yield (
            Cell(one.check.name, code=True),
            Cell(one.verdict, TONES.get(one.verdict, "dim")),
            Cell(f"{one.check.severity}: {one.check.clause}{observation}"),
            Cell(one.check.source, link=one.check.link),
        )


def as_json(measured: Conformance) -> str:
    """One JSON object, with a line end."""
    checks = [
        {
            **{name: getattr(one.check, name) for name in ("name", "role", "severity", "source")},
            "link": one.check.link,
            "clause": one.check.clause,
            "verdict": one.verdict,
            "observation": one.observation,
        }
        for one in measured.found
    ]
    content = {
        "schema": SCHEMA,
        "framework": measured.framework,
        "version": measured.version,
        "python": measured.python,
        "standards": STANDARDS,
        "checks": checks,
    }
    return f"{json_text.dump(content)}\n"
