"""Two sessions compared: each case gets the word that its times support."""

import numpy as np
import pytest
from builders import make_session
from comparison_builders import case_words, compared, medians, only_words, pair, suite, timed

from dlprof.compare.comparison import compare, exit_code, is_one_gate
from dlprof.compare.times import WIDE
from dlprof.compare.verdicts import Criteria
from dlprof.errors import UsageError
from dlprof.report.comparison_document import comparison_answers

COPY = {"ownership": {"verdict": "copy", "evidence": {}}, "case": {"shape": (1024, 1024)}}
ENVIRONMENT = {"cpu": "A", "machine": "x86_64", "cores": 2, "packages": {}, "gpus": []}


def times_of(comparison):
    return {case.case.import_: time for case, time in comparison.times}


def beside_others(base, head, **changes):
    """Compare the time of one case with these process medians, among seven equal cases."""
    others = (suite(names="abcdefg"), suite(names="abcdefg", seed=50))
    sides = [
        [*side, timed("h", ns, **changes)] for side, ns in zip(others, (base, head), strict=True)
    ]
    return times_of(compared(*sides))["h"]


def headers(base, head):
    return {"base_header": base, "head_header": head}


@pytest.mark.parametrize(
    ("ratios", "word"), [({}, "SAME"), ({"c": 2.5}, "SLOWER"), ({"c": 0.4}, "FASTER")]
)
def test_a_changed_case_is_found_and_the_others_are_the_same(ratios, word):
    found = compared(suite(), suite(ratios, seed=50))
    assert only_words(found) == {**dict.fromkeys("abdefgh", "SAME"), "c": word}
    assert case_words(found) == only_words(found)


@pytest.mark.parametrize(
    ("base", "head", "word"),
    [
        (medians(3), medians(3, 1200.0, seed=1), "SAME"),
        (medians(3), medians(3, 1600.0, seed=1), "UNSURE"),
        (medians(3), medians(3, 4000.0, seed=1), "SLOWER"),
        ([1000.0] * 3, [900.0, 4000.0, 4000.0], "UNSURE"),
        ([1000.0], [9000.0], "UNSURE"),
    ],
    ids=["a little slower", "slower", "far slower", "not in every process", "one process"],
)
def test_two_sessions_show_only_cases_that_take_twice_as_long_in_every_process(base, head, word):
    assert beside_others(base, head).word == word


def test_few_processes_of_a_large_copy_prove_nothing_and_many_do():
    assert beside_others(medians(4), medians(4, 9000.0), **COPY).word == "UNSURE"
    assert beside_others(medians(), medians(seed=1, around_ns=3000.0), **COPY).word == "SLOWER"


def test_in_turns_the_ratio_is_of_head_over_base_with_its_interval():
    sides = suite(count=16), suite({"c": 1.2}, count=16, seed=50)
    found = compared(*sides, "ready:5%", "host:5%", in_turns=True)
    for time in next(case.times for case in found.cases if case.case.import_ == "c"):
        low, high = time.interval
        assert (time.word, time.processes) == ("SLOWER", (16, 16))
        assert time.ratio == pytest.approx(1.2, abs=0.02)
        assert time.corrected[0] <= low < 1.2 < high <= time.corrected[1]


def test_in_turns_a_likely_slowdown_is_wide_and_does_not_pass():
    sides = suite(count=8), suite({"c": 1.06}, count=8, seed=50)
    found = compared(*sides, in_turns=True)
    (_, time) = next(one for one in found.times if one[0].case.import_ == "c")
    assert (time.word, time.is_likely_slower) == (WIDE, True)
    assert time.bound > 1.06
    assert exit_code(found) == 3
    (likely,) = (answer for answer in comparison_answers(found) if answer.label == "likely slower")
    assert likely.code == "numpy.c(x)"


def test_in_turns_a_drift_from_round_to_round_is_no_difference():
    walk = np.repeat([1.0, 1.3, 1.6, 2.0], 4)
    sides = [
        [timed(ns=[v * f for v, f in zip(medians(16, seed=seed), walk, strict=True)])]
        for seed in (0, 1)
    ]
    assert set(only_words(compared(*sides, in_turns=True)).values()) == {"SAME"}


def test_in_turns_rounds_that_were_measured_alone_do_not_count():
    company = {"status": "timeout", "reason": "no answer", "rounds": [3, 4]}
    head = [*suite(seed=50, names="abcdefg"), timed("h", medians(seed=57), in_company=company)]
    assert times_of(compared(suite(), head, in_turns=True))["h"].processes == (8, 8)


@pytest.mark.parametrize("name", ["BASE", "HEAD"])
def test_an_untrustworthy_time_is_invalid(name):
    results = {"BASE": timed(ns=medians()), "HEAD": timed(ns=medians(seed=1))}
    results[name] = timed(ns=medians(), status="invalid", reason="throttled")
    found = compared([results["BASE"]], [results["HEAD"]])
    assert times_of(found)["a"].reason == f"{name}: throttled"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"cpu": "B"}, "different machines"),
        ({"gpus": [{"name": "H200"}]}, "different machines"),
        ({"machine_id": None, "boot_id": None}, "not known"),
    ],
)
def test_times_of_other_machines_are_not_compared(change, why):
    base = {"environment": {**ENVIRONMENT, "python": "3.11.7"}}
    head = {"environment": {**base["environment"], **change}}
    found = compared(suite(), suite({"c": 9.0}, seed=50), **headers(base, head))
    assert set(only_words(found).values()) == {"INVALID"}
    assert why in found.incomparable


def test_a_measurement_is_not_compared_with_itself():
    base, _ = pair(suite(), suite())
    with pytest.raises(UsageError, match="same measurement"):
        compare(base, base, Criteria())


def test_two_quick_sessions_tell_nothing_about_times():
    found = compared([timed(ns=[1000.0])], [timed(ns=[1400.0])])
    label, time = comparison_answers(found)[0].label, found.times[0][1]
    assert label == "not known whether HEAD is slower"
    assert (time.ratio, time.interval) == (1.4, None)


@pytest.mark.parametrize(("begun", "together"), [("00:00:01", True), ("00:09:00", False)])
def test_the_two_sessions_of_a_gate_are_paired_by_round(begun, together):
    axes = {"pairs": [["torch", "numpy"]], "axes": {"shapes": [[4, 4]]}}
    request = {"request": {**axes, "settings": {"in_turns": True}}}
    headers = [{**request, "created": f"2026-01-01T{at}+00:00"} for at in ("00:00:00", begun)]
    base, head = (make_session(**header) for header in headers)
    assert is_one_gate(base, head) is together
