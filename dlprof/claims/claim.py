"""Claims on the conversions of a session, each with what speaks against it.

A claim holds of ways that were measured. What could not be told speaks against it as well, and so
does that nothing was measured: a test must not pass because nothing was looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dlprof.analysis.case_view import CaseView, mapping, number, waits
from dlprof.analysis.quantity import plain_time
from dlprof.reports.faults import suspected
from dlprof.reports.result_row import rows_of
from dlprof.reports.row import Row
from dlprof.session.model import FindingRecord, Result, Session, Verdict
from dlprof.text.clean import clean, first_line

WAITS_NOT = ("synchronous", "stream-ordered", "unordered")
"""``synchronous``: the producer's work is done before the conversion starts."""


@dataclass(frozen=True)
class Complaint:
    """What speaks against a claim; ``code`` is the way, ``index`` its place in the session."""

    code: str
    said: str
    index: int


@dataclass(frozen=True)
class Judged:
    """How many ways were looked at, and what speaks against the claim.

    ``refused`` has the reasons of the ways that the frameworks refuse: nothing speaks against
    them, but if there are no others nothing was looked at.
    """

    ways: int
    complaints: tuple[Complaint, ...]
    refused: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        return self.ways > 0 and not self.complaints


Objection = Callable[[Result], str | None]
"""What speaks against a claim on a conversion that was measured to its end; None for nothing."""


def are_views(session: Session) -> Judged:
    """No way copies, of those that are not documented to; of all where there are no others."""
    return _judge(session, _not("view"), lambda result: result.case.promise != "copy")


def are_copies(session: Session) -> Judged:
    """Every way copies, of those that are documented to; of all where there are no others."""
    return _judge(session, _not("copy"), lambda result: result.case.promise == "copy")


def do_not_wait(session: Session) -> Judged:
    """No way waits on the host for work that is queued on its source."""
    return _judge(session, _waits)


def are_safe(session: Session) -> Judged:
    """Every way keeps shape, dtype and values, does as documented, and no finding is an error."""
    rows = suspected(rows_of(session.results), session.findings)
    safe = {id(result): row for result, row in zip(session.results, rows, strict=True)}
    return _judge(session, lambda result: _unsafe(safe[id(result)]))


def without_findings(
    session: Session, rules: Collection[str], severities: Collection[str]
) -> Judged:
    """No finding is of one of these rules or severities. What could not be told finds nothing."""
    found = [f for f in session.findings if f.rule in rules or f.severity in severities]
    first = {index: finding for finding in reversed(found) for index in finding.results}
    places = {id(result): index for index, result in enumerate(session.results)}
    return _judge(session, lambda result: _named(first.get(places[id(result)])))


def _judge(
    session: Session,
    objection: Objection,
    asked: Callable[[Result], bool] = lambda _: True,
) -> Judged:
    every = list(enumerate(session.results))
    refused = [first_line(result.reason) for _, result in every if result.status == "unsupported"]
    tried = [(index, result) for index, result in every if result.status != "unsupported"]
    chosen = [(index, result) for index, result in tried if asked(result)] or tried
    return Judged(len(chosen), tuple(_complaints(chosen, objection)), tuple(dict.fromkeys(refused)))


def _complaints(results: Sequence[tuple[int, Result]], objection: Objection) -> Iterator[Complaint]:
    for index, result in results:
        lost = result.status in ("crashed", "timeout", "skipped")
        said = f"{result.status}: {first_line(result.reason)}" if lost else objection(result)
        if said is not None:
            yield Complaint(clean(result.case.code), clean(said), index)


def _not(wanted: str) -> Objection:
    def objection(result: Result) -> str | None:
        found = result.ownership
        if found is None or found.verdict == "unknown":
            return f"not known whether view or copy: {_reason(found)}"
        if found.verdict == wanted:
            return _elsewhere(result, wanted)
        if found.verdict == "varies":
            return f"a {wanted} in some processes only: {_reason(found)}"
        return f"a {found.verdict}"

    return objection


def _elsewhere(result: Result, wanted: str) -> str | None:
    """What the next array would give, where the producer's arrays begin at any address."""
    others = CaseView(0, result, result.alignment).words_by_address & {"view", "copy"} - {wanted}
    recipe = result.recipe
    anywhere = result.case.layout == "C" and recipe is not None and "aligned" in recipe.create
    if not (others and anywhere):
        return None
    return f"a {min(others)} where the source begins elsewhere, as the next one may"


def _waits(result: Result) -> str | None:
    found, word = result.ordering, waits(result.ordering)
    if found is not None and found.verdict in WAITS_NOT and word is None:
        return None
    if found is None or word is None:
        return f"not known whether it waits: {_reason(found)}"
    loaded = mapping(found.evidence.get("loaded"))
    host_ns, queued_ns = number(loaded.get("host_ns")), number(loaded.get("queued_ns"))
    if host_ns is None or queued_ns is None:
        return word
    times = f"takes {plain_time(host_ns)} behind {plain_time(queued_ns)} of queued work"
    return f"{word}: {times}"


def _unsafe(row: Row) -> str | None:
    if row.status != "ok":
        return f"{row.status}: {first_line(row.why_not)}"
    if row.changed:
        return f"does not keep {', '.join(row.changed)}"
    if row.promise_broken:
        is_ = {
            row.promise: "view where it begins elsewhere",
            "varies": f"{'view' if row.promise == 'copy' else 'copy'} in some processes",
        }.get(row.owner, row.owner)
        return f"documented as a {row.promise}, and is a {is_}"
    if row.suspect:
        return "a finding says that it is wrong or unsafe"
    unknown = _unknown(row)
    return f"not known whether {unknown}" if unknown else None


def _unknown(row: Row) -> str:
    """What nobody knows of a path, without which it cannot be called safe."""
    if row.unseen:
        return "it is safe: nothing of the result could be looked at"
    if row.unchecked:
        return f"its values survive: {row.unchecked}"
    if row.unlooked:
        return f"it is safe: {row.unlooked}"
    return "" if row.ready is not None else "it is safe: it has no time"


def _named(finding: FindingRecord | None) -> str | None:
    return None if finding is None else f"{finding.severity} {finding.rule} {finding.name}"


def _reason(verdict: Verdict[Any] | None) -> str:
    return "it was not measured" if verdict is None else first_line(verdict.evidence.get("reason"))
