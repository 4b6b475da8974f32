"""What a report of a comparison says: the answer, what changed, and checks that fail as a gate."""

from __future__ import annotations

import json

import pytest
from builders import make_result
from comparison_builders import compared, medians, suite, timed

from dlprof.compare.comparison import exit_code
from dlprof.reports import comparison_json
from dlprof.reports.comparison_answers import answers_of, ratio_text
from dlprof.reports.comparison_checks import checks_of, refusal_check
from dlprof.reports.comparison_document import FIRST_ROWS, comparison_document, refusal_document
from dlprof.reports.document import Facts, Level

pytestmark = pytest.mark.unit

COPY = {"verdict": "copy", "evidence": {}}
GATE, PASS, FAIL, TELL = 3, 0, 1, None
"""The exit code of what is unsure, as ``--unsure`` gives it; None for ``compare``."""
ELSEWHERE = {
    "base_header": {"environment": {"cpu": "A"}},
    "head_header": {"environment": {"cpu": "B"}},
}


def document(base, head, *fail_on, **headers):
    return comparison_document(compared(base, head, *fail_on, **headers))


def answers(base, head, *fail_on, **headers):
    """All that answers, as text, the answer itself first."""
    return [
        f"{answer.label} {answer.code} {answer.value} {answer.note}"
        for answer in answers_of(compared(base, head, *fail_on, **headers))
    ]


def texts(table):
    return [[cell.text for cell in row] for row in table.rows]


def words(table):
    """Path and word of each row of a table of times."""
    titles = [column.title for column in table.columns]
    path, word = titles.index("path"), titles.index("result")
    return [(row[path], row[word]) for row in texts(table)]


def changed_third(**changes):
    """HEAD with its third case changed."""
    head = suite(seed=50)
    head[2] = suite(seed=50, **changes)[2]
    return head


def lost_third(status):
    head = suite(seed=50)
    head[2] = make_result("numpy.c(x)", None, case={"import": "c"}, status=status, reason="no")
    return head


def test_the_answer_names_the_slowest_case_and_how_much_slower_it_is():
    (first, *_) = answers_of(compared(suite(), suite({"c": 1.5, "d": 1.2}, seed=50)))
    assert first.code == "numpy.c(x)"
    assert first.value.startswith("1.5")
    assert "1 more" in first.note


def test_conversions_of_the_same_code_are_told_apart():
    def twins(ratio=1.0, seed=0):
        return [
            timed("a", [ratio * ns for ns in medians(seed=seed + side)], case={"shape": (side, 1)})
            for side in (4, 8)
        ]

    first = answers_of(compared(twins(), twins(1.5, seed=50)))[0]
    assert "4x1" in first.code or "8x1" in first.code


def test_the_worst_time_stands_first():
    base = [*suite(names="abcd"), timed("e", medians(2)), timed("f", medians())]
    doubtful = timed("e", [1.1 * ns for ns in medians(2)])
    head = [*suite({"c": 1.4, "d": 1.5, "b": 0.7}, names="abcd", seed=50), doubtful]
    assert words(document(base, head).tables[0]) == [
        ("numpy.d(x)", "SLOWER"),
        ("numpy.c(x)", "SLOWER"),
        ("numpy.f(x)", "GONE"),
        ("numpy.e(x)", "UNSURE"),
        ("numpy.b(x)", "FASTER"),
        ("numpy.a(x)", "SAME"),
    ]


def test_a_worse_verdict_is_in_the_answer_and_in_a_table():
    found = document(suite(), changed_third(ownership=COPY))
    assert found.answers[0].code == "numpy.c(x)"
    assert "copy" in found.answers[0].note
    (row,) = found.tables[1].rows
    assert row[0].tone == "worse"
    assert "copy" in row[1].text


@pytest.mark.parametrize(
    ("base", "head", "headers", "told"),
    [
        (suite(), suite(seed=50), {}, "8 times"),
        (suite(), [], {}, "HEAD holds no case"),
        (suite(), suite(seed=50), ELSEWHERE, "cpu A → B"),
        (suite(count=3), suite({"a": 1.12}, count=3, seed=50), {}, "--rounds"),
        (suite(), suite(dict.fromkeys("abcdefgh", 1.2), seed=50), {}, "nine in ten"),
        (suite(), [*suite(seed=50), suite()[0]], {}, "twice"),
        (suite(names="ab"), suite({"a": 0.5}, names="ab", seed=50), {}, "faster numpy.a(x)"),
        (suite(ownership=COPY), suite(seed=50), {}, "copy, now view"),
        (suite(), lost_third("crashed"), {}, "ok, now crashed"),
    ],
    ids=["same", "nothing", "machines", "unsure", "shifted", "twice", "faster", "better", "crash"],
)
def test_every_outcome_is_answered(base, head, headers, told):
    assert told in "\n".join(answers(base, head, **headers))


