"""Text from anywhere is text on the page: never run, never markup, never in the way."""

from __future__ import annotations

import json

import pytest
from hostile import BITES, session_of
from html_builders import alone, case, full_session, lost
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import Page

from dlprof.reports.html import render

pytestmark = pytest.mark.unit

hostile = st.one_of(st.sampled_from(BITES), st.text(st.characters(), max_size=40))


def skeleton(html):
    """Which elements stand in a page, and what of them could run something."""
    page = Page(html)
    running = [
        (tag, name)
        for tag, attrs in page.tags
        for name in attrs
        if name.startswith("on") or (name in ("href", "src") and "javascript" in attrs[name])
    ]
    return [tag for tag, _ in page.tags if tag in ("script", "img", "iframe", "style")], running


@settings(max_examples=15)
@given(hostile)
def test_whatever_it_says_it_is_only_text(word):
    html = render(session_of(word))
    assert skeleton(html) == (["style", "script", "script"], [])
    html.encode("utf-8")
    for hidden in ("\x1b", "\x00", "\u202e"):
        assert hidden not in html


@pytest.mark.parametrize("word", BITES)
def test_the_embedded_session_is_the_session(word):
    session = session_of(word)
    data = Page(render(session)).scripts[0]
    assert json.loads(data) == json.loads(json.dumps(session.model_dump(by_alias=True)))


def test_a_megabyte_of_text_leaves_the_page_readable():
    html = render(session_of("x" * 1_000_000))
    assert len(Page(html).text) < 200_000


def test_a_thousand_lines_of_output_are_folded_and_cut_with_a_mark():
    html = render(alone(case(), lost("f(x)", "crashed", "SIGABRT", output="noise\n" * 1000)))
    assert Page(html).text.count("noise") == 40
    assert "… 960 more lines in the session" in html


def test_an_index_beyond_the_results_links_nowhere():
    session = full_session()
    broken = session.findings[0].model_copy(update={"results": [10**9, -5]})
    page = Page(render(session.model_copy(update={"findings": [broken]})))
    assert "The finding names no case of this session." in page.text
