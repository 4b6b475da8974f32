"""The page: every section is a pure function of the session; here they are put together."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any

import jinja2
from markupsafe import Markup

from dlprof.clean import clean
from dlprof.collector import paused
from dlprof.reports.answer import answers
from dlprof.reports.html import (
    cards,
    cases,
    cost,
    embedded,
    environment,
    loaded,
    loop,
    pair_map,
    phases,
    size,
    spread,
    transcript,
    unmeasured,
)
from dlprof.reports.html.entry import Entry, entries
from dlprof.reports.html.figure import Figure
from dlprof.reports.html.headline import headline, subject_text
from dlprof.session import Session

FEW_ANSWERS = 6
FEW_CARDS = 8
FEW_MAPS = 2
SHORT = 80


def render(session: Session) -> str:
    """The page as text: everything in it is in the session, and nothing is fetched.

    Findings are those of the session; whoever wants others finds them first.
    """
    with paused():
        everything = entries(session)
        return _template().render(**_content(session, everything))


def _content(session: Session, everything: Sequence[Entry]) -> dict[str, Any]:
    said = answers(entry.row for entry in everything)
    found = cards.cards(session, everything)
    return {
        "session": session,
        "subject": subject_text(everything),
        "headline": headline(session, everything),
        "versions": environment.versions(session),
        "created": clean(session.created, SHORT),
        "device": clean(session.device_choice or ""),
        "busy": environment.busy(session),
        "answers": said,
        "few_answers": FEW_ANSWERS,
        "cards": found,
        "few_cards": FEW_CARDS,
        "maps": pair_map.maps(everything),
        "few_maps": FEW_MAPS,
        "tables": cases.tables(everything),
        "count": len(everything),
        "figures": tuple(_figures(everything, session)),
        "transcripts": transcript.transcripts(everything),
        "unmeasured": unmeasured.unmeasured(session, everything),
        "blocks": environment.blocks(session),
        "embedded": embedded.embed(session),
        **_assets(),
    }


def _figures(everything: Sequence[Entry], session: Session) -> Iterable[Figure]:
    by_size = size.figures(everything, session.findings)
    first = by_size or cost.figures(everything, session.findings)
    others = (
        module.figures(everything, session.findings) for module in (loop, phases, loaded, spread)
    )
    return chain(first, *others)


@cache
def _assets() -> dict[str, Any]:
    """Style and script, and the hash by which the page allows its own script and no other."""
    folder = files(__package__) / "templates"
    style, script = (
        (folder / name).read_text(encoding="utf-8") for name in ("style.css", "script.js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    # Both are our own files.
    return {"style": Markup(style), "script": Markup(script), "script_hash": digest}  # noqa: S704


@cache
def _template() -> jinja2.Template:
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
    return environment_.get_template("page.html.j2")


def _source(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")
