"""A history as JSON: the contract ``dlprof.trend/1``; see docs/history.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from dlprof.analysis.slower import FAMILY_LEVEL
from dlprof.history.entry import Entry
from dlprof.history.series import Cause, Point
from dlprof.history.store import History
from dlprof.history.trend import Trend
from dlprof.reports.comparison_answers import sentence
from dlprof.reports.comparison_json import change_json
from dlprof.reports.history_document import answer_of

SCHEMA = "dlprof.trend/1"


def render(history: History, trends: Sequence[Trend], measure: str) -> str:
    """One JSON object, with a line end."""
    return json.dumps(content(history, trends, measure), indent=1, allow_nan=False) + "\n"


def content(history: History, trends: Sequence[Trend], measure: str) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "measure": measure,
        "family_level": FAMILY_LEVEL,
        "answer": sentence(answer_of(trends)),
        "sessions": [_session(entry) for entry in history.entries],
        "ignored": [{"file": name, "reason": reason} for name, reason in history.ignored],
        "older": history.left_out,
        "trends": [_trend(trend) for trend in trends],
    }


def _session(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "created": entry.created.isoformat(),
        "label": entry.label.text or None,
        "label_source": entry.label.source or None,
        "complete": entry.session.complete,
    }


def _trend(trend: Trend) -> dict[str, Any]:
    series = trend.series
    return {
        "case": series.case.model_dump(by_alias=True),
        "machine": {"name": series.machine.name, "facts": dict(series.machine.facts)},
        "points": [_point(point) for point in series.points],
        "steps": [
            {
                "ratio": step.step.ratio,
                "ci95": step.step.interval,
                "before_ns": step.times_ns[0],
                "behind_ns": step.times_ns[1],
                "sessions_before": step.step.before,
                "sessions_behind": step.step.behind,
                "page_faults": step.page_faults,
                "shared_by": step.shared[0] if step.shared else None,
                **_brought(step.cause),
            }
            for step in trend.steps
        ],
        "verdicts": [
            {**change_json(step.change), **_brought(step.cause)} for step in trend.verdicts
        ],
        "missing": series.missing,
    }


def _point(point: Point) -> dict[str, Any]:
    return {
        "session": point.entry.id,
        "time_ns": point.time_ns,
        "processes_ns": [process.time_ns for process in point.side],
        "status": point.result.status,
        "doubt": point.doubt or None,
    }


def _brought(brought: Cause) -> dict[str, Any]:
    return {
        "last_before": brought.before.entry.id,
        "first_behind": brought.behind.entry.id,
        "when": brought.behind.entry.created.isoformat(),
        "labels": [label or None for label in brought.labels],
        "differences": [asdict(one) for one in brought.differences],
    }
