"""Tickets as Markdown: whole, of bounded length, and nothing in a session can break out."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt
from repro_builders import finding_of, session_of

from dlprof.errors import UsageError
from dlprof.repro import reproducer
from dlprof.rules import RULES
from dlprof.ticket import LIMIT, Ran, run, ticket
from dlprof.ticket import write as writing
from dlprof.ticket.markdown import code, fenced, prose

pytestmark = pytest.mark.unit

EVIL = (
    "`````\n# owned\n<script>alert(1)</script><img src=x onerror=y> @torvalds #1 "
    "![x](http://evil.example) [a](javascript:b) \x1b[31m \u202e \ud800 ~~~ | a |"
)
SHOWS = Ran(1, "numbers\nthe problem is there")
SECTIONS = (
    "How to see it",
    "What was measured",
    "How sure this is",
    "What is expected",
    "What to do meanwhile",
    "Versions and hardware",
)


def made(rule="DLP018", ran=SHOWS, session=None, **changes):
    session = session or session_of(rule)
    finding = finding_of(rule, **changes)
    session = session.model_copy(update={"findings": [finding]})
    return ticket(session, 1, finding, reproducer(session, finding), ran)


def html_of(text):
    return MarkdownIt("gfm-like", {"linkify": False}).render(text)


NEED_A_QUEUE = ("DLP001", "DLP002", "DLP003")
"""NumPy has none."""


@pytest.mark.parametrize("rule", [rule.id for rule in RULES if rule.id not in NEED_A_QUEUE])
def test_every_rule_has_a_ticket_with_every_section(rule):
    text = made(rule)
    for section in SECTIONS:
        assert f"\n## {section}\n" in text
    assert "`numpy.array(x)`" in text.splitlines()[0]
    assert text.splitlines()[0].endswith("(x of numpy)")


def test_the_reproducer_and_what_it_printed_stand_there():
    text = made()
    assert "def problem():" in text
    assert "shows the problem (exit code 1)" in text
    assert "numbers\nthe problem is there" in text


@pytest.mark.parametrize(
    ("ran", "words"),
    [
        (Ran(0, "it is gone"), "Not reproduced.** When it was run"),
        (Ran(125, "no module"), "Not reproduced.** The script could not tell"),
        (Ran(None, ""), "Not reproduced.** The script did not come to an answer (no end within"),
        (Ran(-11, ""), "did not come to an answer (ended with exit code -11)"),
        ("--no-run was asked for", "The reproducer was not run**: --no-run was asked for"),
    ],
)
def test_what_was_not_reproduced_is_marked(ran, words):
    assert words in made(ran=ran)


def test_a_finding_without_a_script_says_why():
    session = session_of("DLP018")
    text = ticket(session, 1, session.findings[0], "it is too long", "it is too long")
    assert "Not reproduced:** no script could be made of it: it is too long" in text


def test_hostile_text_is_shown_and_never_run():
    case = {"producer": EVIL, "consumer": EVIL, "dtype": EVIL, "layout": EVIL, "device": EVIL}
    session = session_of("DLP018")
    result = session.results[0]
    result = result.model_copy(
        update={"case": result.case.model_copy(update=case), "reason": EVIL, "status": "crashed"}
    )
    environment = {"python": EVIL, "cpu": EVIL, "packages": {EVIL: EVIL}, "variables": {EVIL: EVIL}}
    finding = finding_of("DLP018", summary=EVIL, advice=EVIL, evidence={EVIL: EVIL, "x": 1e400})
    session = session.model_copy(
        update={"results": [result], "environment": environment, "findings": [finding] * 3}
    )
    text = ticket(session, 1, finding, EVIL, EVIL)
    text += ticket(
        session, 1, finding, reproducer(session_of("DLP018"), finding_of("DLP018")), Ran(1, EVIL)
    )
    html = html_of(text)
    assert "<script>" not in html
    assert "<img" not in html
    assert 'evil.example"' not in html
    assert 'javascript:b"' not in html
    assert "<h1>owned" not in html
    assert "\x1b" not in text
    assert "\u202e" not in text
    text.encode("utf-8")


@pytest.mark.parametrize("text", ["```", "a ```` b", "`", " x ", "", "a|b", "x" * 5000])
def test_code_stays_code(text):
    html = html_of(f"a {code(text)} b")
    assert html.count("<code>") == 1


def test_a_fence_within_a_block_does_not_end_it():
    html = html_of(fenced("a\n`````\n# b\n~~~") + "\n\nafter")
    assert "<h1>" not in html
    assert "<p>after</p>" in html


def test_prose_means_nothing_to_markdown():
    html = html_of(prose("*a* _b_ `c` <i> @d #1 [e](f) ![g](h) | &amp;"))
    assert set(html.replace("<p>", "").replace("</p>", "")) & {"<"} == set()
    assert "@" not in prose("@somebody")


def test_a_ticket_fits_what_github_takes():
    long = "word " * 400_000
    session = session_of("DLP018")
    findings = [finding_of("DLP018", summary=long, advice=long)] * 500
    session = session.model_copy(update={"findings": findings})
    script = reproducer(session, findings[0])
    assert len(ticket(session, 1, findings[0], script, Ran(1, long))) <= LIMIT


def test_other_findings_are_listed():
    session = session_of("DLP018")
    findings = [finding_of("DLP018"), finding_of("DLP012", summary="it is slow")]
    session = session.model_copy(update={"findings": findings})
    text = ticket(session, 1, findings[0], "no script", "no script")
    assert "- 2. error DLP012 slow-path: it is slow" in text


def test_numbers_stand_with_their_intervals():
    assert "5.00 ±0.05 us" in made("DLP012")


def test_a_result_without_measures_is_told():
    session = session_of("DLP016", ready=None)
    text = made("DLP016", session=session)
    assert "crashed: killed by SIGABRT" in text


class Runs:
    """Stands for the run of a script."""

    def __init__(self, monkeypatch):
        self.pythons = []
        monkeypatch.setattr(writing, "run", self)

    def __call__(self, text, python):
        self.pythons.append(python)
        return SHOWS


@pytest.mark.parametrize(
    ("ours", "wanted", "runs"),
    [(True, None, 1), (True, False, 0), (False, None, 0), (False, False, 0), (False, True, 1)],
)
def test_a_foreign_session_is_run_only_if_that_was_asked_for(monkeypatch, ours, wanted, runs):
    ran = Runs(monkeypatch)
    session = session_of("DLP018")
    session = session.model_copy(update={"environment": {"executable": "/bin/sh"}})
    text = writing.written(session, 1, session.findings[0], ours, wanted, None)
    assert len(ran.pythons) == runs
    assert ("was not written by this user" in text) is (not ours and wanted is None)
    if not ours:
        assert "/bin/sh" not in ran.pythons  # another's interpreter is never started


def test_a_script_that_never_ends_is_stopped():
    import sys

    found = run("import time\nprint('begun', flush=True)\ntime.sleep(60)", sys.executable, 1.0)
    assert (found.code, found.output) == (None, "begun")


def test_a_script_that_prints_without_end_is_cut():
    import sys

    found = run("print('x' * 1_000_000)", sys.executable)
    assert found.code == 0
    assert len(found.output) < 10_000


def test_an_interpreter_that_is_none_is_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot start"):
        run("", str(tmp_path))
