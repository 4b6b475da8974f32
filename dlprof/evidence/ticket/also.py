"""The other calls of a finding: the same script with each of them, if that does not take long."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dlprof.errors import NoReproducer
from dlprof.evidence.repro import reproducer
from dlprof.evidence.ticket.markdown import code, prose
from dlprof.evidence.ticket.run import Ran
from dlprof.session.model import FindingRecord, Session

MOST = 8
"""Calls that are tried; the rest is named."""
BUDGET_S = 60.0
"""No further call is tried after this time."""
SAID = {"there": "shows it too (exit code 1)", "gone": "**does not show it** (exit code 0)"}
LATE = f"not tried: those before took {BUDGET_S:g} s"
MANY = f"not tried: {MOST} others were"


@dataclass(frozen=True)
class Also:
    """Another call of a finding, and what its script did, or why it was not run."""

    code: str
    ran: Ran | str
    of: str = ""
    """Whose arrays it takes, where the finding's are those of several frameworks."""


def others(session: Session, finding: FindingRecord) -> list[tuple[Also, FindingRecord]]:
    """The other calls of a finding, and the finding as it would be of each of them alone.

    The same words are another call where they convert another framework's arrays.
    """
    found: dict[tuple[str, str], int] = {}
    for index in finding.results:
        if 0 <= index < len(session.results):
            case = session.results[index].case
            found.setdefault((case.producer, case.code), index)
    several = len({producer for producer, _ in found}) > 1
    return [
        (
            Also(text, "", producer if several else ""),
            finding.model_copy(update={"results": [index]}),
        )
        for (producer, text), index in list(found.items())[1:]
    ]


def tried(
    session: Session,
    finding: FindingRecord,
    run: Callable[[str], Ran],
    clock: Callable[[], float] = time.monotonic,
) -> list[Also]:
    """What the script of each other call does; ``run`` runs one."""
    begun = clock()
    found: list[Also] = []
    for other, alone in others(session, finding):
        if len(found) >= MOST:
            ran: Ran | str = MANY
        elif clock() - begun > BUDGET_S:
            ran = LATE
        else:
            ran = _ran(session, alone, run)
        found.append(replace(other, ran=ran))
    return found


def untried(session: Session, finding: FindingRecord) -> list[Also]:
    """The other calls by name."""
    return [other for other, _ in others(session, finding)]


def _ran(session: Session, alone: FindingRecord, run: Callable[[str], Ran]) -> Ran | str:
    try:
        return run(reproducer(session, alone).text)
    except NoReproducer as reason:
        return f"no script could be made of it: {reason}"


def told(found: Sequence[Also]) -> str:
    """Markdown: a line for each, empty for none."""
    if not found:
        return ""
    several = "these calls" if len(found) > 1 else "another call"
    tried_any = any(isinstance(one.ran, Ran) for one in found)
    how = " The same script with each of them:" if tried_any else ""
    lines = [_line(one) for one in found[: 2 * MOST]]
    more = len(found) - len(lines)
    lines += [f"- … and {more:,} more"] if more > 0 else []
    return "\n".join([f"The same was found of {several}.{how}", "", *lines])


def _line(one: Also) -> str:
    call = code(one.code) + (f" of {prose(one.of, 40)}" if one.of else "")
    if isinstance(one.ran, str):
        return f"- {call}" + (f": {prose(one.ran, 200)}" if one.ran else "")
    said = SAID.get(one.ran.verdict, f"**not reproduced** ({prose(one.ran.verdict, 100)})")
    saw = prose(one.ran.told, 200)
    return f"- {call}: {said}" + (f": {saw}" if saw else "")
