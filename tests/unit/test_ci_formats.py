"""JUnit and annotations: their readers read them, whatever the text."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from comparison_builders import compared, suite, with_code
from hostile import BITES, session_of
from hostile_text import NASTY, texts
from hypothesis import given
from junitparser import JUnitXml

from dlprof.reports.ci import github, junit, of_comparison, of_session
from dlprof.reports.ci.check import ERROR, FAILED, SKIPPED, Check, lines_of
from dlprof.reports.ci.remark import Remark
from dlprof.reports.comparison import Names
from dlprof.reports.comparison_markdown import render as comparison_markdown

pytestmark = pytest.mark.unit

EVIL = (*BITES, *NASTY, "::error::no\n::set-output name=a::b", "##[error]x", "100%0A,a:b", "a](b)")
every_evil = pytest.mark.parametrize("evil", EVIL, ids=range(len(EVIL)))


def remark(text="f(x) is slow", severity="warning", subject="f(x)", **changes):
    fields = {"rule": "DLP012", "name": "slow-path", "fingerprint": "a" * 64}
    return Remark(severity=severity, text=text, subject=subject, **(fields | changes))


def a_comparison():
    found, result = compared(suite(), suite({"c": 1.5}, seed=50))
    return found, result, of_comparison.doubts(3)


def said_in(evil):
    session = session_of(evil)
    return of_session.remarks(session, session.results)


def unescaped(command):
    """Level, properties and message of a workflow command, as GitHub's runner reads them."""
    level, properties, message = re.fullmatch(r"::(\w+) (.*?)::(.*)", command).groups()
    found = dict(part.split("=", 1) for part in properties.split(","))

    def plain(text):
        for code, character in (
            ("%3A", ":"),
            ("%2C", ","),
            ("%0D", "\r"),
            ("%0A", "\n"),
            ("%25", "%"),
        ):
            text = text.replace(code, character)
        return text

    return level, {name: plain(value) for name, value in found.items()}, plain(message)


# JUnit


def test_junit_has_a_suite_for_each_pair_with_its_counts():
    checks = [
        Check("a → b", "f(x)"),
        Check("a → b", "g(x)", FAILED, "DLP012", "slow", "slow\nand more"),
        Check("c → d", "h(x)", ERROR, "crashed", "SIGSEGV", "SIGSEGV"),
        Check("c → d", "i(x)", SKIPPED, "UNSURE", "too few", "too few"),
    ]
    text = junit.render("dlprof run a b", checks, "2026-01-01T00:00:00+00:00", 1.5)
    read = JUnitXml.fromstring(text.partition("\n")[2])
    suites = {found.name: found for found in read}
    assert (read.tests, read.failures, read.errors, read.skipped) == (4, 1, 1, 1)
    assert (suites["a → b"].failures, suites["c → d"].errors) == (1, 1)
    (failed,) = [case for case in suites["a → b"] if case.result]
    assert failed.result[0].message == "slow"
    assert (failed.result[0].type, failed.result[0].text) == ("DLP012", "slow\nand more")


@every_evil
def test_junit_of_a_hostile_session_is_xml_that_says_it(evil):
    session = session_of(evil)
    checks = list(of_session.checks(session, session.results))
    root = ET.fromstring(junit.render(of_session.title(session), checks, session.created, 2.0))
    cases = list(root.iter("testcase"))
    assert len(cases) == len(checks) == 6
    assert [case.get("name") for case in cases] == [check.name for check in checks]


@given(texts)
def test_junit_can_hold_any_text(text):
    found = ET.fromstring(junit.render(text, [Check(text, text, FAILED, text, text, text)]))
    (case,) = found.iter("testcase")
    assert case.get("name") == junit.xml_text(text)
    junit.xml_text(text).encode()  # raises for a lone surrogate


def test_what_xml_cannot_hold_is_written_as_an_escape():
    assert junit.xml_text("a\x00b\x1b\ud800\ufffe\tc\n]]>") == "a\\x00b\\x1b\\ud800\\ufffe\tc\n]]>"


def test_long_reasons_are_cut():
    assert lines_of(["x\n" * 100]).splitlines()[-1] == "… and 40 more lines"


