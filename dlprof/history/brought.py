"""What changed between two sessions of a case: what may have brought a step."""

from __future__ import annotations

from dataclasses import dataclass

from dlprof.compare.surroundings import Difference, differences
from dlprof.compare.verdicts import kept_differs
from dlprof.history.series import Point
from dlprof.session.model import Result

UNTOLD = ("seed", "rounds", "schema")
"""Settings that change no time."""


@dataclass(frozen=True)
class Brought:
    """What changed between the last session before a step and the first one behind it.

    ``labels`` are those of the two sessions, empty where they have none.
    """

    before: Point
    behind: Point
    labels: tuple[str, str]
    differences: tuple[Difference, ...]


def brought(before: Point, behind: Point) -> Brought:
    """What the two sessions at a step differ in."""
    labels = before.entry.label.text, behind.entry.label.text
    told = [one for one in differences(before.header, behind.header) if one.what not in UNTOLD]
    if kept_differs(before.result, behind.result):
        old, new = _timed(before.result), _timed(behind.result)
        told.append(Difference("what was timed", old, new, "setting"))
    return Brought(before, behind, labels, tuple(told))


def _timed(result: Result) -> str:
    kept = result.fresh_source is not None and result.fresh_source.verdict == "kept"
    return "a result that the framework keeps" if kept else "a new conversion"
