"""Tickets: short and complete, and nothing in a session can break out of their Markdown."""

import re
import socket
import sys

import pytest
from builders import make_session
from markdown_it import MarkdownIt
from repro_builders import finding_of, session_of, with_case

from dlprof.judge import RULES
from dlprof.probes.base import ArraySpec
from dlprof.probes.numpy import NumPy
from dlprof.ticket import ticket as tickets
from dlprof.ticket.reproducer import Reproducer, reproducer
from dlprof.ticket.ticket import MOST_LINES, Ran, run, ticket, written

EVIL = (
    "`````\n# owned\n<script>alert(1)</script><img src=x onerror=y> @torvalds #1 "
    "![x](http://evil.example) [a](javascript:b) \x1b[31m \u202e \ud800 ~~~ | a |"
)
SHOWS = Ran(1, "numbers\nthe problem is there")


def made(rule="DLP018", ran=SHOWS, session=None, **changes):
    session = session or session_of(rule)
    finding = finding_of(rule, **changes)
    return ticket(session, finding, reproducer(session, finding), ran)


@pytest.mark.parametrize(
    "rule", [r.id for r in RULES if r.id not in ("DLP001", "DLP002", "DLP003", "DLP030")]
)
def test_a_ticket_is_a_title_a_paragraph_a_script_its_output_and_versions(rule):
    text = made(rule)
    head, script, rest = re.fullmatch("(.*)\n```python\n(.*?)\n```\n(.*)", text, re.DOTALL).groups()
    code = "x.__dlpack__(" if rule == "DLP024" else "numpy.array(x)"
    assert code in head.splitlines()[0]
    assert script == reproducer(session_of(rule), finding_of(rule)).text.rstrip("\n")
    assert "numbers\nthe problem is there" in rest
    assert rest.splitlines()[-1].startswith("Found with dlprof")
    assert "dlprof" not in head + "\n".join(rest.splitlines()[:-1])


@pytest.mark.parametrize(
    ("ran", "words"),
    [
        (SHOWS, "Exit code 1"),
        (Ran(0, "the problem is gone"), "**Not reproduced.** Exit code 0"),
        (Ran(1, ""), "exit code 1 without"),
        (Ran(None, ""), "no end"),
        (Ran(-11, "", "died"), "exit code -11"),
    ],
)
def test_an_unreproduced_finding_is_marked(ran, words):
    text = made(ran=ran).replace("\\", "")
    assert words in text
    assert ("**Not reproduced.**" in text) is (isinstance(ran, Ran) and ran is not SHOWS)


def test_a_ticket_marks_the_call_in_its_sentence_as_code():
    text = made("DLP018", summary="numpy.array(x) and 1 more path share memory.")
    assert " `numpy.array(x)` and 1 more path share memory." in text


def test_a_finding_without_a_script_gives_the_reason():
    session = session_of("DLP018", recipe=None)
    text = written(session, session.findings[0], sys.executable)
    assert "Not reproduced:** " in text


def hostile_ticket(evil):
    names = ("producer", "consumer", "dtype", "layout", "device", "code", "source")
    result = with_case(session_of("DLP018").results[0], **dict.fromkeys(names, evil))
    result = result.model_copy(update={"reason": evil, "status": "crashed"})
    other = with_case(result, code=evil + "2", producer=evil + "3")
    environment = {"python": evil, "cpu": evil, "packages": {evil: evil}, "variables": {evil: evil}}
    session = make_session(environment=environment)
    session = session.model_copy(update={"results": [result, other]})
    finding = finding_of("DLP018", summary=evil, advice=evil, results=[0, 1], name=evil)
    runs = [(evil, None), (Reproducer(evil, evil, evil, result), Ran(3, evil, evil))]
    return "".join(ticket(session, finding, *one) for one in runs)


def test_hostile_text_is_shown_and_never_run():
    text = hostile_ticket(EVIL)
    html = MarkdownIt("gfm-like", {"linkify": False}).render(text)
    for harm in ("<script>", "<img", 'evil.example"', 'javascript:b"', "<h1>owned"):
        assert harm not in html
    for harm in ("\x1b", "\u202e"):
        assert harm not in text
    text.encode("utf-8")


def test_names_of_this_machine_appear_in_no_part_of_a_ticket(monkeypatch):
    monkeypatch.setenv("HOME", "/home/jo_smith")
    monkeypatch.setenv("USER", "jo_smith")
    monkeypatch.setattr(socket, "gethostname", lambda: "node17.example.org")
    private = "/home/jo_smith/env/lib.so of jo_smith on node17 or node17.example.org"
    text = hostile_ticket(private).replace("\\", "")
    assert "smith" not in text
    assert "node17" not in text
    assert "env/lib.so" in text


@pytest.mark.parametrize(
    "script",
    ["print('x' * 100_000)", "import subprocess; subprocess.Popen(['sleep', '999'])"],
    ids=["long", "child"],
)
def test_a_script_is_run_to_its_end_and_its_last_lines_are_kept(script):
    found = run(f"{script}; print('the problem is gone')", sys.executable)
    assert found.verdict == "gone"
    assert found.output.endswith("the problem is gone")
    assert len(found.output.splitlines()) <= MOST_LINES + 1


def test_a_script_that_does_not_end_is_stopped(monkeypatch):
    monkeypatch.setattr(tickets, "LIMIT_S", 0.5)
    found = run("import time; time.sleep(999)", sys.executable)
    assert (found.code, found.verdict[:6]) == (None, "no end")


@pytest.mark.parametrize(
    ("code", "array"),
    [
        ("numpy.asarray(x)", "float32 3x3"),
        ("x if x.size > 100 else numpy.array(x)", "float32 64x64"),
        ("x if x.size > 10000 else numpy.array(x)", "float32 128x128"),
    ],
)
def test_a_ticket_has_the_smallest_array_on_which_its_script_shows_the_problem(code, array):
    spec = ArraySpec((128, 128), "float32")
    session = session_of("DLP018", NumPy(), NumPy(), spec=spec, code=code)
    text = written(session, session.findings[0], sys.executable)
    assert f"({array}, C layout, on cpu)" in text
    assert f"x: {array} of numpy" in text
    assert "Exit code 1: the problem is there." in text


def test_a_ticket_about_a_time_keeps_the_measured_size():
    session = session_of("DLP012", spec=ArraySpec((128, 128), "float32"))
    assert "x: float32 128x128 of" in written(session, session.findings[0], sys.executable)
