"""Remarks as annotations of a GitHub workflow: commands on stdout, one a line.

Escaped as ``@actions/core`` does it (https://github.com/actions/toolkit, command.ts): ``%`` and
line ends in the message, ``:`` and ``,`` in properties too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from dlprof.reports.ci.remark import Remark
from dlprof.text.lists import listed

LEVELS = {"error": "error", "warning": "warning"}
NOTICE = "notice"
MOST = 10
"""GitHub shows no more of a level in one step, and drops the others without a word."""

MOST_ARRAYS = 3
"""Pairs and arrays that one annotation names."""

SUMMARY_BYTES = 1 << 20
"""GitHub drops the summary of a step that is longer (1 MiB)."""


def commands(remarks: Sequence[Remark], file: str | None = None) -> str:
    """The commands, a line each: one for each finding, whatever number of ways it is about.

    ``file`` is the path in the repository that they point to; without one they stand at the run.
    """
    found: dict[str, list[list[Remark]]] = {}
    for group in _together(remarks):
        found.setdefault(LEVELS.get(group[0].severity, NOTICE), []).append(group)
    return "".join(line for level, groups in found.items() for line in _level(level, groups, file))


def room(text: str, taken_bytes: int) -> str:
    """As many whole lines of a summary as there is room for behind ``taken_bytes``."""
    left = SUMMARY_BYTES - taken_bytes
    if len(text.encode()) <= left:
        return text
    note = "\n… and more that a summary of GitHub has no room for\n"
    kept, used = [], len(note.encode())
    for line in text.splitlines(keepends=True):
        used += len(line.encode())
        if used > left:
            break
        kept.append(line)
    return "".join(kept) + note if used <= left or kept else ""


def _together(remarks: Iterable[Remark]) -> Iterator[list[Remark]]:
    """The remarks that say the same, of whatever ways."""
    found: dict[tuple[str, str], list[Remark]] = {}
    for remark in remarks:
        found.setdefault((remark.rule, remark.text), []).append(remark)
    yield from found.values()


def _level(level: str, groups: Sequence[Sequence[Remark]], file: str | None) -> Iterator[str]:
    shown = MOST if len(groups) <= MOST else MOST - 1
    for group in islice(groups, shown):
        yield _command(level, _title(group[0]), _message(group), file)
    if len(groups) > shown:
        more = f"{len(groups) - shown:,} more of this severity are in the report"
        yield _command(level, "dlprof", more, None)


def _title(remark: Remark) -> str:
    name = "" if remark.name == remark.rule else f" {remark.name}"
    return f"dlprof: {remark.rule}{name}"


def _message(group: Sequence[Remark]) -> str:
    first = group[0]
    subjects = list(dict.fromkeys(remark.subject for remark in group if remark.subject))
    about = "" if not subjects or subjects[0] in first.text else f"{listed(subjects)}: "
    arrays = list(dict.fromkeys(remark.array for remark in group if remark.array))
    more = [f"and {len(arrays) - MOST_ARRAYS:,} more"] if len(arrays) > MOST_ARRAYS else []
    parts = (f"{about}{first.text}", first.advice, *arrays[:MOST_ARRAYS], *more)
    return "\n".join(part for part in parts if part)


def _command(level: str, title: str, message: str, file: str | None) -> str:
    properties = {"file": file, "line": "1", "title": title} if file else {"title": title}
    said = ",".join(f"{name}={_property(value)}" for name, value in properties.items() if value)
    return f"::{level} {said}::{_data(message)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
