"""Text from outside in GitHub-flavored Markdown, without markup, links and mentions."""

from __future__ import annotations

import re
from html import escape

_MARKUP = re.compile(r"[\\`*_{}\[\]<>#!|~@&$]|:(?=//)|(?<=\bwww)\.|\bgh-(?=\d)", re.IGNORECASE)
_REFERENCE = re.compile(r"[@#]|:(?=//)|\bgh-(?=\d)", re.IGNORECASE)
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_APART = "<!-- -->"
"""Keeps GitHub from a mention or an issue's number. It looks for these in the rendered page, so a
backslash or an entity does not."""
_BACKTICKS = re.compile(r"`+")


def prose(text: str) -> str:
    """Return ``text`` for a line or a cell, without markup."""
    shown = " ".join(text.split())
    return _MARKUP.sub(_harmless, shown)


def _harmless(match: re.Match[str]) -> str:
    if match[0][-1] in "@#-":
        return match[0] + _APART
    return _ENTITIES.get(match[0], f"\\{match[0]}")


def html(text: str) -> str:
    """Return ``text`` for an HTML element in Markdown."""
    return _REFERENCE.sub(rf"\g<0>{_APART}", escape(" ".join(text.split()), quote=False))


def code(text: str) -> str:
    """Return ``text`` as a code span that may stand in a cell."""
    shown = " ".join(text.splitlines()).replace("|", "\\|")
    fence = "`" * (_longest_run(shown) + 1)
    pad = " " if not shown.strip() or "`" in (shown[0], shown[-1]) else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def block(text: str, language: str = "") -> str:
    """Return lines of code or output in a fence that is longer than any within."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _longest_run(text: str) -> int:
    return max(map(len, _BACKTICKS.findall(text)), default=0)
