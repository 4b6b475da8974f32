"""A check: one question that a report for continuous integration answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dlprof.text.clean import clean

PASSED, FAILED, ERROR, SKIPPED = "passed", "failed", "error", "skipped"
"""ERROR is a check that came to no answer, and must not pass for that; SKIPPED is one that may."""

MOST_LINES = 60


@dataclass(frozen=True)
class Check:
    """``kind`` is the word or the rule by which it did not pass, ``said`` one line, ``text`` all.

    Text is fit to be shown: no characters but printable ones, and line ends in ``text``.
    """

    suite: str
    name: str
    outcome: str = PASSED
    kind: str = ""
    said: str = ""
    text: str = ""


def lines_of(texts: Iterable[str]) -> str:
    """Texts with line ends of anybody's as lines fit to be shown, at most sixty."""
    lines = [clean(line) for text in texts for line in text.strip().splitlines()]
    more = len(lines) - MOST_LINES
    return "\n".join(lines[:MOST_LINES] + ([f"… and {more:,} more lines"] if more > 0 else []))
