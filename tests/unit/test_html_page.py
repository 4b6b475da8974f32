"""The HTML page of a document: complete, bounded, and safe for any text."""

import base64
import lzma
from dataclasses import replace

import pytest
from builders import make_session
from document_builders import COLUMNS, document, document_of, problem, row
from hostile import BITES
from html_builders import case, full_session
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import Page

from dlprof.measuring.judged import judged
from dlprof.report.document import Table
from dlprof.report.html import render
from dlprof.report.session_document import session_document
from dlprof.runner.session_file import parse


@pytest.fixture(scope="module")
def html():
    return render(document(), full_session())


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def saved(html):
    """Return the session that a reader saves from a page."""
    (href,) = [link for link in Page(html).links() if link.startswith("data:application/x-xz")]
    return parse(lzma.decompress(base64.b64decode(href.partition(",")[2])).decode(), "saved")


def test_every_part_of_a_document_is_shown(page):
    shown = Page(render(document_of("a word"))).text
    # Columns and cells of 3 tables with 5 columns each, and all other texts.
    assert shown.count("a word") > 30
    for text in ("TensorFlow is not installed.", "12 more copies", "dlprof explain DLP018"):
        assert text in page.text


def test_each_row_of_a_table_of_paths_has_its_bar_and_folds_code_between_words():
    found = session_document(judged(make_session(*map(case, ("f.g(x, copy=True)", "h(x)")))))
    html = render(found)
    for code in ("f.<wbr>g(<wbr>x, copy=<wbr>True)", "h(<wbr>x)"):
        row = html.partition(f'"><code>{code}</code>')[2].partition("</tr>")[0]
        assert "<circle" in row


def test_a_page_fetches_nothing(html, page):
    for tag, attrs in page.tags:
        assert "src" not in attrs
        assert tag == "a" or "href" not in attrs
    assert "url(http" not in html
    assert "@import" not in html


def test_a_browser_lets_the_page_fetch_nothing(page):
    (policy,) = [attrs["content"] for _, attrs in page.tags if "http-equiv" in attrs]
    assert "default-src 'none'" in policy


def test_text_from_outside_makes_no_link():
    bait = "[click me](https://example.org)"
    changes = {"context": bait, "notices": (bait,), "marks": (bait,)}
    page = Page(render(replace(document(), **changes)))
    assert "https://example.org" not in page.links()


def test_every_link_within_the_page_has_its_target(page):
    wanted = {link[1:] for link in page.links() if link.startswith("#")}
    assert wanted
    assert wanted <= set(page.ids())
    assert len(page.ids()) == len(set(page.ids()))


@settings(max_examples=5)
@given(st.one_of(st.sampled_from(BITES), st.text(st.characters(exclude_categories=["Cs", "Cc"]))))
def test_text_from_anywhere_is_only_text(word):
    assert Page(render(document_of(word))).active == ["style", "script"]


def test_a_long_document_stays_small_and_reports_its_omissions():
    rows = tuple(
        row(f"numpy.asarray(x, {number})", problem="error DLP018") for number in range(4000)
    )
    long = document(
        tables=(Table(COLUMNS, rows), Table(COLUMNS, rows)),
        problems=tuple(problem(f"DLP{number:03}", codes=("f(x)",) * 99) for number in range(50)),
    )
    text = render(long)
    assert len(text.encode()) < 1_000_000
    assert "2,500 more" in Page(text).text


def test_the_session_can_be_recovered(html):
    assert saved(html) == full_session()
