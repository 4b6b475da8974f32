"""Files that must not be one: what is written last would replace what was there before."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

from dlprof.errors import UsageError
from dlprof.session import model as sessions
from dlprof.session.files import special


def check_distinct(files: Mapping[str, str | Path | None]) -> None:
    """Raises :class:`UsageError` where two of the files, by what they are for, are the same.

    None and ``-`` are no files; devices and pipes may be named twice.
    """
    named = {what: Path(file) for what, file in files.items() if file not in (None, "-", Path("-"))}
    for (one, first), (other, second) in combinations(named.items(), 2):
        if not special(first) and are_one(first, second):
            raise UsageError(f"{other} and {one} are the same file: {second}")


def check_no_session(path: Path) -> None:
    """Reports replace files, as everywhere; but what was measured is not replaced by a report.

    Raises :class:`UsageError`.
    """
    if sessions.is_session(path):
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