def test_what_the_scenario_expects_of_head_is_answered():
    header = {"expectations": [{"text": "no error", "verdict": "not met"}]}
    assert "no error" in answers(suite(), suite(seed=50), head_header=header)[0]


def test_the_interval_beside_a_word_is_the_one_that_decided_it():
    found = compared(suite(), suite({"c": 1.5, "d": 0.5}, seed=50))
    for case in found.cases:
        time = case.times[0]
        low, _ = time.interval if time.word == "SAME" else time.corrected
        shown = ratio_text(time).partition("(")[2].partition("-")[0]
        assert float(shown) == pytest.approx(low, abs=0.006)


def test_the_first_screen_has_the_worst_and_all_stand_in_full():
    names = [f"n{number:02}" for number in range(FIRST_ROWS + 5)]
    found = document(suite(names=names), suite(names=names, seed=50))
    assert len(found.tables[0].rows) == FIRST_ROWS
    assert "5 more" in found.tables[0].more
    (full,) = next(section.blocks for section in found.sections if "times" in section.heading)
    assert len(full.rows) == len(names)
    assert not list(found.shown(Level.FIRST))


def test_full_says_how_both_sides_were_measured():
    headers = {
        "base_header": {"left_out": ["c"], "environment": {"packages": {"torch": "2.9"}}},
        "head_header": {"left_out": ["c"], "environment": {"packages": {"torch": "2.10"}}},
    }
    found = document(suite(), suite(seed=50), **headers)
    (block,) = found.sections[-1].blocks
    assert isinstance(block, Facts)
    facts = dict(block.items)
    assert "2.9 → 2.10" in facts["versions"]
    assert "3 rounds" in facts["BASE"]
    assert facts["left out in HEAD"] == "c"
    assert found.context == "torch 2.9 → 2.10"


def test_if_only_verdicts_are_asked_for_no_times_are_shown():
    found = document(suite(), suite({"c": 3.0}, seed=50), "warning")
    assert not found.tables


def checks(base, head, *fail_on, unsure=GATE, **headers):
    """Outcome and word of each check by the name of the import."""
    found = checks_of(compared(base, head, *fail_on, **headers), unsure)
    return {
        check.name.removeprefix("numpy.").removesuffix("(x)"): (check.outcome, check.kind)
        for check in found
    }


def test_what_is_slower_fails_and_the_rest_passes():
    found = checks(suite(), suite({"c": 1.5}, seed=50))
    assert found.pop("c") == ("failed", "SLOWER")
    assert set(found.values()) == {("passed", "")}


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (changed_third(ownership=COPY), ("failed", "WORSE")),
        (lost_third("crashed"), ("error", "WORSE")),
        (lost_third("unsupported"), ("failed", "WORSE")),
        (suite(seed=50, names="abdefgh"), ("failed", "GONE")),
    ],
    ids=["copy", "crash", "refused", "gone"],
)
def test_what_is_worse_or_gone_is_no_pass(head, expected):
    assert checks(suite(), head)["c"] == expected


@pytest.mark.parametrize(
    ("unsure", "few", "invalid"),
    [
        (GATE, "error", "error"),
        (PASS, "skipped", "error"),
        (FAIL, "failed", "failed"),
        (TELL, "skipped", "skipped"),
    ],
)
def test_a_doubt_does_as_it_was_asked_and_what_is_invalid_never_passes(unsure, few, invalid):
    base = [*suite(), timed("z", medians(2))]
    head = [
        *changed_third(status="invalid", reason="throttled"),
        timed("z", [1.1 * ns for ns in medians(2)]),
    ]
    found = checks(base, head, unsure=unsure)
    assert (found["z"], found["c"]) == ((few, "UNSURE"), (invalid, "INVALID"))


