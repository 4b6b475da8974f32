"""A document as a notebook shows it: the first screen, without scripts and styles of its own."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from dlprof.reports.document import Answer, Cell, Document, Level, Problem, Table


def render(document: Document) -> str:
    """A fragment of HTML. The whole report is a page of its own: :mod:`dlprof.reports.html`."""
    return f"<div>{''.join(_parts(document))}</div>"


def _parts(document: Document) -> Iterator[str]:
    yield f"<p><b>{_text(document.title)}</b><br>{_text(document.context)}</p>"
    yield from (f"<p>{_text(notice)}</p>" for notice in document.notices)
    yield _list(map(_answer, document.answers))
    tables = [*document.tables]
    for section in document.shown(Level.FIRST):
        tables += [block for block in section.blocks if isinstance(block, Table)]
    yield from map(_table, tables)
    yield from (f"<p>{_text(mark)}</p>" for mark in document.marks)
    yield _list(map(_problem, document.problems))


def _answer(answer: Answer) -> str:
    told = f"<code>{_text(answer.code)}</code> " if answer.code else ""
    parts = ", ".join(part for part in (answer.value, answer.note) if part)
    return f"{_text(answer.label)}: {told}{_text(parts)}"


def _problem(problem: Problem) -> str:
    return f"{_text(problem.severity)} {_text(problem.rule)}: {_text(problem.sentence)}"


def _list(items: Iterator[str]) -> str:
    found = "".join(f"<li>{item}</li>" for item in items)
    return f"<ul>{found}</ul>" if found else ""


def _table(table: Table) -> str:
    titles = "".join(f"<th>{_text(column.title)}</th>" for column in table.columns)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table.rows)
    more = f"<p>{_text(table.more)}</p>" if table.more else ""
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _cell(cell: Cell) -> str:
    shown = f"<code>{_text(cell.text)}</code>" if cell.code else _text(cell.text)
    return f"<td>{shown} {_text(cell.note)}</td>" if cell.note else f"<td>{shown}</td>"


def _text(text: str) -> str:
    return escape(" ".join(text.split()))
