"""The release that changed a path, and every release that was tried, as a document."""

from __future__ import annotations

from dlprof.atlas.bisect import Found, Tried
from dlprof.atlas.cells import QUESTIONS
from dlprof.atlas.changes import TIME, word_text
from dlprof.reports.document import Answer, Cell, Column, Document, Table
from dlprof.reports.grid_document import cell_text
from dlprof.session.model import pair_text

WORDS = {True: Cell("good"), False: Cell("changed", "worse"), None: Cell("not known", "dim")}


def bisect_document(found: Found, package: str, statement: str, pair: tuple[str, str]) -> Document:
    """What a search found for a path of a pair of frameworks."""
    rows = tuple(
        (Cell(f"{package} {one.version}"), Cell(_said(one, found.question)), WORDS[one.is_good])
        for one in found.tried
    )
    ends = {one.version: _said(one, found.question) for one in found.tried}
    note = ", ".join(f"{ends[one]} with {one}" for one in (found.last_good, found.first_bad))
    if found.untold:
        note += f"; or with {', '.join(found.untold)}, which told nothing"
    return Document(
        title=pair_text(pair),
        scope=statement,
        context=f"{len(found.tried)} releases tried",
        answers=(Answer("changed", f"{package} {found.first_bad}", note=note),),
        tables=(Table((Column("release"), Column("result"), Column("")), rows),),
    )


def _said(one: Tried, question: str) -> str:
    if one.cell is None:
        return one.reason
    if question in (TIME, "result"):
        return cell_text(one.cell).line
    return word_text(question, one.cell.words[QUESTIONS.index(question)])
