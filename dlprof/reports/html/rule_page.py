"""A rule's page as HTML: paragraphs, code, emphasis and links are all the Markdown it has."""

from __future__ import annotations

import re
from dataclasses import dataclass

from markupsafe import Markup

from dlprof.errors import UsageError
from dlprof.reports.html.told import markdown
from dlprof.rules.pages import page


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
    return Part(title.strip(), tuple(markdown(text) for text in paragraphs if text))