# GitHub


def test_an_annotation_has_level_title_and_message():
    (line,) = github.commands([remark(advice="g(x) instead.")]).splitlines()
    assert unescaped(line) == (
        "warning",
        {"title": "dlprof: DLP012 slow-path"},
        "f(x) is slow\ng(x) instead.",
    )


def test_an_annotation_points_to_the_scenario():
    (line,) = github.commands([remark()], "scenarios/a,b:c%.toml").splitlines()
    properties = unescaped(line)[1]
    assert (properties["file"], properties["line"]) == ("scenarios/a,b:c%.toml", "1")


@pytest.mark.parametrize(
    ("severity", "level"),
    [("error", "error"), ("warning", "warning"), ("info", "notice"), ("dire", "notice")],
)
def test_the_level_is_that_of_the_severity(severity, level):
    assert github.commands([remark(severity=severity)]).startswith(f"::{level} ")


def test_ways_of_one_finding_share_an_annotation():
    same = [remark("slow", subject=name) for name in ("f(x)", "g(x)", "h(x)", "i(x)")]
    (line,) = github.commands(same).splitlines()
    assert unescaped(line)[2] == "f(x), g(x), h(x) and 1 more: slow"


def test_an_annotation_names_the_arrays_that_it_is_about():
    arrays = [f"torch → numpy  {n}x{n} float32 C cpu" for n in range(5)]
    same = [remark("slow", array=array) for array in arrays]
    for count, more in ((1, []), (3, []), (5, ["and 2 more"])):
        (line,) = github.commands(same[:count]).splitlines()
        assert unescaped(line)[2].split("\n")[1:] == [*arrays[: min(count, 3)], *more]


def test_no_more_annotations_than_github_shows_and_the_last_says_so():
    many = [remark(f"finding {n}", fingerprint=str(n)) for n in range(25)]
    lines = github.commands([*many, remark("bad", severity="error")]).splitlines()
    assert len(lines) == 11
    assert unescaped(lines[9])[2] == "16 more of this severity are in the report"


@every_evil
def test_an_annotation_of_hostile_text_is_one_command(evil):
    lines = github.commands(said_in(evil), "a.toml").split("\n")
    assert lines.pop() == ""
    for line in lines:
        assert re.match(r"::(error|warning|notice) ", line)
        assert "\r" not in line
        assert unescaped(line)[1]["title"].startswith("dlprof")


@given(texts)
def test_any_text_can_be_annotated(text):
    (line, rest) = github.commands([remark(text, subject="")]).split("\n")
    assert rest == ""
    assert unescaped(line)[2] == text


def test_a_summary_that_does_not_fit_is_cut_at_a_line_and_says_so():
    text = "line\n" * 300_000
    found = github.room(text, 1000)
    assert len(found.encode()) + 1000 <= 1 << 20
    assert found.endswith("line\n\n… and more that a summary of GitHub has no room for\n")
    assert github.room("short\n", 0) == "short\n"
    assert github.room("no room\n", 1 << 20) == ""


# The summary of a comparison


def test_the_summary_of_a_comparison_begins_with_the_answer():
    found, result, _ = a_comparison()
    text = comparison_markdown(found, result, Names("a.json", "b.json"))
    assert text.startswith("## dlprof: BASE and HEAD, torch → numpy")
    assert "\n\n**HEAD is slower: numpy.c(x) takes 1.5" in text
    assert "| path | BASE | HEAD | HEAD/BASE (interval) |  | because |" in text
    assert text.index("**SLOWER**") < text.index("**SAME**")


@every_evil
def test_the_summary_of_a_hostile_comparison_is_no_markup(evil):
    names = {"producer": evil, "dtype": evil}
    base = suite(case=names)
    head = suite({"c": 1.5}, seed=50, case=names, status="invalid", reason=evil)
    found, result = compared(with_code(evil, base), with_code(evil, head))
    text = comparison_markdown(found, result, Names(evil, evil))
    assert all(line.isprintable() for line in text.splitlines())
    assert "<script" not in re.sub(r"`+[^`]*`+", "", text).replace("\\<", "")
