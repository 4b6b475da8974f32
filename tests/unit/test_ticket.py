"""Tickets as Markdown: whole, of bounded length, and nothing in a session can break out."""

from __future__ import annotations

import pytest
from builders import make_measure
from markdown_it import MarkdownIt
from repro_builders import finding_of, session_of
from rule_builders import verdict

from dlprof.errors import UsageError
from dlprof.evidence.redact import Redactor, Surroundings
from dlprof.evidence.repro import Reproducer, reproducer
from dlprof.evidence.ticket import LIMIT, Ran, also, run, ticket
from dlprof.evidence.ticket import write as writing
from dlprof.evidence.ticket.markdown import code, fenced, prose, publishing
from dlprof.rules import RULES
from dlprof.rules.layout import NO_WAY_OUT

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
        (Ran(0, "the problem is gone"), "Not reproduced.** When it was run"),
        (
            Ran(0, "bye"),
            "to an answer (ended with exit code 0, and did not say 'the problem is gone'",
        ),
        (
            Ran(1, ""),
            "to an answer (ended with exit code 1, and did not say 'the problem is there'",
        ),
        (
            Ran(None, "", why="stopped after it had written 1 MiB"),
            "(stopped after it had written 1",
        ),
        (
            Ran(2, "no module"),
            "Not reproduced.** Run in the interpreter that was measured, the script could not tell",
        ),
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


PRIVATE = (
    "/home/jo_smith/my_env/lib.so of jo_smith on my_node, jo.smith@example.org,"
    " https://jo:pw@example.org/x, ghp_0123456789abcdefghij0123 and correct_horse"
)
SURROUNDINGS = Surroundings(("/home/jo_smith",), ("jo_smith",), ("my_node",), ("correct_horse",))


def published(make):
    with publishing(Redactor(SURROUNDINGS)):
        return make()


@pytest.mark.parametrize("kind", [prose, code, fenced])
def test_what_is_private_is_taken_out_before_it_is_escaped(kind):
    text = published(lambda: kind(PRIVATE)).replace("\\", "")
    for word in ("smith", "node", "jo", "example.org,", "ghp", "horse", "pw"):
        assert word not in text


def test_a_path_is_taken_out_once():
    text = published(lambda: prose("A=/opt/v/lib/python3.12/site-packages/nvidia/lib"))
    assert text == "A=&lt;path&gt;/site-packages/nvidia/lib"


def test_nothing_private_is_in_any_part_of_a_ticket():
    session = session_of("DLP018")
    case = session.results[0].case.model_copy(update={"code": f"numpy.array(x)  # {PRIVATE}"})
    result = session.results[0].model_copy(
        update={"status": "crashed", "reason": PRIVATE, "case": case, "notes": [PRIVATE]}
    )
    environment = {"python": PRIVATE, "cpu": PRIVATE, "variables": {"A": PRIVATE}}
    finding = finding_of(
        "DLP018", summary=PRIVATE, advice=PRIVATE, evidence={"words": PRIVATE, "more": [PRIVATE]}
    )
    session = session.model_copy(
        update={"results": [result], "environment": environment, "findings": [finding] * 2}
    )
    script = Reproducer(f"shows {PRIVATE}", f"# {PRIVATE}")
    others = [also.Also(PRIVATE, PRIVATE), also.Also(PRIVATE, Ran(1, f"{PRIVATE}\n{PRIVATE}"))]
    ran = Ran(3, PRIVATE, PRIVATE, PRIVATE)
    text = published(lambda: ticket(session, 1, finding, script, ran, others))
    text = text.replace("\\", "")
    for word in ("smith", "my_node", "ghp", "horse", "pw&#64;"):
        assert word not in text


@pytest.mark.parametrize("length", range(280, 320))
def test_no_cut_leaves_half_of_what_is_private(length):
    text = published(lambda: prose("x" * (length - 8) + " correct_horse", 300))
    assert "correct" not in text


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


