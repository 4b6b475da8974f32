"""The report of a comparison: the answer, the changes, and checks that fail as a gate does."""

import json
from dataclasses import replace

import pytest
from builders import make_result
from comparison_builders import compared, medians, suite, timed

from dlprof.compare.comparison import exit_code
from dlprof.report.comparison_document import (
    as_json,
    comparison_answers,
    comparison_checks,
    comparison_document,
)

COPY = {"verdict": "copy", "evidence": {}}
GATE, PASS, FAIL = 3, 0, 1
"""Return the exit code for unsure results, as ``--unsure`` sets it."""
ELSEWHERE = {
    "base_header": {"environment": {"cpu": "A"}},
    "head_header": {"environment": {"cpu": "B"}},
}


def document(base, head, *fail_on, **headers):
    return comparison_document(compared(base, head, *fail_on, **headers))


def answers(base, head, *fail_on, **headers):
    """Return all text of the answer, with the answer itself first."""
    return [
        f"{answer.label} {answer.code} {answer.value} {answer.note}"
        for answer in comparison_answers(compared(base, head, *fail_on, **headers))
    ]


def changed_third(**changes):
    """Return HEAD with its third case changed."""
    head = suite(seed=50)
    head[2] = suite(seed=50, **changes)[2]
    return head


def lost_third(status):
    head = suite(seed=50)
    head[2] = make_result("numpy.c(x)", None, case={"import": "c"}, status=status, reason="no")
    return head


def test_the_answer_names_the_slowest_case_and_how_much_slower_it_is():
    (first, *_) = comparison_answers(compared(suite(), suite({"c": 2.5, "d": 2.2}, seed=50)))
    assert first.code == "numpy.c(x)"
    assert first.value.startswith("2.5")
    assert "1 more" in first.note


def test_the_worst_time_stands_first_and_equal_times_have_no_row():
    base = [*suite(names="abcd"), timed("e", medians(2)), timed("f", medians())]
    doubtful = timed("e", [1.6 * ns for ns in medians(2)])
    head = [*suite({"c": 2.4, "d": 2.5, "b": 0.4}, names="abcd", seed=50), doubtful]
    table = document(base, head).tables[0]
    titles = [column.title for column in table.columns]
    path, word = titles.index("path"), titles.index("result")
    assert [(row[path].text, row[word].text) for row in table.rows] == [
        ("numpy.d(x)", "SLOWER"),
        ("numpy.c(x)", "SLOWER"),
        ("numpy.f(x)", "GONE"),
        ("numpy.e(x)", "UNSURE"),
        ("numpy.b(x)", "FASTER"),
    ]


@pytest.mark.parametrize(
    ("base", "head", "headers", "told"),
    [
        (suite(), suite(seed=50), {}, "8 same"),
        (suite(), [], {}, "HEAD holds no case"),
        (suite(), suite(seed=50), ELSEWHERE, "cpu A → B"),
        (suite(count=3), suite({"a": 1.6}, count=3, seed=50), {}, "dlprof gate"),
        (suite(), lost_third("crashed"), {}, "ok, now crashed"),
    ],
    ids=["same", "nothing", "machines", "unsure", "crash"],
)
def test_every_outcome_is_answered(base, head, headers, told):
    assert told in "\n".join(answers(base, head, **headers))


@pytest.mark.parametrize(
    ("method", "title"), [(("6 rounds",), "ratio, median of rounds"), ((), "HEAD/BASE")]
)
def test_the_ratio_of_a_gate_is_named_after_its_rounds(method, title):
    found = comparison_document(replace(compared(suite(), suite(seed=50)), method=method))
    assert title in [column.title for column in found.tables[0].columns]


def test_nothing_to_compare_is_said_once():
    found = document(suite(names="ab"), suite(names="cd"))
    assert [answer.label for answer in found.answers] == ["nothing to compare"]


def test_an_open_case_is_a_line_with_its_bound_and_a_row_only_if_it_does_not_pass():
    base, head = (suite(seed=seed, names="abcd", spread=0.06) for seed in (0, 50))
    passing = ["no slowdown found", "wide"]
    for wide_limit, labels in ((0.25, passing), (0.0, ["HEAD may be slower"])):
        found = comparison_document(compared(base, head, wide_limit=wide_limit, in_turns=True))
        assert [answer.label for answer in found.answers][: len(labels)] == labels
        assert bool(found.tables[0].rows) == (wide_limit == 0)


SIDES = {
    "same": suite(seed=50),
    "slower": suite({"c": 2.5}, seed=50),
    "few": suite(count=1, seed=50),
    "gone": suite(seed=50, names="abcd"),
    "copies": changed_third(ownership=COPY),
    "unknown": changed_third(ownership={"verdict": "unknown", "evidence": {}}),
    "invalid": changed_third(status="invalid", reason="throttled"),
    "skipped": lost_third("skipped"),
    "nothing": [],
}


@pytest.mark.parametrize("head", SIDES)
@pytest.mark.parametrize("fail_on", [(), ("warning",), ("dangling",)], ids=str)
@pytest.mark.parametrize("headers", [{}, ELSEWHERE], ids=["here", "elsewhere"])
def test_a_check_fails_exactly_when_the_gate_does(head, fail_on, headers):
    found = compared(suite(), SIDES[head], *fail_on, **headers)
    for unsure in (GATE, PASS, FAIL):
        checks = comparison_checks(found, unsure)
        bad = [check for check in checks if check.outcome in ("failed", "error")]
        assert bool(bad) == bool(exit_code(found, unsure)), unsure


def test_the_json_holds_the_data_of_the_table():
    sides = suite(), suite({"c": 2.5}, seed=50, ownership=COPY)
    found = compared(*sides, "ready:5%,10ns", "info")
    content = json.loads(as_json(found, exit_code(found)))
    assert content["exit_code"] == 1
    slower = next(case for case in content["cases"] if case["case"]["import"] == "c")
    (time,) = slower["times"]
    assert (slower["word"], time["word"]) == ("WORSE", "SLOWER")
    assert time["corrected"][0] <= time["interval"][0] <= time["ratio"] <= time["interval"][1]
    (change,) = slower["changes"]
    assert (change["before"], change["after"]) == ("view", "copy")
