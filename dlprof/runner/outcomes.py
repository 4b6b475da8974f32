"""What the outcomes of workers add up to, where some of them were lost on the way."""

from __future__ import annotations

from typing import Any

from dlprof.plan.instruments import FIRST_CALL
from dlprof.protocol.messages import AFTER_DROP
from dlprof.runner.interpreter import Outcome
from dlprof.session.journal import INTERRUPTED

MEMORY_SIGNALS = ("SIGSEGV", "SIGBUS", "SIGABRT")
"""What a process dies of that reads memory which is gone."""


def status_of(outcome: Outcome) -> str:
    """The status of the session: what ended in an error of the worker's own is crashed, too."""
    return "crashed" if outcome.status == "failed" else outcome.status


def broke_in_company(outcome: Outcome) -> bool:
    """Whether a lost worker may be the work of the cases before: an import that hangs is not."""
    hung = outcome.status == "timeout" and outcome.stage in ("start", "import")
    return not outcome.alive and not hung


def died_before(outcome: Outcome) -> bool:
    """Whether a worker died before it began: of the case that it had served before this one."""
    return not outcome.alive and outcome.stage == "start"


def serves_no_more(outcome: Outcome) -> bool:
    """Whether a worker is gone, or its case left too little of it for the next ones."""
    return not outcome.alive or "left_open" in outcome.parts


def only_first_call(outcome: Outcome) -> Outcome:
    """What a process for the first call alone adds; its end says nothing of the rounds before."""
    found = Outcome("ok", None)
    found.parts = {name: part for name, part in outcome.parts.items() if name in FIRST_CALL}
    if not found.parts:
        found.failures = [
            {
                "instrument": "first call in a process of its own",
                "reason": outcome.reason or outcome.status,
            }
        ]
    return found


def take_over(whole: Outcome, outcome: Outcome, asked: tuple[str, ...]) -> tuple[str, ...]:
    """Add what a worker found to ``whole``; returns the instruments that it did not get to.

    A worker that was lost costs the instrument it was lost in, and that is an answer: a process
    that dies of reading a result whose source is gone proves that the result dangled.
    """
    whole.parts |= {name: part for name, part in outcome.parts.items() if name in asked}
    whole.failures += outcome.failures
    whole.output = whole.output or (outcome.output if not outcome.alive else None)
    if outcome.alive and outcome.status == "ok":
        return ()
    if outcome.alive and outcome.status == "invalid":  # all have answered, on a disturbed device
        whole.failures.append({"instrument": "diagnosis", "reason": outcome.reason or "invalid"})
        return ()
    instrument = instrument_of(outcome.stage)
    if instrument not in asked:
        whole.failures.append(
            {"instrument": "diagnosis", "reason": outcome.reason or outcome.status}
        )
        return ()
    whole.parts[instrument] = _lost_in(outcome)
    return asked[asked.index(instrument) + 1 :]


def interrupted(heard: Outcome, what: str) -> Outcome:
    """What is kept of a request that the user did not wait for the end of; ``what`` was measured.

    Of the instrument that it was at, nothing is said.
    """
    reason = f"{what} was interrupted during {heard.stage}"
    return Outcome(INTERRUPTED, reason, dict(heard.parts), list(heard.failures))


def interrupted_diagnosis(heard: Outcome, whole: Outcome, asked: tuple[str, ...]) -> Outcome:
    """The same of a diagnosis for which ``asked`` is asked; ``whole`` was found of it before."""
    kept = interrupted(heard, "the diagnosis")
    found = {name: part for name, part in kept.parts.items() if name in asked}
    kept.parts = {**whole.parts, **found}
    kept.failures = [*whole.failures, *kept.failures]
    return kept


def instrument_of(stage: str) -> str:
    """The instrument that a stage belongs to: ``lifetime`` of ``lifetime after drop``."""
    return stage.partition(" ")[0]


def _lost_in(outcome: Outcome) -> dict[str, Any]:
    """The verdict of the instrument in which a worker was lost, and what it knew by then."""
    known = outcome.parts.get("after_drop", {})
    died = outcome.stage == AFTER_DROP and any(
        name in (outcome.reason or "") for name in MEMORY_SIGNALS
    )
    return {
        "verdict": "dangling" if died or known.get("changed_after_drop") is True else "unknown",
        "evidence": {
            **known,
            "reason": outcome.reason or outcome.status,
            "worker": status_of(outcome),
        },
    }
