"""A rule's page as HTML: paragraphs, code, emphasis and links are all the Markdown it has."""

from __future__ import annotations

import re
from dataclasses import dataclass

from markupsafe import Markup, escape

from dlprof.errors import UsageError
from dlprof.rules.pages import page

INLINE = (
    (re.compile(r"`([^`]+)`"), r"<code>\1</code>"),
    (re.compile(r"\[([^\]]+)\]\((https://[^)\s]+)\)"), r'<a href="\2" rel="noreferrer">\1</a>'),
    (re.compile(r"(?<!\*)\*([^*]+)\*(?!\*)"), r"<em>\1</em>"),
)


@dataclass(frozen=True)
class Part:
    """A section of the page; the first has no title."""

    title: str
    paragraphs: tuple[Markup, ...]


def parts(rule: str) -> tuple[Part, ...]:
    """The page of a rule; nothing for a rule that this dlprof does not know."""
    try:
        text = page(rule)
    except UsageError:
        return ()
    return tuple(_part(block) for block in re.split(r"^##? ", text, flags=re.MULTILINE)[1:])


def _part(block: str) -> Part:
    title, _, body = block.partition("\n")
    paragraphs = (paragraph.strip() for paragraph in body.split("\n\n"))
    return Part(title.strip(), tuple(_inline(text) for text in paragraphs if text))


def _inline(text: str) -> Markup:
    found = str(escape(text))
    for pattern, replacement in INLINE:
        found = pattern.sub(replacement, found)
    return Markup(found)  # noqa: S704 - escaped above
