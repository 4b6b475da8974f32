"""The Markdown summary, read by a CommonMark parser with GitHub's tables and links."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from builders import lost_row, make_header, make_measure, make_row
from hostile_text import texts
from hypothesis import given
from markdown_it import MarkdownIt

from dlprof.reports.markdown import MOST_ROWS, code, prose, render, table
from dlprof.text.clean import clean

pytestmark = pytest.mark.unit

FINDING = {
    "rule": "DLP012",
    "name": "slow-path",
    "severity": "warning",
    "results": [0],
    "summary": "numpy.array(x), a copy, takes 9.1 ms",
    "advice": "x.numpy() is a view",
}


class Page(HTMLParser):
    """What a browser would make of it: tags, text, and cells of tables."""

    def __init__(self, markdown):
        super().__init__()
        self.tags = []
        self.text = ""
        self.cells = []
        html = (
            MarkdownIt("gfm-like", {"linkify": False, "html": True})
            .enable("table")
            .render(markdown)
        )
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data):
        self.text += data
        if self.cells:
            self.cells[-1] += data.strip("\n")


def shown(*rows, **changes):
    return Page(render(make_header(**changes), rows))


def test_the_answer_comes_first():
    lines = render(make_header(), [make_row("x.numpy()")]).splitlines()
    assert lines[0].startswith("## dlprof: torch → numpy 4x4 float32 C cpu")
    assert lines[2].startswith("**cheapest that is safe: x.numpy()")


def test_every_path_has_a_line_in_the_table():
    page = shown(make_row("slow(x)", 2e6), make_row("fast(x)", 10.0))
    assert page.cells[:4] == ["path", "ready", "result", "status"]
    assert [cell for cell in page.cells if "(x)" in cell] == ["fast(x)", "slow(x)"]


def test_a_finding_is_told_with_its_advice():
    page = shown(make_row(), findings=[FINDING])
    assert "warning DLP012 slow-path: numpy.array(x), a copy, takes 9.1 ms" in page.text
    assert "x.numpy() is a view" in page.text


def test_no_findings_are_told_as_well():
    assert "No findings." in shown(make_row()).text


def test_what_was_not_measured_is_told_with_its_reason():
    page = shown(make_row(), lost_row(), left_out=["no diagnosis"])
    assert "numpy.asarray(x): unsupported: TypeError: no" in page.text
    assert "no diagnosis" in page.text


def test_what_changed_is_told_in_the_table():
    assert "wrong: dtype" in shown(make_row(changed=("dtype",))).text


def test_a_session_without_results_says_so():
    assert "The session has no results." in shown().text


def test_a_session_of_crashes_says_so():
    page = shown(lost_row(status="crashed", reason="killed by SIGSEGV"))
    assert "no path could be measured." in page.text
    assert "crashed: killed by SIGSEGV" in page.text


def test_a_stopped_run_says_so():
    assert "the run was stopped" in shown(make_row(), complete=False).text


def test_a_busy_machine_is_told():
    assert "Other processes kept 3.0" in shown(make_row(), foreign_cores=3.0).text


def test_times_in_modes_stand_in_one_cell():
    modes = [{"median_ns": 1e5, "rounds": [0]}, {"median_ns": 4e5, "rounds": [1]}]
    row = make_row(ready=make_measure(1e5, None, modes=modes))
    assert "100 | 400 us" in shown(row).cells


def test_the_length_of_the_summary_is_limited():
    rows = [make_row(f"f{index}(x)") for index in range(MOST_ROWS + 5)]
    page = shown(*rows)
    assert sum(cell.startswith("f") and "(x)" in cell for cell in page.cells) == MOST_ROWS
    assert "… and 5 more" in page.text


ALLOWED = {
    "h2",
    "h3",
    "p",
    "strong",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "code",
    "ul",
    "li",
    "br",
}


@given(texts, texts, texts)
def test_no_text_becomes_markup(name, call, reason):
    finding = FINDING | {"summary": reason, "name": name, "advice": call}
    page = shown(
        make_row(call, shape=clean(name)),
        lost_row(call, reason=reason),
        findings=[finding],
        left_out=[reason],
        device_choice=name,
        environment={"python": name, "cpu": call, "packages": {name: reason}},
    )
    assert set(page.tags) <= ALLOWED
    assert len(page.cells) == 2 * page.tags.count("th"), "a text has ended a cell"


@given(texts)
def test_prose_shows_the_text_itself(text):
    page = Page(f"a {prose(text)} b")
    assert page.text == f"a {clean(text)} b\n" or not clean(text).strip()
    assert page.tags == ["p"]


@given(texts)
def test_code_shows_the_text_itself_in_a_cell(text):
    page = Page(table(["t", "u"], [[code(text), "end"]], [False, False]))
    assert page.cells[3] == "end"
    assert page.cells[2].strip() == clean(text).strip()


@pytest.mark.parametrize("text", ["@somebody", "see #12", "https://example.org", "www.example.org"])
def test_nothing_is_mentioned_or_linked(text):
    assert not re.search(r"@\w|#\d|\w://|www\.\w", prose(text).replace("\\", "\0"))
