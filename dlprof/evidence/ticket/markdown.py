"""Text from outside in Markdown: shown as it is, never run, linked, or read as a mention."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from dlprof.text.clean import clean

FENCE = re.compile(r"`{3,}")
LONGEST_LINE = 400
MOST = 200_000
"""Characters of one text that are looked through for what is private; fewer of it are shown."""
MARKS = re.compile(r"([\\`*_{}\[\]<>#!|~@&])")


_public: ContextVar[Callable[[str], str]] = ContextVar("public", default=str)


@contextmanager
def publishing(redact: Callable[[str], str]) -> Iterator[None]:
    """Within it every text goes through ``redact`` before anything else is done to it.

    Escapes would hide what is private, and a cut would leave half of it.
    """
    token = _public.set(redact)
    try:
        yield
    finally:
        _public.reset(token)


def public(text: str) -> str:
    """``text`` as it may be published; of a very long one more than anybody shows."""
    return _public.get()(text[:MOST])


def code(text: str, longest: int = 300) -> str:
    """One line of code; GitHub reads no mention, link or HTML in it."""
    shown = clean(public(text), longest)
    longest_run = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    ticks = "`" * (longest_run + 1)
    pad = " " if shown[:1] in ("`", " ", "") or shown[-1:] in ("`", " ") else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def fenced(text: str, language: str = "") -> str:
    """A block of ``text``, line by line as it is; its fence is longer than any within."""
    lines = [clean(line, LONGEST_LINE) for line in public(text).expandtabs().split("\n")]
    longest = max((len(run) for run in FENCE.findall("\n".join(lines))), default=2)
    fence = "`" * max(3, longest + 1)
    return "\n".join((f"{fence}{language}", *lines, fence))


def prose(text: str, longest: int = 1500) -> str:
    """A sentence in which nothing means anything to Markdown or HTML."""
    return MARKS.sub(_escaped, clean(public(text), longest))


def _escaped(match: re.Match[str]) -> str:
    # An entity keeps GitHub from a mention or an issue's number; a backslash does not.
    return {"@": "&#64;", "#": "&#35;", "<": "&lt;", ">": "&gt;", "&": "&amp;"}.get(
        match[0], f"\\{match[0]}"
    )
