"""Text from outside in GitHub-flavored Markdown, without markup, links and mentions."""

from __future__ import annotations

import re

_MARKUP = re.compile(r"[\\`*_{}\[\]<>#!|~@&$]|:(?=//)|(?<=\bwww)\.", re.IGNORECASE)
_ENTITIES = {"@": "&#x40;", "#": "&#x23;", "<": "&lt;", ">": "&gt;", "&": "&amp;"}
"""An entity keeps GitHub from a mention or an issue's number; a backslash does not."""
_BACKTICKS = re.compile(r"`+")


def prose(text: str) -> str:
    """Return ``text`` for a line or a cell, without markup."""
    shown = " ".join(text.split())
    return _MARKUP.sub(lambda match: _ENTITIES.get(match[0], f"\\{match[0]}"), shown)


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
