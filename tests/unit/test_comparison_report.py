"""The comparison for a terminal and as JSON: it answers, it fits, and hostile text does no harm."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from builders import make_result
from comparison_builders import compared, medians, suite, timed
from rich.cells import cell_len

from dlprof.compare.matching import key
from dlprof.reports import comparison_json
from dlprof.reports.comparison import Names, render
from dlprof.reports.comparison_text import answers, ratio_text

pytestmark = pytest.mark.unit

COPY = {"verdict": "copy", "evidence": {}}
SGR = re.compile(r"\x1b\[[\d;]*m")


def text(base, head, *fail_on, width=80, colour=False, **headers):
    found, result = compared(base, head, *fail_on, **headers)
    return render(found, result, Names("a.json", "b.json"), width, colour)


def flat(*sides, **options):
    """The report with its line breaks taken out, for sentences."""
    return " ".join(text(*sides, **options).split())


def rows(*sides, **options):
    """Path and word of the rows of the table."""
    lines = text(*sides, **options).splitlines()
    begin = next(index for index, line in enumerate(lines) if line.startswith("path"))
    found = [re.fullmatch(r"(numpy\.\S+) .* ([A-Z]+)", line) for line in lines[begin + 1 :]]
    return [(match[1], match[2]) for match in found if match]


def test_the_heading_names_the_array_the_files_and_the_versions():
    headers = {
        "base_header": {"environment": {"packages": {"torch": "2.9.0"}}},
        "head_header": {"environment": {"packages": {"torch": "2.10.0"}}, "rounds": 10},
    }
    lines = text(suite(), suite(seed=50), **headers).splitlines()
    assert lines[:5] == [
        "torch → numpy  4x4  float32  C  cpu",
        "BASE a.json: 3 rounds, 2026-01-01T00:00:00+00:00",
        "HEAD b.json: 10 rounds, 2026-01-02T00:00:00+00:00",
        "compared: torch 2.9.0 → 2.10.0",
        "also different: rounds 3 → 10",
    ]


def test_the_worst_stands_first():
    base = [*suite(names="abcd"), timed("e", medians(1)), timed("f", medians())]
    head = [*suite({"c": 1.2, "d": 1.5, "b": 0.7}, names="abcd", seed=50), timed("e", medians(1))]
    assert rows(base, head) == [
        ("numpy.d(x)", "SLOWER"),
        ("numpy.c(x)", "SLOWER"),
        ("numpy.f(x)", "GONE"),
        ("numpy.e(x)", "UNSURE"),
        ("numpy.b(x)", "FASTER"),
        ("numpy.a(x)", "SAME"),
    ]


def test_a_case_with_a_worse_verdict_stands_above_all():
    head = suite({"c": 1.2}, seed=50)
    head[5] = suite(seed=50, ownership=COPY)[5]
    assert rows(suite(), head)[0] == ("numpy.f(x)", "SAME")


def test_it_answers_that_head_is_slower_and_by_how_much():
    found = flat(suite(), suite({"c": 1.5, "d": 1.2}, seed=50))
    assert re.search(
        r"HEAD is slower: numpy\.c\(x\) takes 1\.\d+ \([\d.]+-[\d.]+\) times as long \(ready\), "
        r"and 1 more\.",
        found,
    )


def test_it_answers_that_head_is_not_slower():
    assert "HEAD is not slower: the times of 8 cases are within the floor" in flat(
        suite(), suite(seed=50)
    )


def test_it_answers_that_head_is_worse():
    found = flat(suite(names="a"), suite(names="a", seed=50, ownership=COPY))
    assert "HEAD is worse: numpy.a(x) (ownership: view, now copy)." in found
    assert "warning numpy.a(x): ownership: view, now copy" in found


def test_it_answers_that_it_does_not_know_and_what_would_help():
    found = flat(suite(count=3), suite({"a": 1.3}, count=3, seed=50))
    assert "No regression was found, but not every case" in found or "Not known whether" in found
    assert re.search(
        r"About \d+ rounds a side would tell.*: measure both sides with --rounds \d+\.", found
    )


def test_it_answers_that_machines_differ():
    headers = {
        "base_header": {"environment": {"cpu": "A"}},
        "head_header": {"environment": {"cpu": "B"}},
    }
    found = flat(suite(), suite(seed=50), **headers)
    assert "Not known whether HEAD is slower: measured on different machines: cpu A → B." in found
    assert "Verdicts were compared, and none is worse." in found


def test_it_answers_that_all_cases_have_shifted():
    found = flat(suite(), suite(dict.fromkeys("abcdefgh", 1.1), seed=50))
    assert re.search(
        r"At least nine in ten cases are [\d.]+ % slower or more: the machine, or", found
    )


def test_it_says_what_is_better():
    found = flat(suite(names="ab", ownership=COPY), suite({"a": 0.5}, names="ab", seed=50))
    assert "Faster: numpy.a(x)." in found
    assert "Better: numpy.a(x) (ownership: copy, now view)" in found


def test_it_says_that_there_is_nothing_to_compare():
    assert "Nothing to compare: HEAD holds no case." in flat(suite(), [])


def test_a_crash_is_told_with_its_reason():
    head = [*suite(names="a", seed=50), timed("b", status="crashed", reason="SIGSEGV in import")]
    found = flat(suite(names="ab"), head)
    assert "error numpy.b(x): status: ok, now crashed: SIGSEGV in import" in found


def test_what_has_no_time_on_either_side_is_counted():
    lost = make_result("numpy.z(x)", None, case={"import": "z"}, status="unsupported")
    found = flat([*suite(), lost], [*suite(seed=50), lost])
    assert "1 more without a time on either side" in found


def test_a_case_that_stands_twice_is_named():
    head = suite(seed=50)
    assert "Not compared, since a session has it twice: torch" in flat(suite(), [*head, head[0]])


HOSTILE = "f(\x1b[31m\u202e\n" + "x" * 600


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("colour", [False, True])
def test_no_line_is_wider_than_the_terminal_whatever_stands_in_the_files(width, colour):
    case = {"case": {"code": HOSTILE, "dtype": HOSTILE}, "ownership": {"verdict": HOSTILE}}
    base = [timed("a", medians(), reason=HOSTILE), timed("b", medians())]
    head = [timed("a", medians(seed=1)), timed("b", medians(), status="crashed", reason=HOSTILE)]
    more = [timed("c", medians(seed=2), **case)]
    headers = {
        "base_header": {"environment": {"cpu": HOSTILE, "packages": {HOSTILE: "1"}}},
        "head_header": {"environment": {"cpu": "B", "packages": {HOSTILE: HOSTILE}}},
    }
    found = text([*base, *more], [*head, *more], width=width, colour=colour, **headers)
    plain = SGR.sub("", found)
    assert max(cell_len(line) for line in plain.splitlines()) <= width
    assert "\x1b" not in plain
    assert "\u202e" not in plain


def test_several_arrays_are_named_in_the_rows():
    base = [timed("a", medians(), case={"shape": shape}) for shape in ((4, 4), (8, 8))]
    found = text(base, [*base[:1], timed("a", medians(seed=1), case={"shape": (8, 8)})])
    assert "torch → numpy  8x8  float32  C  cpu" in found


def as_json(base, head, *fail_on, **headers):
    found, result = compared(base, head, *fail_on, **headers)
    return json.loads(comparison_json.render(found, result, result.code()))


def test_the_json_holds_what_the_table_shows():
    found = as_json(suite(), suite({"c": 1.5}, seed=50, ownership=COPY), "ready:5%,10ns", "info")
    assert found["schema"] == "dlprof.comparison/1"
    assert found["counts"] == {"SAME": 7, "SLOWER": 1}
    assert (found["regression"], found["exit_code"]) == (True, 1)
    assert found["floors"] == [
        {"measure": "ready", "relative": 0.1, "absolute_ns": 10.0, "raised_from": 0.05}
    ]
    slower = next(case for case in found["cases"] if case["case"]["import"] == "c")
    (time,) = slower["times"]
    assert time["word"] == "SLOWER"
    assert time["corrected"][0] <= time["ci95"][0] <= time["ratio"] <= time["ci95"][1]
    assert time["processes"] == {"base": 10, "head": 10}
    assert slower["changes"] == [
        {
            "what": "ownership",
            "before": "view",
            "after": "copy",
            "direction": "worse",
            "severity": "warning",
        }
    ]


def test_the_json_says_why_times_are_not_comparable():
    headers = {
        "base_header": {"environment": {"cpu": "A"}},
        "head_header": {"environment": {"cpu": "B"}},
    }
    found = as_json(suite(), suite(seed=50), **headers)
    assert (found["times_comparable"], found["exit_code"]) == (False, 3)
    assert found["reason"] == "measured on different machines: cpu A → B"


def test_the_json_of_nothing_says_so():
    found = as_json([], [])
    assert (found["reason"], found["exit_code"]) == ("BASE holds no case", 4)
    assert found["cases"] == []


def test_the_interval_beside_a_word_is_the_one_that_decided_it():
    found, _ = compared(suite(), suite({"c": 1.5, "d": 0.5}, seed=50))
    for case in found.cases:
        time = case.times[0]
        decided = time.interval if time.word == "SAME" else time.corrected
        places = 3 if decided[1] - decided[0] < 0.1 else 2
        assert f"({decided[0]:.{places}f}-{decided[1]:.{places}f})" in ratio_text(time)


def test_what_was_left_out_is_told_for_each_side():
    headers = {
        "base_header": {"left_out": ["a → b, which has no path that was asked for"]},
        "head_header": {"left_out": ["a → b, which has no path that was asked for", "c"]},
    }
    found = flat(suite(), suite(seed=50), **headers)
    assert "left out on both sides: a → b, which has no path that was asked for" in found
    assert "left out in HEAD: c" in found
    assert "left out in BASE" not in found


@pytest.mark.parametrize(
    ("spreads", "said"),
    [
        ((0.065, 0.065), "More time may tell: --budget."),
        ((0.065, 2.0), "More time may tell: --budget; but 1 of them are too noisy here for any."),
        ((2.0, 2.0), "No time worth taking would tell: they are too noisy here."),
    ],
)
def test_a_gate_says_whether_more_time_would_tell(spreads, said):
    chance = np.random.default_rng(3)
    sides = [
        [
            timed(name, list(1000 * np.exp(chance.normal(0.0, spread, 12))))
            for name, spread in zip("ab", spreads, strict=True)
        ]
        for _ in range(2)
    ]
    found, outcome = compared(*sides, in_turns=True)
    assert said in " ".join(answers(replace(found, measured_here=True), outcome))


def of_pair(producer, results, code="numpy.asarray(x)"):
    return [
        one.model_copy(
            update={
                "case": one.case.model_copy(update={"producer": producer, "code": code}),
            }
        )
        for one in results
    ]


def test_the_answer_tells_conversions_of_the_same_code_apart():
    base = [*of_pair("jax", suite(names="a")), *of_pair("torch", suite(names="a", seed=5))]
    head = [
        *of_pair("jax", suite({"a": 1.3}, names="a", seed=9)),
        *of_pair("torch", suite(names="a", seed=15)),
    ]
    found, result = compared(base, head, "ready")
    (first, *_) = answers(found, result)
    assert first.startswith("HEAD is slower: numpy.asarray(x) (jax → numpy, ")


def test_what_is_new_beside_cases_without_times_leaves_no_doubt():
    found, result = compared(
        [timed("a"), timed("b", status="unsupported", host_time=None, ready_time=None, rounds=[])],
        [timed("a"), timed("b")],
        own_floors={key(timed("a").case): ()},
    )
    assert result.code() == 0
    assert answers(found, result)[0].startswith("HEAD is not worse: the verdicts of 1 case were")
