"""Problems as annotations of a GitHub workflow: commands on stdout, one a line.

Escaped as ``@actions/core`` does it (https://github.com/actions/toolkit, command.ts): ``%`` and
line ends in the message, ``:`` and ``,`` in properties too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from dlprof.reports.document import Check, Problem, first_of

LEVELS = {"error": "error", "warning": "warning", "info": "notice"}
MOST = 10
"""GitHub shows no more of a level in one step, and drops the others without a word."""
MOST_CODES = 3
SUMMARY_BYTES = 1 << 20
"""GitHub drops the summary of a step that is longer (1 MiB)."""


def commands(
    problems: Iterable[Problem], checks: Iterable[Check] = (), file: str | None = None
) -> str:
    """The commands, a line each: one for each check that did not pass, and for each problem.

    ``file`` is the path in the repository that they point to; without one they stand at the run.
    """
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for check in checks:
        if check.outcome in ("failed", "error"):
            # The kind is the title; the name says more.
            said = f"{check.name}: {check.reason}" if check.reason else check.said
            found["error"].append((check.kind, said))
    for problem in problems:
        found[LEVELS[problem.severity]].append((problem.rule, _message(problem)))
    return "".join(line for level in LEVELS.values() for line in _level(level, found[level], file))


def room(text: str, taken_bytes: int) -> str:
    """As many whole lines of a summary as there is room for behind ``taken_bytes``."""
    whole, left = text.encode(), SUMMARY_BYTES - taken_bytes
    if len(whole) <= left:
        return text
    note = "\n… and more that a summary of GitHub has no room for\n"
    kept = whole[: max(left - len(note.encode()), 0)].rpartition(b"\n")[0]
    return f"{kept.decode()}{note}" if kept else ""


def _level(level: str, found: list[tuple[str, str]], file: str | None) -> Iterator[str]:
    shown = MOST if len(found) <= MOST else MOST - 1
    for title, message in found[:shown]:
        yield _command(level, f"dlprof: {title}", message, file)
    if len(found) > shown:
        more = f"{len(found) - shown:,} more of this severity are in the report"
        yield _command(level, "dlprof", more, None)


def _message(problem: Problem) -> str:
    lines = (problem.sentence, *problem.advice, *first_of(problem.codes, MOST_CODES))
    return "\n".join(line for line in lines if line)


def _command(level: str, title: str, message: str, file: str | None) -> str:
    properties = {"file": file, "line": "1", "title": title} if file else {"title": title}
    said = ",".join(f"{name}={_property(value)}" for name, value in properties.items() if value)
    return f"::{level} {said}::{_data(message)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
