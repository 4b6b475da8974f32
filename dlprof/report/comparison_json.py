"""The comparison as JSON: the contract ``dlprof.comparison/1``; see docs/compare.md."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from dlprof.compare.comparison import REGRESSION, Compared, Comparison, exit_code
from dlprof.compare.times import FAMILY_LEVEL, SAME_LEVEL, Time
from dlprof.compare.verdicts import Change
from dlprof.report.comparison_document import answers_of, sentence
from dlprof.runner.session import Header
from dlprof.text import json_text

SCHEMA = "dlprof.comparison/1"
SIDE = {
    *("schema_", "created", "command", "seed", "rounds", "complete", "foreign_cores"),
    *("left_out", "environment"),
}


def render(comparison: Comparison, code: int) -> str:
    """One JSON object, with a line end."""
    settings = comparison.settings
    words = [time.word for _, time in comparison.times]
    content = {
        "schema": SCHEMA,
        "base": _side(comparison.base),
        "head": _side(comparison.head),
        "differences": [asdict(one) for one in comparison.differences],
        "times_comparable": not comparison.incomparable,
        "reason": comparison.incomparable or comparison.nothing or comparison.inconclusive or None,
        "floors": [asdict(floor) for floor in settings.floors],
        "family_level": FAMILY_LEVEL,
        "same_level": SAME_LEVEL,
        "wide_limit": settings.wide_limit,
        "counts": {word: words.count(word) for word in dict.fromkeys(words)},
        "expectations": [one.model_dump() for one in comparison.head.expectations],
        "regression": exit_code(comparison) == REGRESSION,
        "exit_code": code,
        "answers": [sentence(answer) for answer in answers_of(comparison)],
        "cases": [_case(case) for case in comparison.cases],
    }
    return _text(content)


def refusal(reason: str, code: int) -> str:
    """The comparison that a gate could not make, and why."""
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "base": None,
        "head": None,
        "differences": [],
        "times_comparable": False,
        "reason": reason,
        "counts": {},
        "regression": False,
        "exit_code": code,
        "answers": [reason],
        "cases": [],
    }
    return _text(content)


def _text(content: dict[str, Any]) -> str:
    return json.dumps(json_text.finite(content), indent=1, allow_nan=False) + "\n"


def _side(header: Header) -> dict[str, Any]:
    found: dict[str, Any] = header.model_dump(by_alias=True, mode="json", include=SIDE)
    return found


def _case(case: Compared) -> dict[str, Any]:
    return {
        "case": case.case.model_dump(by_alias=True),
        "word": case.word,
        "because": case.reason or None,
        "status": {"base": case.statuses[0], "head": case.statuses[1]},
        "reason": {"base": case.reasons[0] or None, "head": case.reasons[1] or None},
        "asked": case.asked,
        "times": [_time(time) for time in case.times],
        "changes": [change_json(change) for change in case.changes],
    }


def _time(time: Time) -> dict[str, Any]:
    return {
        "measure": time.measure,
        "word": time.word,
        "floor": asdict(time.floor),
        "base_ns": time.base_ns,
        "head_ns": time.head_ns,
        "ratio": time.ratio,
        "ci95": time.interval,
        "corrected": time.corrected,
        "bound": time.bound,
        "processes": {"base": time.processes[0], "head": time.processes[1]},
        "reason": time.reason or None,
        "note": time.note or None,
    }


def change_json(change: Change) -> dict[str, str]:
    """``worst`` is there only where the processes of HEAD disagree."""
    return {name: text for name, text in asdict(change).items() if text}
