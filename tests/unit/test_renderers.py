"""Renderers of documents and rule pages: limits of the terminal, and text that stays text."""

import re
from dataclasses import replace
from html import unescape
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import pytest
from builders import make_session
from document_builders import document_of
from hostile import NASTY
from hostile import texts as raw_texts
from hypothesis import given
from junitparser import JUnitXml
from markdown_it import MarkdownIt
from reading import Page
from rule_builders import LOOKED, MS, US, path, verdict

from dlprof.measuring.judged import judged
from dlprof.report import markdown, terminal
from dlprof.report.checks import JUnitCase, github, junit
from dlprof.report.document import (
    Cell,
    Column,
    Document,
    Problem,
    Table,
)
from dlprof.report.session_document import session_document
from dlprof.report.terminal import render_page
from dlprof.text.clean import sanitised

texts = raw_texts.map(sanitised)
"""Return text as it is after a session was read."""
every_evil = pytest.mark.parametrize("evil", NASTY, ids=range(len(NASTY)))


def a_session(paths):
    """A pair with ``paths`` paths, half of them views, some of them bad."""
    torn = {**LOOKED, "early_write": verdict("unsafe", sizes_bytes={"1048576": "torn"})}
    results = [
        path(
            f"lib.function_{index}(x)",
            (10 + 7 * index) * (MS if index % 2 else US),
            owner="copy" if index % 2 else "view",
            **(torn if index % 3 == 1 else LOOKED),
        )
        for index in range(paths)
    ]
    return judged(make_session(*results))


# Terminal


@pytest.mark.parametrize("width", [100, 80])
def test_the_first_screen_fits(width):
    lines = terminal.render(session_document(a_session(40)), width).splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= width
    assert sum("fastest safe view" in line or "copy and wait" in line for line in lines[:6]) == 2


def test_a_problem_names_a_path_unless_the_table_marks_one():
    columns = (Column("path"), Column("problem"))
    table = Table(columns, ((Cell("f(x)", code=True), Cell("DLP003 DLP011")),))
    problems = (
        Problem("DLP003", "error", "2 paths do not order work.", codes=("f(x)", "g(x)")),
        Problem("DLP008", "error", "2 paths are wrong (negated).", codes=("f(x)", "g(x)")),
        Problem("DLP011", "error", "2 paths dangle.", codes=("view(x)", "f(x)")),
    )
    screen = terminal.render(Document("a", tables=(table,), problems=problems), 80)
    assert "do not order work.\n" in screen
    assert "are wrong (negated). Such as f(x)." in screen
    assert "2 paths dangle. Such as view(x)." in screen
    assert "negated: a negative that is not computed yet" in screen


def test_the_first_screen_has_every_error_and_counts_the_others():
    errors = [Problem(f"DLP00{at}", "error", "A path is wrong.") for at in range(4)]
    problems = (*errors, Problem("DLP009", "warning", "A path is slow."))
    screen = terminal.render(Document("a", problems=problems), 80)
    assert [error.rule in screen for error in errors] == [True] * 4
    assert "DLP009" not in screen
    assert "1 warning" in screen


def test_full_says_a_single_finding_once_and_its_evidence_behind_the_advice():
    found = Problem("DLP012", "info", "1 path is slower.", details=("f(x) is slower than g(x).",))
    found = replace(found, evidence=("evidence: 2 ns",), advice=("Write g(x).",))
    screen = terminal.render(Document("a", problems=(found,)), 80, full=True)
    assert "1 path" not in screen
    assert screen.index("than g(x)") < screen.index("Write g(x)") < screen.index("2 ns")


def test_only_full_has_every_row_of_a_long_table():
    table = Table((Column("shape"),), tuple((Cell(f"row {number}"),) for number in range(999)))
    document = Document("a", tables=(table,))
    first = terminal.render(document, 80).splitlines()
    assert len(first) < 99
    assert "(--full)" in first[-1]
    assert terminal.render(document, 80, full=True).count("row ") == 999


def test_a_table_with_too_many_columns_loses_no_cell_in_80_columns():
    names = [f"framework{number}" for number in range(10)]
    row = (Cell("torch"), *(Cell(f"{number} \u00b5s", note="view") for number in range(10)))
    table = Table(tuple(map(Column, ("from", *names))), (row,))
    screen = terminal.render(Document("a", tables=(table,)), 80)
    assert all(name in screen for name in names)
    assert all(f"{number} \u00b5s" in screen for number in range(10))


