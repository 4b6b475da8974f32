"""What a scenario asks, where its values come from, and whether what it expects was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dlprof.analysis.case_view import mapping
from dlprof.reports.document import Cell, Column, Facts, Level, Section, Table, Tone
from dlprof.session.model import Header

TONES: dict[str, Tone] = {"met": "better", "not met": "bad"}
ORIGINS = {"file": "from the file", "command line": "from the command line", "default": "default"}


def scenario_of(header: Header) -> Mapping[str, Any]:
    """The scenario of a session, as the file holds it; empty where it has none."""
    return mapping(header.request.get("scenario"))


def sections(header: Header) -> Iterator[Section]:
    scenario = scenario_of(header)
    if not scenario:
        return
    if header.expectations:
        columns = (Column("expectation"), Column("result"), Column("reason"))
        rows = tuple(
            (Cell(one.text), Cell(one.verdict, TONES.get(one.verdict, "")), Cell(one.reason))
            for one in header.expectations
        )
        yield Section("Expectations", (Table(columns, rows),), Level.FIRST)
    facts = [("question", str(scenario.get("question") or ""))]
    facts += [("file", str(scenario.get("file") or ""))]
    facts += [("source", str(source)) for source in _list(scenario.get("sources"))]
    facts += origins(_list(scenario.get("origins")))
    yield Section("Scenario", (Facts(tuple(facts)),))


def origins(found: Sequence[Any]) -> list[tuple[str, str]]:
    """Where values come from, with the keys and values of each origin."""
    told: dict[str, list[str]] = {}
    for entry in found:
        if isinstance(entry, list | tuple) and len(entry) == 3:  # noqa: PLR2004 - key, value, origin
            key, value, origin = map(str, entry)
            told.setdefault(origin, []).append(f"{key} {value}")
    return [(words, "; ".join(told[name])) for name, words in ORIGINS.items() if name in told]


def _list(thing: object) -> list[Any]:
    return list(thing) if isinstance(thing, list | tuple) else []
