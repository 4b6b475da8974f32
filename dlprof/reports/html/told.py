"""Text with what is code in it shown as code, and our own Markdown as HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable

from markupsafe import Markup, escape

MOST_CODES = 200
ESCAPED = re.compile(r"\\([_*`\[\]])")
INLINE = (
    (re.compile(r"`([^`]+)`"), r"<code>\1</code>"),
    (re.compile(r"\[([^\]]+)\]\((https://[^)\s]+)\)"), r'<a href="\2" rel="noreferrer">\1</a>'),
    (re.compile(r" \((https://[^)\s]+)\)"), r' (<a href="\1" rel="noreferrer">source</a>)'),
    (re.compile(r"(?<!\*)\*([^*]+)\*(?!\*)"), r"<em>\1</em>"),
)


def markdown(text: str) -> Markup:
    """One paragraph of our own: code, links and emphasis are all the Markdown that it has."""
    found = str(escape(text))
    for pattern, replacement in INLINE:
        found = pattern.sub(replacement, found)
    return Markup(ESCAPED.sub(r"\1", found))  # noqa: S704 - escaped above


def coded(text: str, codes: Iterable[str]) -> Markup:
    """``text`` of anybody, with those of ``codes`` that stand in it shown as code."""
    known = sorted(set(list(codes)[:MOST_CODES]) - {""}, key=len, reverse=True)
    if not known:
        return escape(text)
    parts = re.split(f"({'|'.join(map(re.escape, known))})", text)
    return Markup().join(
        Markup("<code>{}</code>").format(part) if place % 2 else escape(part)
        for place, part in enumerate(parts)
    )
