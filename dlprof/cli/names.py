"""Names of files on the command line, before anything is done with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dlprof.errors import UsageError
from dlprof.session import files

STANDARD = Path("-")
"""Stdin or stdout, as elsewhere."""


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
    """The session that was named; ``-`` is that on stdin."""
    given("the session", text)
    return files.STDIN if text == str(STANDARD) else Path(text)


def given(what: str, text: str | None) -> None:
    """Raise :class:`UsageError` for an empty name; None is not given at all."""
    if text == "":
        raise UsageError(f"{what} has an empty name: name a file")


def regular(what: str, text: str) -> Path:
    """The file of this name. Raises :class:`UsageError` where it is none."""
    given(what, text)
    path = files.at_home(Path(text))
    if path.is_file():
        return path
    if path.exists():
        kind = files.special(path) or "a folder"
        raise UsageError(f"{what} {text} is {kind}, not a regular file")
    raise UsageError(f"there is no {what.removeprefix('the ')} {text}")