# Markdown


def from_markdown(text):
    reader = MarkdownIt("gfm-like", {"linkify": False, "html": True}).enable("table")
    return Page(reader.render(text))


def tags(page):
    return {tag for tag, _ in page.tags}


@given(texts)
def test_no_text_becomes_markup(text):
    page = from_markdown(markdown.render(document_of(text.strip() or "x")))
    assert tags(page) <= tags(from_markdown(markdown.render(document_of("`word`"))))
    assert page.count("td") == page.count("th"), "a text has ended a cell"


@given(texts)
def test_prose_and_code_show_the_text_itself(text):
    page = from_markdown(f"| t | u |\n| --- | --- |\n| {markdown.code(text)} | end |")
    assert page.text.split() == ["t", "u", *" ".join(text.splitlines()).split(), "end"]
    page = from_markdown(f"a {markdown.prose(text).replace('<!-- -->', '')} b")
    assert page.text.split() == ["a", *text.split(), "b"]


@pytest.mark.parametrize(
    "text",
    ["@somebody", "see #12", "GH-12", "a@example.org", "https://example.org", "www.example.org"],
)
def test_nothing_is_mentioned_or_linked(text):
    for form in (markdown.prose, markdown.html):
        shown = unescape(form(text)).replace("\\", "\0")  # it looks into the rendered page
        assert not re.search(r"@\w|#\d|(?i:gh)-\d|\w://", shown)
    assert not re.search(r"www\.\w", markdown.prose(text).replace("\\", "\0"))


# JUnit


def test_junit_has_a_suite_for_each_pair_with_its_counts():
    found = [
        JUnitCase("a → b", "f(x)"),
        JUnitCase("a → b", "g(x)", "failed", "DLP012", "slow", "slow\nand more"),
        JUnitCase("c → d", "h(x)", "error", "crashed", "SIGSEGV", "SIGSEGV"),
        JUnitCase("c → d", "i(x)", "skipped", "UNSURE", "too few", "too few"),
    ]
    text = junit("dlprof run a b", found)
    read = JUnitXml.fromstring(text.partition("\n")[2])
    suites = {suite.name: suite for suite in read}
    assert (read.tests, read.failures, read.errors, read.skipped) == (4, 1, 1, 1)
    assert (suites["a → b"].failures, suites["c → d"].errors) == (1, 1)
    (failed,) = [case for case in suites["a → b"] if case.result]
    assert (failed.result[0].message, failed.result[0].type) == ("slow", "DLP012")
    assert failed.result[0].text == "slow\nand more"


@given(texts)
def test_junit_can_hold_any_text_of_a_session(evil):
    text = junit(evil, [JUnitCase(evil, evil, "failed", evil, evil, evil)])
    assert ET.fromstring(text.partition("\n")[2]).get("tests") == "1"


# GitHub


def unescaped(command):
    """Return level, properties and message of a workflow command, as GitHub's runner parses it."""
    level, properties, message = re.fullmatch(r"::(\w+) (.*?)::(.*)", command).groups()
    found = dict(part.split("=", 1) for part in properties.split(","))
    return level, {name: unquote(value) for name, value in found.items()}, unquote(message)


def problem(sentence="slow", severity="warning", **changes):
    return Problem("DLP012", severity, sentence, **changes)


def test_an_annotation_has_level_title_and_message():
    text = github([problem(codes=("f(x)",), advice=("Do it.",))])
    level, properties, message = unescaped(text.rstrip("\n"))
    assert level == "warning"
    assert "DLP012" in properties["title"]
    assert message.splitlines() == ["slow", "Do it.", "f(x)"]


@every_evil
def test_an_annotation_of_hostile_text_is_one_command(evil):
    text = github([problem(evil, codes=(evil,))], [JUnitCase(evil, evil, "failed", evil, evil)])
    lines = text.split("\n")
    assert [line[:2] for line in lines] == ["::", "::", ""]


# Pages of rules


def test_code_and_tables_keep_their_lines_and_a_link_its_address():
    text = "# T\n\nOne\ntwo [a](https://b.c/d).\n\n"
    text += "```python\nx = 1\n\ny = 2\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- *an* item\n"
    lines = [" ".join(line.split()) for line in render_page(text).splitlines() if line]
    assert lines[:4] == ["T", "One two a (https://b.c/d).", "x = 1", "y = 2"]
    assert "1 2" in lines
    assert lines[-1].endswith("an item")
