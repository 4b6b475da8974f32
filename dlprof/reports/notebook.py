"""A session as a notebook shows it: the answer, the findings, a table.

Small and self-contained. The whole report is a page of its own: :mod:`dlprof.reports.html`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from dlprof.reports import command
from dlprof.reports.answer import answers
from dlprof.reports.faults import suspected
from dlprof.reports.footnotes import footnotes
from dlprof.reports.result_row import rows_of
from dlprof.reports.row import Row
from dlprof.reports.terminal import Column, measures_of, varying
from dlprof.session.model import FindingRecord, Session
from dlprof.text.clean import clean

MOST_ROWS = 30
MOST_LOST = 10
MOST_FINDINGS = 8
MOST_ANSWERS = 4


def render(session: Session) -> str:
    """A fragment of HTML without scripts and styles: it takes those of the notebook."""
    rows = suspected(rows_of(session.results), session.findings)
    return f"<div>{''.join(_parts(session, rows))}</div>"


def _parts(session: Session, rows: Sequence[Row]) -> Iterator[str]:
    yield f"<p><b>{_text(command.short(session))}</b></p>"
    if not rows:
        yield "<p>The session has no results.</p>"
        return
    found = answers(rows)
    yield from (f"<p>{_text(answer)}</p>" for answer in found[:MOST_ANSWERS])
    yield _more(len(found) - MOST_ANSWERS, "arrays")
    yield _findings(session.findings)
    yield from _table(rows)
    yield _lost([row for row in rows if row.ready is None])


def _findings(findings: Sequence[FindingRecord]) -> str:
    if not findings:
        return "<p>No findings.</p>"
    items = (
        f"{finding.severity} {finding.rule} {finding.name}: {finding.summary} {finding.advice}"
        for finding in findings[:MOST_FINDINGS]
    )
    return _list(items) + _more(len(findings) - MOST_FINDINGS, "findings")


def _table(rows: Sequence[Row]) -> Iterator[str]:
    measured = sorted((row for row in rows if row.ready is not None), key=lambda row: row.cost_ns)
    if not measured:
        return
    columns = [*varying(rows), *measures_of(rows)]
    titles = "".join(f"<th>{_text(title)}</th>" for title in ["path", *(c.title for c in columns)])
    lines = "".join(_line(row, columns) for row in measured[:MOST_ROWS])
    yield f"<table><thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table>"
    yield _more(len(measured) - MOST_ROWS, "paths")
    yield from (f"<p>{_text(note)}</p>" for note in footnotes(measured))


def _line(row: Row, columns: Sequence[Column]) -> str:
    cells = "".join(f"<td>{_text(column.cell(row))}</td>" for column in columns)
    return f"<tr><td><code>{_text(row.code)}</code></td>{cells}</tr>"


def _lost(lost: Sequence[Row]) -> str:
    if not lost:
        return ""
    items = (f"{row.code}: {row.status}: {row.why_not}" for row in lost[:MOST_LOST])
    return f"<p>Not measured:</p>{_list(items)}" + _more(len(lost) - MOST_LOST, "paths")


def _list(items: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{_text(item)}</li>' for item in items)}</ul>"


def _more(count: int, what: str) -> str:
    return f"<p>… and {count:,} more {what} in the session</p>" if count > 0 else ""


def _text(text: str) -> str:
    return escape(clean(text.replace("\n", " ")))
