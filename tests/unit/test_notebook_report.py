"""What a notebook shows of a session."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from builders import make_result, make_session
from hostile_text import texts
from hypothesis import given

from dlprof.reports import notebook
from dlprof.text.clean import clean

pytestmark = pytest.mark.unit

FINDING = {
    "rule": "DLP012",
    "name": "slow-path",
    "severity": "warning",
    "results": [0],
    "summary": "it is slow",
    "advice": "write another",
}
ALLOWED = {"div", "p", "b", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "code"}


class Page(HTMLParser):
    def __init__(self, session):
        super().__init__()
        self.tags = set()
        self.text = ""
        self.html = notebook.render(session)
        self.feed(self.html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert not attrs

    def handle_data(self, data):
        self.text += data


def test_a_session_shows_answer_findings_and_paths():
    page = Page(make_session(make_result("f(x)"), findings=[FINDING]))
    for text in ("dlprof run torch numpy", "cheapest that is safe: f(x)", "it is slow", "1.0"):
        assert text in page.text


def test_what_was_not_measured_is_shown_with_its_reason():
    lost = make_result("g(x)", None, status="crashed", reason="killed by SIGSEGV")
    assert "g(x): crashed: killed by SIGSEGV" in Page(make_session(lost)).text


def test_an_empty_session_says_so():
    assert "no results" in Page(make_session()).text


def test_a_long_session_stays_small():
    page = Page(make_session(*(make_result(f"f{index}(x)") for index in range(500))))
    assert len(page.html) < 20_000
    assert "470 more paths" in page.text


@given(texts, texts)
def test_no_text_becomes_markup(text, reason):
    results = make_result(text), make_result(text, None, status="crashed", reason=reason)
    page = Page(make_session(*results, findings=[FINDING | {"summary": reason}], command=[text]))
    assert page.tags <= ALLOWED
    assert clean(text) in page.text
