"""A page of its own for a history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlprof.history.entry import Entry
from dlprof.history.store import History
from dlprof.history.trend import Trend
from dlprof.reports.history import heading
from dlprof.reports.history_text import label_text, when_text
from dlprof.reports.html.history import past
from dlprof.reports.html.page import assets, template
from dlprof.text.clean import clean

MOST_SESSIONS = 500


def render(history: History, trends: Sequence[Trend], measure: str) -> str:
    """The page as text: it fetches nothing, and has no script."""
    newest = list(reversed(history.entries))
    content: dict[str, Any] = {
        "past": past(trends),
        "heading": heading(history, trends, measure),
        "sessions": [_session(entry) for entry in newest[:MOST_SESSIONS]],
        "more_sessions": max(len(newest) - MOST_SESSIONS, 0),
        "ignored": [tuple(map(clean, one)) for one in history.ignored],
    }
    return template("history.html.j2").render(**content, style=assets()["style"])


def _session(entry: Entry) -> tuple[str, ...]:
    environment = entry.session.environment
    packages = environment.get("packages")
    packages = packages if isinstance(packages, dict) else {}
    words = [f"{name} {version}" for name, version in packages.items()]
    label = label_text(entry.label.text)
    return (
        when_text(entry.created),
        label or "-",
        clean(str(environment.get("python", "?")), 20),
        clean(", ".join(words), 200),
        f"{len(entry.session.results):,}",
        "yes" if entry.session.complete else "no: it was stopped",
    )