@pytest.mark.parametrize(
    ("ours", "python", "where"),
    [
        (True, None, "in the interpreter that was measured"),
        (True, "p", "in the interpreter of --python"),
        (False, None, "in the interpreter that runs dlprof"),
    ],
)
def test_the_ticket_says_where_the_script_was_run(monkeypatch, ours, python, where):
    import sys

    Runs(monkeypatch)
    session = session_of("DLP018").model_copy(
        update={"environment": {"executable": sys.executable}}
    )
    text = writing.written(session, 1, session.findings[0], ours, True, python)
    assert f"It was run {where}, and shows the problem" in text


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


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_of_what_is_cut_whole_lines_stay(stream):
    import sys

    lines = "for number in range(2000): print('%09d' % number, file=sys.{})"
    found = run(f"import sys\n{lines.format(stream)}\nsys.exit(3)", sys.executable)
    text = found.output if stream == "stdout" else found.errors
    kept = [line for line in text.splitlines() if not line.startswith("…")]
    assert {len(line) for line in kept} == {9}
    assert kept[-1] == "000001999"


def test_an_interpreter_that_is_none_is_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot start"):
        run("", str(tmp_path))


def script(text):
    import sys

    return run(text, sys.executable)


def test_what_a_framework_logs_is_no_output_of_the_script():
    text = "import sys\nprint('I am tensorflow', file=sys.stderr)\nprint('the problem is there')\n"
    found = script(f"{text}sys.exit(1)")
    assert (found.verdict, found.output, found.errors) == ("there", "the problem is there", "")


def test_what_stands_on_stderr_is_told_of_a_script_that_failed():
    found = script("print('begun', flush=True)\nimport no_such_module")
    assert found.output == "begun"
    assert found.errors.endswith("No module named 'no_such_module'")
    text = made(ran=found)
    assert "ended with exit code 1, and did not say 'the problem is there'" in text
    assert "On stderr:" in text


def test_frameworks_are_asked_to_be_quiet():
    found = script("import os\nprint(os.environ['TF_CPP_MIN_LOG_LEVEL'])")
    assert found.output == "3"


def test_output_without_end_is_stopped_and_told_in_words():
    found = run("", "/usr/bin/yes")
    assert found.code is None
    assert found.verdict == "stopped after it had written 1 MiB"
    assert len(found.output) < 10_000


def test_a_script_that_leaves_somebody_behind_who_has_its_output_is_not_waited_for():
    text = "import subprocess, sys\nsubprocess.Popen(['sleep', '60'])\nprint('the problem is gone')"
    found = script(text)
    assert (found.verdict, found.output) == ("gone", "the problem is gone")


def test_the_answer_of_a_script_that_says_much_is_kept():
    found = script("print('x' * 100_000)\nprint('the problem is there')\nimport sys\nsys.exit(1)")
    assert found.verdict == "there"
    assert "characters cut" in found.output


QUICK = {"rounds": 1}


def test_a_quick_session_has_no_interval_and_says_so():
    session = session_of("DLP012", ready_time=make_measure(5000.0, None))
    results = [
        result.model_copy(update={"ready_time": make_measure(5000.0, None)})
        for result in session.results
    ]
    text = made("DLP012", session=session.model_copy(update={"results": results, **QUICK}))
    assert "95 %" not in text
    assert "from 1 fresh process. After ~ stands the time of one process" in text


def test_an_interval_is_told_where_there_is_one():
    assert "from 3 fresh processes. After ± stands the larger half of the 95 %" in made("DLP012")


def several(count, rule="DLP020"):
    """A session with one finding of so many calls."""
    session = session_of(rule)
    first = session.results[0]
    calls = [
        first.model_copy(
            update={"case": first.case.model_copy(update={"code": f"numpy.array(x, ndmin={n})"})}
        )
        for n in range(count)
    ]
    finding = finding_of(rule, results=list(range(count)))
    return session.model_copy(update={"results": calls, "findings": [finding]})


class Answers:
    """Stands for the run of scripts: the first three show it, then one does not, …"""

    def __init__(self):
        self.texts = []

    def __call__(self, text, python=""):
        self.texts.append(text)
        count = len(self.texts)
        return (
            Ran(0, "3 of 4\nthe problem is gone")
            if count == 4
            else Ran(1, "3 of 4\nthe problem is there")
        )


