"""The command of a session as text."""

from __future__ import annotations

import shlex

from dlprof.session.model import Header
from dlprof.text.clean import clean

LONGEST = 2000


def whole(header: Header) -> str:
    """What was typed, as a shell takes it."""
    return clean(shlex.join(["dlprof", *header.command]), LONGEST)


def short(header: Header) -> str:
    """Verb and frameworks: a title, the same wherever files lie and whatever was asked besides."""
    words = list(header.command)
    if words[:1] == ["time"]:
        words = ["time", *words[1:][-1:]]
    options = (place for place, word in enumerate(words) if place and word.startswith("-"))
    return clean(" ".join(["dlprof", *words[: next(options, len(words))]]))
