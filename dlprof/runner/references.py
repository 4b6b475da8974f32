"""Reference costs in a session: how fast the machine was, round by round.

They stand in the journal beside the cases, under a number that no case has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pydantic import ValidationError

from dlprof.runner.interpreter import Worker
from dlprof.session.journal import Journal
from dlprof.session.model import Reference

PLACE = -1
BUDGET_NS = 10_000_000
LIMIT_S = 20.0


def measure(
    python: str, environment: str, round_: int, journal: Journal, quiet: Callable[[], None]
) -> None:
    """One process of an interpreter, without any framework; what cannot be had is left out.

    It is asked once ``quiet`` has returned, which waits for what still runs on the machine.
    """
    with Worker(python, {}) as worker:
        quiet()
        outcome = worker.ask({"do": "reference", "budget_ns": BUDGET_NS}, LIMIT_S)
    found = outcome.parts.get("reference")
    if outcome.status == "ok" and isinstance(found, dict):
        journal.add(PLACE, round_, {"status": "ok", "found": {**found, "environment": environment}})


def known(journal: Journal, round_: int) -> set[str]:
    """The environments that have one of a round."""
    return {one.environment for one in merged(journal) if one.round == round_}


def merged(journal: Journal) -> Iterator[Reference]:
    """All references that were measured, in order."""
    for round_, answer in journal.answers(PLACE):
        try:
            yield Reference.model_validate({**answer["found"], "round": round_})
        except ValidationError:
            continue  # a worker that was tampered with


def recall(references: Iterable[Reference], journal: Journal) -> None:
    """Put those of a session that is to be finished back into the journal."""
    for one in references:
        found = one.model_dump(exclude={"round"})
        journal.add(PLACE, one.round, {"status": "ok", "found": found})