def test_the_script_is_run_with_the_other_calls_of_a_finding(monkeypatch):
    answers = Answers()
    monkeypatch.setattr(writing, "run", answers)
    session = several(5)
    text = writing.written(session, 1, session.findings[0], True, True, "python")
    assert len(answers.texts) == 5
    assert "(x of numpy, and 4 other calls)" in text.splitlines()[0]
    assert "- `numpy.array(x, ndmin=1)`: shows it too (exit code 1): 3 of 4" in text
    assert "- `numpy.array(x, ndmin=3)`: **does not show it** (exit code 0): 3 of 4" in text
    assert "numpy.array(x, ndmin=4)" in answers.texts[4]


def test_other_calls_are_named_where_nothing_is_run():
    session = several(3)
    text = writing.written(session, 1, session.findings[0], True, False, None)
    assert "The same was found of these calls.\n\n- `numpy.array(x, ndmin=1)`\n- " in text


def test_the_same_words_are_another_call_where_they_convert_other_arrays():
    session = several(3)
    first, second, *rest = session.results
    changes = {"producer": "torch", "code": first.case.code}
    second = second.model_copy(update={"case": second.case.model_copy(update=changes)})
    session = session.model_copy(update={"results": [first, second, *rest]})
    told = also.told(also.untried(session, session.findings[0]))
    assert f"- `{first.case.code}` of torch\n" in told
    assert "- `numpy.array(x, ndmin=2)` of numpy" in told


def test_other_calls_are_tried_for_a_while_and_not_for_ever():
    session = several(20)
    found = also.tried(session, session.findings[0], Answers())
    assert [isinstance(one.ran, Ran) for one in found] == [True] * 8 + [False] * 11
    ticks = iter(range(0, 10_000, 25))
    found = also.tried(session, session.findings[0], Answers(), clock=lambda: next(ticks))
    assert [isinstance(one.ran, Ran) for one in found] == [True] * 2 + [False] * 17
    assert "not tried: those before took 60 s" in also.told(found)


@pytest.mark.parametrize("rule", ["DLP018", "DLP020"])
def test_what_is_expected_of_copies_has_a_source(rule):
    text = made(rule)
    expected = text[text.index("## What is expected") :]
    assert "https://data-apis.org/array-api/" in expected or "documentation" in expected
    if rule == "DLP020":
        assert "https://dmlc.github.io/dlpack/latest/python_spec.html" in expected


def test_of_jax_the_ticket_says_what_jax_says_of_time():
    session = session_of("DLP020")
    case = session.results[0].case.model_copy(update={"consumer": "jax"})
    result = session.results[0].model_copy(update={"case": case})
    text = made(
        "DLP020", session=session.model_copy(update={"results": [result, *session.results[1:]]})
    )
    assert "“This function is always asynchronous" in text


def test_the_title_says_at_which_addresses_a_promise_is_broken():
    evidence = {"view_alignment_bytes": 64, "copy_alignment_bytes": 32}
    assert made("DLP018", evidence=evidence).startswith(
        "# `numpy.array(x)` is documented to copy, and is a view where x begins at a multiple of 64"
        " bytes (x of numpy)"
    )


def test_memory_that_gives_a_view_is_shown_in_code():
    text = made("DLP017", evidence={"view_alignment_bytes": 64, "cause": "alignment"})
    part = text[text.index("## What to do meanwhile") :]
    assert "memory[(64 - memory.ctypes.data) % 128:]" in part
    assert "Such an array" not in made("DLP017", evidence={"cause": "layout"})


def test_memory_for_a_view_that_is_not_advised_is_not_shown():
    evidence = {"view_alignment_bytes": 64, "cause": "alignment"}
    assert "Such an array" not in made("DLP017", evidence=evidence, advice=NO_WAY_OUT)


def test_of_a_call_that_changes_its_source_the_ticket_expects_that_it_does_not():
    values = verdict("wrong", changed={"source": {"different": 1, "of": 9}})
    text = made(session=session_of("DLP008", values=values), rule="DLP008")
    assert "Source and earlier results stay as they are" in text
