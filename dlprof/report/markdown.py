"""A document as GitHub-flavored Markdown, as for ``$GITHUB_STEP_SUMMARY``.

Text of a session may be hostile. Code stands in code spans, and all other text is escaped: it makes
no markup, mentions no user and ends no table.
"""

from __future__ import annotations

from dlprof.report.document import Answer, Block, Cell, Document, Problem, Table
from dlprof.text.markdown import code, html, prose

MOST_ROWS = 200


def render(document: Document) -> str:
    """Return the first screen, then all other sections folded."""
    sections = [(f"### {prose(part.heading)}", part) for part in document.sections if part.is_first]
    blocks = [
        f"## dlprof: {prose(document.headline)}",
        prose(document.context),
        *(f"**{prose(notice)}**" for notice in document.notices),
        "\n".join(map(_answer, document.answers)),
        *map(_table, document.tables),
        "  \n".join(map(prose, document.marks)),
        *(part for head, section in sections for part in (head, *map(_block, section.blocks))),
        "\n".join(map(_problem, document.problems)),
    ]
    for section in (section for section in document.sections if not section.is_first):
        heading = f"<summary>{html(section.heading)}</summary>"
        blocks += [f"<details>{heading}", *map(_block, section.blocks), "</details>"]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _answer(answer: Answer) -> str:
    parts = [code(answer.code)] if answer.code else []
    parts += [prose(part) for part in (answer.value, answer.note) if part]
    label = f"**{prose(answer.label)}**"
    return f"- {label}: {', '.join(parts)}" if parts else f"- {label}"


def _problem(problem: Problem) -> str:
    line = f"- **{problem.severity} {prose(problem.rule)}**: {prose(problem.sentence)}"
    return "  \n  ".join((line, *map(prose, problem.advice)))


def _block(block: Block) -> str:
    if isinstance(block, Table):
        return _table(block)
    return "\n".join(f"- {prose(line)}" for line in block.lines)


def _table(content: Table) -> str:
    content = content.first(MOST_ROWS)
    lines = [[prose(column.title) for column in content.columns]]
    lines.append(["---:" if column.right else "---" for column in content.columns])
    lines += ([*map(_cell, row)] for row in content.rows)
    shown = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    more = f"{content.more}{' (below)' * content.is_summary}" if content.more else ""
    above = map(prose, content.above)
    return "\n\n".join(filter(None, (*above, shown if content.rows else "", prose(more))))


def _cell(cell: Cell) -> str:
    text = code(cell.text) if cell.code and cell.text else prose(cell.text)
    return f"{text} {prose(cell.note)}".strip() if cell.note else text
