"""A document as one HTML file: the answer first, then the chart, the table and the problems.

It fetches nothing and works without scripts.
"""

from __future__ import annotations

import base64
import lzma
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import jinja2
from markupsafe import Markup, escape

from dlprof._version import __version__
from dlprof.report.document import Cell, Document
from dlprof.runner.session import Session
from dlprof.runner.session_file import document as session_text

MARKS = re.compile(r"([,(\[.=)/]|-&gt;)(?=\w)")
RULE = re.compile(r"DLP\d{3}")
SAVED = "dlprof-session.json.xz"
"""The name under which a reader saves the session of a page: its commands read that file."""
MOST_ROWS = 1500
"""The limit of a table; the session in the page has everything."""
ROW = 36
"""The pixels of a row of a chart: its name, and below it its marks."""

CODE = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\[([^\]]+)\]\((https://[^)\s]+)\)")


def render(document: Document, session: Session | None = None) -> str:
    """Return the page as text. The reader can save ``session`` from it."""
    return _template().render(
        document=document,
        row=ROW,
        most_rows=MOST_ROWS,
        places={item.rule: index for index, item in reversed([*enumerate(document.problems)])},
        saved=_packed(session) if session is not None else None,
        file=SAVED,
        version=__version__,
    )


def _packed(session: Session) -> str:
    """Return the file of a session as a ``data:`` URL: a link saves it without a script."""
    packed = lzma.compress(session_text(session).encode("utf-8"))
    return f"data:application/x-xz;base64,{base64.b64encode(packed).decode('ascii')}"


def shown(cell: Cell, places: Mapping[str, int]) -> Markup:
    """Return the text of a cell; a rule leads to its problem, by its place on the page."""
    note = Markup(' <span class="under">{}</span>').format(cell.note) if cell.note else ""
    if cell.link:
        return Markup('<a href="{}">{}</a>{}').format(cell.link, cell.text, note)
    if cell.code:
        return Markup("<code>{}</code>{}").format(folded(cell.text), note)
    return linked(cell.text, places) + note


def folded(code: str) -> Markup:
    """Return code that a narrow page folds after a mark, and not within a word."""
    return Markup(MARKS.sub(r"\1<wbr>", str(escape(code))))  # noqa: S704 - escaped here


def linked(text: str, places: Mapping[str, int]) -> Markup:
    """Return the text; a rule in it leads to its problem."""

    def link(rule: re.Match[str]) -> str:
        place = places.get(rule[0])
        return rule[0] if place is None else f'<a href="#p{place}">{rule[0]}</a>'

    return Markup(RULE.sub(link, str(escape(text))))  # noqa: S704 - escaped here


def prose(text: str) -> Markup:
    """Return a sentence with its code. It may hold text from outside, so it has no links."""
    return Markup(CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped here


def sourced(text: str) -> Markup:
    """Return a sentence of a rule, with its code and the links to its sources."""
    link = r'<a href="\2" rel="noreferrer">\1</a>'
    return Markup(LINK.sub(link, prose(text)))  # noqa: S704 - escaped there


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters = (folded, prose, sourced, shown, linked)
    environment.filters |= {function.__name__: function for function in filters}
    return environment.get_template("page.html.j2")


def _source(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")
