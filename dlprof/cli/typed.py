"""What was typed, for the record of a run."""

from __future__ import annotations

import sys

STATEMENT_LAST = "time"
"""The verb whose last word is read as the user's own code."""


def typed(short: tuple[str, ...]) -> tuple[str, ...]:
    """The words of the command line; ``short`` where it is not what runs that verb, as in Python.

    A statement of one's own stands last, wherever it was typed.
    """
    verb, *words = _words() or ("",)
    if short[:1] != (verb,):
        return short
    if verb == STATEMENT_LAST and short[-1] in words:
        words.remove(short[-1])
        words.append(short[-1])
    return (verb, *words)


def _words() -> list[str]:
    """As text that a session can hold: an argument may be bytes of no encoding."""
    words = (word.encode("utf-8", "surrogateescape") for word in sys.argv[1:])
    return [word.decode("utf-8", "backslashreplace") for word in words]
