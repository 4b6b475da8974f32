"""Does it come back? The rule on crashes and hangs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from dlprof.analysis.case_view import CaseView
from dlprof.analysis.cases import Cases, by
from dlprof.rules import observations, words
from dlprof.rules.lifetime import is_dangling
from dlprof.rules.rule import Claim, Rule

DIAGNOSIS = ("ordering", "lifetime", "early_write", "peak_memory")
LONGEST_REASON = 4000
LOST = re.compile(r"(?P<how>.+) during (?P<stage>[a-z_ ]+?)(?: \(.*\))?", re.DOTALL)
"""How the parent tells of a worker that is gone, and at which stage."""
NOT_THE_CONVERSION = ("start", "import", "create")
NOT_A_CRASH = ("the probe is faulty", "broken answer from the worker")


class End(NamedTuple):
    """How a case ended: in which words, at which stage, and how bad that is."""

    severity: str
    how: str
    stage: str


def crash(survey: Cases) -> Iterator[Claim]:
    """The process died, or gave no answer within the time limit."""
    ends = {case.index: end for case in survey.cases if (end := _end(case)) is not None}
    ended = [case for case in survey.cases if case.index in ends]
    causes = by(ended, lambda case: (case.pair, ends[case.index][:2]))
    for cases in causes.values():
        end = ends[cases[0].index]
        stages = list(dict.fromkeys(ends[case.index].stage for case in cases))
        during = " or ".join(filter(None, stages)) if all(stages) else ""
        other = survey.instead(cases[0])
        yield Claim(
            end.severity,
            cases,
            f"{words.codes(cases)}: {end.how}" + (f" during {during}" if during else ""),
            {"stage": end.stage or None},
            "" if other is None else words.instead_of(cases[0], other, "works"),
        )


def _end(case: CaseView) -> End | None:
    result = case.result
    reason = (result.reason or "").strip()
    if result.status in ("crashed", "timeout"):
        how, stage = _parts(reason)
        if reason.startswith(NOT_A_CRASH) or stage in NOT_THE_CONVERSION:
            return None
        return End("error", how or result.status, stage)
    return _lost_in_diagnosis(case)


def _lost_in_diagnosis(case: CaseView) -> End | None:
    for name in DIAGNOSIS:
        verdict = getattr(case.result, name)
        reason = (verdict.evidence.reason or "") if verdict is not None else ""
        how, stage = _parts(reason)
        if stage.partition(" ")[0] != name or (name == "lifetime" and is_dangling(case)):
            continue
        # An instrument converts hundreds of times: no answer in time proves no hang.
        late = how.startswith("no answer")
        return End("info" if late else "error", how, stage)
    return None


def _parts(reason: str) -> tuple[str, str]:
    """How a worker was lost and at which stage; the stage is empty where the reason tells none."""
    match = LOST.fullmatch(reason[:LONGEST_REASON])
    return (match["how"], match["stage"]) if match else (reason[:200], "")


RULES = (Rule("DLP016", "crash", crash, seen=observations.end),)
