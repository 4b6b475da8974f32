"""The page: every section is a pure function of the session; here they are put together."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any

import jinja2
from markupsafe import Markup

from dlprof.history.trend import Trend
from dlprof.reports.answer import answers
from dlprof.reports.html import (
    brief,
    cards,
    cases,
    cost,
    embedded,
    environment,
    history,
    loaded,
    loop,
    pair_map,
    phases,
    size,
    transcript,
    unmeasured,
)
from dlprof.reports.html.entry import Entry, entries
from dlprof.reports.html.figure import Figure
from dlprof.reports.html.headline import headline, subject_text
from dlprof.reports.html.told import coded
from dlprof.session.collector import paused
from dlprof.session.model import Session
from dlprof.text.clean import clean

FEW_ANSWERS = 6
FEW_CARDS = 8
FEW_MAPS = 2
SHORT = 80


def render(session: Session, trends: Sequence[Trend] = ()) -> str:
    """The page as text: everything in it is in the session, and nothing is fetched.

    Findings are those of the session; whoever wants others finds them first. ``trends`` of a
    history get a section of their own.
    """
    with paused():
        everything = entries(session)
        past = history.past(trends) if trends else None
        content = _content(session, everything)
        if past is not None:
            content["labels"] = (*content["labels"], *_labels((), past.figures))
        return template("page.html.j2").render(**content, past=past)


def _content(session: Session, everything: Sequence[Entry]) -> dict[str, Any]:
    codes = cards.codes_by_pair(everything)
    arrays = dict.fromkeys(entry.row.array for entry in everything)
    said = [
        coded(text, codes[array[0]])
        for text, array in zip(answers(entry.row for entry in everything), arrays, strict=True)
    ]
    verdict = headline(session, everything)
    worst = cards.named(session.findings[0].results[:1], everything) if session.findings else []
    found = cards.cards(session, everything)
    tables = cases.tables(everything)
    figures = tuple(_figures(everything, session))
    maps = pair_map.maps(everything)
    return {
        "session": session,
        "subject": subject_text(everything),
        "headline": verdict,
        "lead": [coded(line, _leading(codes, worst)) for line in verdict.lead],
        "versions": environment.versions(session),
        "created": clean(session.created, SHORT),
        "device": clean(session.device_choice or ""),
        "busy": environment.busy(session),
        "answers": said,
        "few_answers": FEW_ANSWERS,
        "cards": found,
        "few_cards": FEW_CARDS,
        "brief": brief.brief(session, everything),
        "maps": maps,
        "called": pair_map.said(maps),
        "few_maps": FEW_MAPS,
        "tables": tables,
        "count": len(everything),
        "figures": figures,
        "labels": tuple(_labels(tables, figures)),
        "transcripts": transcript.transcripts(everything),
        "unmeasured": unmeasured.unmeasured(session, everything),
        "blocks": environment.blocks(session),
        "embedded": embedded.embed(session),
        **assets(),
    }


def _figures(everything: Sequence[Entry], session: Session) -> Iterable[Figure]:
    by_size = size.figures(everything, session.findings)
    first = by_size or cost.figures(everything, session.findings)
    others = (module.figures(everything, session.findings) for module in (loop, phases, loaded))
    return chain(first, *others)


def _leading(codes: Mapping[str, Sequence[str]], worst: Sequence[Entry]) -> Sequence[str]:
    """What the first lines may name: ways of the worst finding's pair, or of the only one."""
    pairs = [entry.row.pair for entry in worst] or list(codes)[:1]
    return [code for pair in pairs for code in codes[pair]]


def _labels(
    tables: Iterable[cases.Table], figures: Iterable[Figure]
) -> Iterable[tuple[str, int, Sequence[str]]]:
    """Titles of columns by the table's id and the place of the first of them: on a phone each
    stands before its cell. Number and path need none.

    They are our own words: the style that they become part of takes them as they are.
    """
    for place, table in enumerate(tables, start=1):
        for letter, grid in (("c", table.measured), ("a", table.apart)):
            if grid.lines:
                yield f"{letter}{place}", 3, [column.title for column in grid.columns[1:]]
    for figure in figures:
        linked = any(line.entry for line in figure.lines)
        yield f"n-{figure.name}", 3 if linked else 2, figure.titles[1:]


@cache
def assets() -> dict[str, Any]:
    """Style and script, and the hash by which the page allows its own script and no other."""
    folder = files(__package__) / "templates"
    style, script = (
        (folder / name).read_text(encoding="utf-8") for name in ("style.css", "script.js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    # Both are our own files.
    return {"style": Markup(style), "script": Markup(script), "script_hash": digest}  # noqa: S704


@cache
def template(name: str) -> jinja2.Template:
    """One of the pages."""
    # Not streamed: a page that fails half way is no page.
    environment_ = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    return environment_.get_template(name)


def _source(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")
