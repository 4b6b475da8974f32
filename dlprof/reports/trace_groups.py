"""The rows of a trace by line, by function or by pair, and what a group of them is called."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlprof.reports.document import Tone
from dlprof.session.trace_file import Row
from dlprof.text.clean import clean

TONES: dict[str, Tone] = {"view": "view", "copy": "copy", "mixed": "copy", "waits": "bad"}


@dataclass(frozen=True)
class Group:
    """What one row of the table shows."""

    place: str
    code: str
    rows: tuple[Row, ...]

    def total(self, name: str) -> int:
        return sum(getattr(row, name) for row in self.rows)

    @property
    def result(self) -> str:
        return result_of(self.rows)


def result_of(rows: Sequence[Row]) -> str:
    """``waits`` if one did, else what all are: ``view``, ``copy``, ``mixed`` or ``unknown``."""
    if any(row.waits for row in rows):
        return "waits"
    found = {row.result for row in rows}
    return found.pop() if len(found) == 1 else "mixed"


def grouped(rows: Sequence[Row], by: str) -> list[Group]:
    keys: dict[str, Callable[[Row], tuple[Any, ...]]] = {
        "line": lambda row: (id(row),),
        "function": lambda row: (row.file, row.function),
        "pair": lambda row: (row.producer, row.consumer),
    }
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(keys[by](row), []).append(row)
    return [_group(members, by) for members in found.values()]


def _group(rows: list[Row], by: str) -> Group:
    first = rows[0]
    file = short_file(first.file)
    function = first.function.replace(".<locals>.", ".")
    if by == "pair":
        return Group(f"{first.producer} → {first.consumer}", "", tuple(rows))
    if by == "function":
        code = ", ".join(dict.fromkeys(row.conversion for row in rows))
        return Group(clean(f"{file} {function}"), clean(code), tuple(rows))
    place = f"{file}:{first.line}" + ("" if function == "<module>" else f" {function}")
    return Group(clean(place), clean(first.expression or first.conversion), tuple(rows))


def short_file(file: str) -> str:
    """The path below the working folder; the name alone elsewhere."""
    if file.startswith("<"):
        return file
    try:
        relative = Path(file).relative_to(Path.cwd())
    except (ValueError, OSError):
        return os.path.basename(file)  # noqa: PTH119 - it may be no path at all
    return relative.as_posix()
