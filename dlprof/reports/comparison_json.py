"""The comparison as JSON: the contract ``dlprof.comparison/1``; see docs/compare.md."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from dlprof.analysis.slower import FAMILY_LEVEL, SAME_LEVEL
from dlprof.compare.comparison import Compared, Comparison
from dlprof.compare.outcome import Outcome
from dlprof.compare.times import Time
from dlprof.compare.verdicts import Change
from dlprof.plan.floors import Floor
from dlprof.reports.comparison_answers import answers_of, has_own_floor, sentence
from dlprof.session.model import Header
from dlprof.text import json_text

SCHEMA = "dlprof.comparison/1"


def render(comparison: Comparison, outcome: Outcome, exit_code: int) -> str:
    """One JSON object, with a line end."""
    found = json_text.finite(content(comparison, outcome, exit_code))
    return json.dumps(found, indent=1, allow_nan=False) + "\n"


def content(comparison: Comparison, outcome: Outcome, exit_code: int) -> dict[str, Any]:
    words = comparison.words()
    return {
        "schema": SCHEMA,
        "base": _side(comparison.base),
        "head": _side(comparison.head),
        "differences": [asdict(one) for one in comparison.differences],
        "times_comparable": comparison.invalid is None,
        "reason": comparison.invalid or outcome.nothing or None,
        "floors": [_floor(floor) for floor in comparison.floors],
        "own_floors": [_own(case, time) for case, time in _judged_apart(comparison)],
        "family_level": FAMILY_LEVEL,
        "same_level": SAME_LEVEL,
        "common_ratio": comparison.common,
        "counts": {word: words.count(word) for word in dict.fromkeys(words)},
        "expectations": [one.model_dump() for one in comparison.head.expectations],
        "not_looked_for": list(outcome.blind),
        "not_looked_at": [
            {"case": case.case.model_dump(by_alias=True), "measures": list(named)}
            for case, named in outcome.lost
        ],
        "regression": outcome.regression,
        "exit_code": exit_code,
        "answers": [sentence(answer) for answer in answers_of(comparison, outcome)],
        "cases": [_case(case) for case in comparison.cases],
        "ambiguous": [list(key) for key in comparison.ambiguous],
    }


def refusal(reason: str, exit_code: int) -> str:
    """The comparison that a gate could not make, and why."""
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "base": None,
        "head": None,
        "differences": [],
        "times_comparable": False,
        "reason": reason,
        "counts": {},
        "regression": False,
        "exit_code": exit_code,
        "answers": [reason],
        "cases": [],
        "ambiguous": [],
    }
    return json.dumps(found, indent=1) + "\n"


def _side(header: Header) -> dict[str, Any]:
    names = (
        "created",
        "command",
        "seed",
        "rounds",
        "complete",
        "foreign_cores",
        "left_out",
        "environment",
    )
    return {"schema": header.schema_, **{name: getattr(header, name) for name in names}}


def _floor(floor: Floor) -> dict[str, Any]:
    """``raised_from`` only where a calibration raised it."""
    return {name: value for name, value in asdict(floor).items() if value is not None}


def _judged_apart(comparison: Comparison) -> list[tuple[Compared, Time]]:
    return [
        (case, time)
        for case in comparison.cases
        for time in case.times
        if has_own_floor(comparison, time)
    ]


def _own(case: Compared, time: Time) -> dict[str, Any]:
    return {"code": case.case.code, **_floor(time.floor)}


def _case(case: Compared) -> dict[str, Any]:
    return {
        "case": case.case.model_dump(by_alias=True),
        "status": {"base": case.statuses[0], "head": case.statuses[1]},
        "reason": {"base": case.reasons[0], "head": case.reasons[1]},
        "asked": case.asked,
        "times": [_time(time) for time in case.times],
        "changes": [change_json(change) for change in case.changes],
    }


def _time(time: Time) -> dict[str, Any]:
    return {
        "measure": time.measure,
        "word": time.word,
        "floor": _floor(time.floor),
        "base_ns": time.base_ns,
        "head_ns": time.head_ns,
        "ratio": time.ratio,
        "ci95": time.interval,
        "corrected": time.corrected,
        "processes": {"base": time.processes[0], "head": time.processes[1]},
        "reason": time.reason or None,
        "note": time.note or None,
        "beyond_asked": time.beyond,
        "rounds_needed": time.rounds,
    }


def change_json(change: Change) -> dict[str, str]:
    """``worst`` is there only where the processes of HEAD disagree."""
    return {name: text for name, text in asdict(change).items() if text}
