"""The page of a rule on a terminal: Markdown laid out to be read, without its marks."""

from __future__ import annotations

import re
from textwrap import fill, indent

INDENT = "  "
WIDEST = 100
ISSUE = re.compile(r"\[([\w.-]+/[\w.-]+#\d+)\]\(https://github\.com/[^)]*\)")
"""A link whose text alone leads there."""
BLOCK = re.compile(
    r"^```(?:.*\n)+?```$"  # code
    r"|^#.*$"
    r"|(?:^\|.*\n?)+"  # a table
    r"|(?:^(?!```|#|\||$).+\n?)(?:^(?!- |```|#|\||$).+\n?)*",  # a list item or a paragraph
    re.MULTILINE,
)
LINK = re.compile(r"\[([^\]]*)\]\((https?://[^)]*)\)")
EMPHASIS = re.compile(r"\*(\w[^*\n]*)\*")
PAGE = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def render(page: str, width: int = WIDEST, color: bool = False) -> str:
    """Headings are bold with ``color``; code is indented; a paragraph fills the width."""
    lines: list[str] = []
    for block in (found[0] for found in BLOCK.finditer(page)):
        if block.startswith("#"):
            title = block.lstrip("# ")
            lines += ["", f"\x1b[1m{title}\x1b[0m" if color else title]
        elif block.startswith("```"):
            lines.append(indent("\n".join(block.splitlines()[1:-1]), 2 * INDENT))
        elif block.startswith("|"):
            lines += _table(block, width)
        else:
            lines.append(_filled(block, min(width, WIDEST)))
    return "\n".join(lines).strip("\n") + "\n"


def _filled(block: str, width: int) -> str:
    text = LINK.sub(r"\1 (\2)", ISSUE.sub(r"\1", block))
    text = EMPHASIS.sub(r"\1", text)
    text = PAGE.sub(r"\1", text)
    hanging = INDENT + "  " * text.startswith("- ")
    return fill(
        " ".join(text.split()),
        width,
        initial_indent=INDENT,
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


LEAST_CELL = 14
"""Columns that the last cell of a table needs."""


def _table(block: str, width: int) -> list[str]:
    """Columns as wide as their longest cell; the last one takes the rest."""
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in block.splitlines()]
    rows = [row for row in rows if not set("".join(row)) <= set("-: ")]
    widest = [max(map(len, column)) + 2 for column in list(zip(*rows, strict=True))[:-1]]
    if len(INDENT) + sum(widest) + LEAST_CELL > width:  # then a line for each row
        return [
            fill(" · ".join(row), width, initial_indent=INDENT, subsequent_indent=INDENT * 2)
            for row in rows
        ]
    found = []
    for row in rows:
        first = "".join(map(str.ljust, row, widest))
        room = " " * (len(INDENT) + sum(widest))
        found.append(
            fill(row[-1], min(width, WIDEST), initial_indent=INDENT + first, subsequent_indent=room)
        )
    return found