def test_what_has_nothing_to_be_compared_with_is_skipped():
    refused = make_result("numpy.z(x)", None, case={"import": "z"}, status="unsupported")
    found = checks([*suite()[1:], refused], [*suite(seed=50), refused])
    assert found["a"] == ("skipped", "NEW")
    assert found["z"] == ("skipped", "UNMEASURED")


def test_other_machines_are_one_error_and_a_crash_stands_beside_it():
    crashed = make_result("numpy.z(x)", None, case={"import": "z"}, status="crashed", reason="no")
    sides = [*suite(), crashed], [*suite(seed=50), crashed]
    found = checks(*sides, unsure=PASS, **ELSEWHERE)
    errors = {name: kind for name, (outcome, kind) in found.items() if outcome == "error"}
    assert errors == {"can be compared": "INCOMPARABLE", "z": "INVALID"}
    assert checks(*sides, "warning", **ELSEWHERE)["can be compared"] == ("passed", "")


SIDES = {
    "same": suite(seed=50),
    "slower": suite({"c": 1.5}, seed=50),
    "faster": suite({"c": 0.5}, seed=50),
    "few": suite(count=2, seed=50),
    "gone": suite(seed=50, names="abcd"),
    "new": suite(seed=50, names="abcdefghij"),
    "copies": changed_third(ownership=COPY),
    "unknown": changed_third(ownership={"verdict": "unknown", "evidence": {}}),
    "invalid": changed_third(status="invalid", reason="throttled"),
    "crashed": lost_third("crashed"),
    "refused": lost_third("unsupported"),
    "skipped": lost_third("skipped"),
    "twice": [*suite(seed=50), suite()[0]],
    "nothing": [],
    "others": suite(seed=50, case={"dtype": "int8"}),
}


@pytest.mark.parametrize("head", SIDES)
@pytest.mark.parametrize("fail_on", [(), ("ready:5%",), ("warning",), ("dangling",)], ids=str)
@pytest.mark.parametrize("headers", [{}, ELSEWHERE], ids=["here", "elsewhere"])
def test_a_check_fails_exactly_where_the_gate_does(head, fail_on, headers):
    found = compared(suite(), SIDES[head], *fail_on, **headers)
    for unsure in (GATE, PASS, FAIL):
        checks = checks_of(found, unsure)
        bad = [check for check in checks if check.outcome in ("failed", "error")]
        assert bool(bad) == bool(exit_code(found, unsure)), unsure


@pytest.mark.parametrize(
    ("verdict", "outcome"), [("met", "passed"), ("not met", "failed"), ("not checked", "error")]
)
def test_what_the_scenario_expects_is_a_check(verdict, outcome):
    header = {"expectations": [{"text": "no error", "verdict": verdict}]}
    assert checks(suite(), suite(seed=50), head_header=header)["no error"][0] == outcome


def test_a_gate_that_measured_nothing_is_one_error():
    found = refusal_document("the machines differ")
    assert refusal_check("the machines differ", 3).outcome == "error"
    assert found.answers[0].note == "the machines differ"
    assert json.loads(comparison_json.refusal("no", 3))["exit_code"] == 3


def as_json(base, head, *fail_on, **headers):
    found = compared(base, head, *fail_on, **headers)
    return json.loads(comparison_json.render(found, exit_code(found)))


def test_the_json_holds_what_the_table_shows():
    found = as_json(suite(), suite({"c": 1.5}, seed=50, ownership=COPY), "ready:5%,10ns", "info")
    assert found["schema"] == "dlprof.comparison/1"
    assert found["counts"] == {"SAME": 7, "SLOWER": 1}
    assert (found["regression"], found["exit_code"]) == (True, 1)
    slower = next(case for case in found["cases"] if case["case"]["import"] == "c")
    (time,) = slower["times"]
    assert time["word"] == "SLOWER"
    assert time["corrected"][0] <= time["ci95"][0] <= time["ratio"] <= time["ci95"][1]
    assert time["processes"] == {"base": 10, "head": 10}
    (change,) = slower["changes"]
    assert (change["before"], change["after"]) == ("view", "copy")


def test_the_json_says_why_times_are_not_comparable():
    found = as_json(suite(), suite(seed=50), **ELSEWHERE)
    assert (found["times_comparable"], found["exit_code"]) == (False, 3)
    assert "cpu A → B" in found["reason"]
    assert as_json([], [])["exit_code"] == 4
