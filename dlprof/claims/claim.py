"""Claims on the conversions of a session, each with what speaks against it.

A claim holds of ways that were measured. What could not be told speaks against it as well, and so
does that nothing was measured: a test must not pass because nothing was looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dlprof.analysis.case_view import CaseView, waits
from dlprof.analysis.cases import by_environment
from dlprof.analysis.quantity import plain_time
from dlprof.analysis.safety import Safety
from dlprof.rules import RULES
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
    """Nothing speaks against any way, and all that could was looked at."""
    safeties = {
        id(case.result): cases.safety(case)
        for cases in by_environment(session.results, session.findings).values()
        for case in cases.cases
    }
    return _judge(session, lambda result: _unsafe(result, safeties.get(id(result))))


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
    loaded = found.evidence.loaded
    if loaded is None or loaded.host_ns is None or loaded.queued_ns is None:
        return word
    host_ns, queued_ns = loaded.host_ns, loaded.queued_ns
    times = f"takes {plain_time(host_ns)} behind {plain_time(queued_ns)} of queued work"
    return f"{word}: {times}"


def _unsafe(result: Result, safety: Safety | None) -> str | None:
    if safety is None:
        return "no conversion: nothing says whether it is safe"
    if safety.is_safe:
        return None
    if result.status != "ok":
        return safety.unknown
    if safety.level == "unsafe":
        return f"unsafe: {', '.join(map(_rule_text, safety.reasons))}"
    what = "its values survive" if safety.level == "unchecked" else "it is safe"
    return f"not known whether {what}: {safety.unknown}"


def _rule_text(reason: str) -> str:
    """``DLP018 promise-broken``; with a question mark for what another path was seen to break."""
    names = {rule.id: rule.name for rule in RULES}
    return f"{reason} {names.get(reason.rstrip('?'), '')}".strip()


def _named(finding: FindingRecord | None) -> str | None:
    return None if finding is None else f"{finding.severity} {finding.rule} {finding.name}"


def _reason(verdict: Verdict[Any] | None) -> str:
    return "it was not measured" if verdict is None else first_line(verdict.evidence.reason)
