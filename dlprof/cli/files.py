"""Files on the command line: how they are named, and which must not be one.

What is written last would replace what was there before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path

from dlprof.errors import UsageError

STANDARD = Path("-")
"""Stdin or stdout, as elsewhere."""
LAST = "LAST"


def file(what: str, instead: str | None = None) -> Callable[[str], Path]:
    """What makes a path of the name that was given for ``what``.

    An empty name is refused; else it would be the folder one stands in. So is ``-``, where
    ``instead`` says what to do, None where ``-`` has a meaning.
    """

    def named(text: str) -> Path:
        given(what, text)
        if Path(text) == STANDARD and instead is not None:
            raise UsageError(f"{what} must be a file: {instead}")
        return Path(text)

    return named


def session(text: str) -> Path:
    """The session that was named; ``-`` is that on stdin, ``LAST`` the newest."""
    from dlprof.session import files, state

    given("the session", text)
    if text == LAST:
        return state.last_session()
    return files.STDIN if text == str(STANDARD) else Path(text)


def session_name(path: Path) -> str:
    """What stands for a session in commands: ``LAST`` for the newest."""
    from dlprof.session import state

    try:
        return LAST if path == state.last_session() else str(path)
    except UsageError:
        return str(path)


def given(what: str, text: str | None) -> None:
    """Raise :class:`UsageError` for an empty name; None is not given at all."""
    if text == "":
        raise UsageError(f"{what} has an empty name: name a file")


def check_distinct(files: Mapping[str, str | Path | None]) -> None:
    """Raises :class:`UsageError` where two of the files, by what they are for, are the same.

    None and ``-`` are no files; devices and pipes may be named twice.
    """
    from dlprof.session.files import special

    named = {what: Path(file) for what, file in files.items() if file not in (None, "-", Path("-"))}
    for (one, first), (other, second) in combinations(named.items(), 2):
        if not special(first) and are_one(first, second):
            raise UsageError(f"{other} and {one} are the same file: {second}")


def check_no_session(path: Path) -> None:
    """Reports replace files, as everywhere; but what was measured is not replaced by a report.

    Raises :class:`UsageError`.
    """
    from dlprof.session.model import is_session

    if is_session(path):
        raise UsageError(f"cannot write {path}: a session is in it; name another file")


def are_one(first: Path, second: Path) -> bool:
    """Whether two names are of one file, also of one that is not there yet."""
    try:
        return first.samefile(second)
    except (OSError, RuntimeError, ValueError):  # one of them is not there yet
        pass
    try:
        return first.resolve() == second.resolve()
    except (OSError, RuntimeError, ValueError):  # a link that leads to itself
        return first.absolute() == second.absolute()
