"""How the worker of a case was lost, in the conversion or in an instrument of the diagnosis."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dlprof.analysis.case_view import CaseView

DIAGNOSIS = ("ordering", "lifetime", "early_write", "peak_memory")
LONGEST_REASON = 4000
LOST = re.compile(r"(?P<how>.+) during (?P<stage>[a-z_ ]+?)(?: \(.*\))?", re.DOTALL)
"""How the parent reports a lost worker, and at which stage."""
NOT_THE_CONVERSION = ("start", "import", "create")
NOT_A_CRASH = ("the probe is faulty", "broken answer from the worker")
BAD_MEMORY = re.compile(r"killed by SIG(SEGV|BUS|ABRT|TRAP|ILL|FPE)\b")
"""Signals that bad memory raises; others come from outside."""


@dataclass(frozen=True)
class Ending:
    """How a worker was lost, in words, and at which stage; empty where that is not known."""

    how: str
    stage: str
    is_sure: bool = True
    """Whether it proves a fault. An instrument converts hundreds of times: an instrument that
    gives no answer in time proves no hang."""


def ending(case: CaseView) -> Ending | None:
    """How the case ended, if its conversion ended the worker; None if it came back."""
    result = case.result
    if result.status not in ("crashed", "timeout"):
        return _lost_in_diagnosis(case)
    reason = (result.reason or "").strip()
    how, stage = _parts(reason)
    if reason.startswith(NOT_A_CRASH) or stage in NOT_THE_CONVERSION:
        return None
    return Ending(how or result.status, stage)


def _lost_in_diagnosis(case: CaseView) -> Ending | None:
    for name in DIAGNOSIS:
        verdict = getattr(case.result, name)
        if verdict is None or (name == "lifetime" and is_dangling(case)):
            continue
        how, stage = _parts(verdict.evidence.reason or "")
        if stage.partition(" ")[0] == name or verdict.evidence.worker in ("crashed", "timeout"):
            is_late = verdict.evidence.worker == "timeout" or how.startswith("no answer")
            return Ending(how, stage or name, is_sure=not is_late)
    return None


def _parts(reason: str) -> tuple[str, str]:
    match = LOST.fullmatch(reason[:LONGEST_REASON])
    return (match["how"], match["stage"]) if match else (reason[:200], "")


def is_dangling(case: CaseView) -> bool:
    """Whether a change was seen, or the process died of a signal that bad memory raises."""
    lifetime = case.result.lifetime
    if lifetime is None or lifetime.verdict != "dangling":
        return False
    evidence = lifetime.evidence
    died = BAD_MEMORY.match(evidence.reason or "") is not None
    return evidence.changed_after_drop is True or died
