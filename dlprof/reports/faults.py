"""Which paths a finding calls wrong or unsafe; and which copies may be torn as others were."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dlprof.reports.row import Row, way
from dlprof.session.model import FindingRecord
from dlprof.text.clean import clean
from dlprof.text.lists import listed

Key = tuple[str, ...]

RACE = "DLP020"
DOUBT = f"{RACE}?"
"""The mark of what was not seen torn itself."""
UNSEEN = (
    f"{DOUBT} not seen torn, but others into the framework were, and copies that were whole prove"
    " nothing"
)
RETAINED = "DLP010"
READ_ONLY_LOST = "DLP009"

LONGEST_RULE = 12
LONGEST_WHERE = 60


def suspected(rows: Sequence[Row], findings: Iterable[FindingRecord]) -> list[Row]:
    """The rows, told which of them an error was found of.

    ``rows`` are those of all results of the session, in its order. What was found of a path at
    one shape holds for all of them: the diagnosis looks at the first only.
    """
    findings = list(findings)
    guilty: dict[tuple[str, ...], dict[str, None]] = {}
    for finding in findings:
        for index in finding.results if _is_guilt(finding) else ():
            if 0 <= index < len(rows):
                guilty.setdefault(way(rows[index]), {})[clean(finding.rule, LONGEST_RULE)] = None
    torn = {
        way(rows[index]): clean(str(finding.evidence.get("only_where") or ""), LONGEST_WHERE)
        for finding in findings
        if finding.rule == RACE
        for index in finding.results
        if 0 <= index < len(rows)
    }
    racing = {
        key
        for finding in findings
        if finding.rule == RACE
        for index in finding.results
        if 0 <= index < len(rows)
        for key in racing_of(rows[index])
    }
    writable = {
        way(rows[index])
        for finding in findings
        if finding.rule == READ_ONLY_LOST
        for index in finding.results
        if 0 <= index < len(rows)
    }
    found = []
    for row in rows:
        faults = tuple(guilty.get(way(row), ()))
        if RACE not in faults and may_race(row, racing):
            faults = (*faults, DOUBT)
        cautions = (READ_ONLY_LOST,) if way(row) in writable else ()
        if faults or cautions:
            row = replace(  # noqa: PLW2901
                row,
                suspect=bool(faults),
                faults=faults,
                cautions=cautions,
                torn_where=torn.get(way(row), ""),
            )
        found.append(row)
    return found


def _is_guilt(finding: FindingRecord) -> bool:
    return finding.severity == "error" or finding.rule == RETAINED


def racing_of(torn: Row) -> tuple[Key, ...]:
    """What else may be torn: what returns early of the same consumer; and all of the pair, where a
    call was torn that has nothing to wait for.
    """
    consumer = torn.frameworks.rpartition(" → ")[2]
    early = (torn.environment, consumer, torn.device)
    return (early, (torn.pair, torn.device)) if torn.ends_whole else (early,)


def may_race(row: Row, racing: set[Key]) -> bool:
    """Whether it may copy as what was seen torn does: whole ones prove nothing then."""
    if row.is_step or not racing or (row.owner == "view" and not row.copies_elsewhere):
        return False
    return (row.pair, row.device) in racing or (not row.ends_whole and racing_of(row)[0] in racing)


def notes(rows: Iterable[Row]) -> list[str]:
    """What the mark of torn copies leaves open, and of which paths."""
    marked: dict[str, dict[str, None]] = {}
    for row in rows:
        if text := note(row):
            marked.setdefault(text, {})[row.code] = None
    ordered = sorted(marked.items(), key=lambda one: one[0] == UNSEEN)
    return [f"{text}: {listed(codes)}" for text, codes in ordered]


def note(row: Row) -> str:
    """What the mark of a torn copy leaves open of this path; empty without one, or if nothing."""
    if DOUBT in row.faults:
        return UNSEEN
    return f"{RACE} torn only where {row.torn_where}" if row.torn_where else ""


def is_unlooked_copy(row: Row) -> bool:
    """Whether it is a copy that may be late, and nobody looked: only what has nothing to wait for
    is known to end with a whole one.
    """
    return row.unwritten and not row.ends_whole


def only_races(row: Row) -> bool:
    """Whether nothing is known against it but that a write may tear it before it is waited for."""
    whole = row.status == "ok" and not row.unseen and not row.promise_broken
    return whole and bool(row.faults) and set(row.faults) <= {RACE, DOUBT}


def how_seen(row: Row) -> str:
    """The rule that says so, and where alone it was seen."""
    mark = DOUBT if DOUBT in row.faults else RACE
    return f"{mark}, seen only where {row.torn_where}" if row.torn_where else mark
