"""Names of files on the command line, before anything is done with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dlprof.errors import UsageError

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
    from dlprof.session import files

    given("the session", text)
    return files.STDIN if text == str(STANDARD) else Path(text)


def given(what: str, text: str | None) -> None:
    """Raise :class:`UsageError` for an empty name; None is not given at all."""
    if text == "":
        raise UsageError(f"{what} has an empty name: name a file")
