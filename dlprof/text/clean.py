"""Make text from outside harmless: names, codes and error messages may be hostile."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

LONGEST = 400
MOST_BEGUN = 8
"""The most names that a message lists for the beginning of a word."""
MOST_NAMED = 3
HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
"""Unicode categories of characters that steer a terminal or a line."""
ALLOWED = "\n\t"
"""Unprintable characters that source text and messages may hold."""


def clean(text: str, longest: int = LONGEST) -> str:
    """Return one line of ``text``, cut, with control and format characters escaped."""
    shown = _escaped(text[: longest + 1])
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def sanitised(content: Any) -> Any:
    """Return JSON content with hidden characters escaped, except line ends and tabs.

    Content of a file or a worker passes here once, where it enters.
    """
    if isinstance(content, str):
        return _escaped(content, ALLOWED)
    if isinstance(content, dict):
        return {sanitised(key): sanitised(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [sanitised(value) for value in content]
    return content


def _escaped(text: str, allowed: str = "") -> str:
    if text.isprintable():  # nothing of HIDDEN is printable
        return text
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if character not in allowed and unicodedata.category(character) in HIDDEN
        else character
        for character in text
    )


def without_any_command(text: str, is_json: bool = False) -> str:
    """Return ``text`` without commands of GitHub's runner.

    These are ``::name::`` at the start of a line, and ``##[name]`` anywhere.
    """
    if is_json:
        return text.replace("##[", "#\\u0023[")
    lines = (
        line.replace("::", ": :", 1) if line.lstrip().startswith("::") else line
        for line in text.splitlines(keepends=True)
    )
    return "".join(lines).replace("##[", "## [")


def first_line(text: str | None) -> str:
    """Return the first line of a reason, cleaned, with a mark if there are more.

    A line that ends in a colon continues in the next one. A line without a letter is skipped: CuPy
    puts rules around its import errors.
    """
    lines = [line.strip() for line in (text or "").splitlines() if any(map(str.isalnum, line))]
    if not lines:
        return "no reason given"
    line, *more = lines
    while more and line.endswith(":"):
        line += f" {more.pop(0)}"
    return clean(f"{line} …" if more else line)


def first_words(text: str, most: int) -> str:
    """Return the first words of ``text`` in one line, with a mark if there are more."""
    words = text.split()
    return " ".join(words[:most]) + (" …" if len(words) > most else "")


def listed(names: Iterable[str]) -> str:
    """Return the first of ``names``, and the number of others."""
    found = list(names)
    more = len(found) - MOST_NAMED
    return ", ".join(found[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def counted(count: int, noun: str = "case") -> str:
    """Return a number with its noun: ``1 case``, ``1,200 cases``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def nearest(word: str, known: Iterable[str], otherwise: str = "", cutoff: float = 0.6) -> str:
    """Return ``did you mean 'view'?``; ``otherwise`` or all known names if none is near.

    A word that begins a few names means these.
    """
    from difflib import get_close_matches  # only a wrong word waits for it

    names = {name.lower(): name for name in known}
    beginnings = [name for name in names if name.startswith(word.lower())]
    near = (
        beginnings
        if 0 < len(beginnings) <= MOST_BEGUN
        else get_close_matches(word.lower(), names, 1, cutoff)
    )
    if near:
        *head, tail = (repr(names[name]) for name in near)
        return f"did you mean {' or '.join(filter(None, (', '.join(head), tail)))}?"
    return otherwise or f"known are {', '.join(names.values())}"
