"""Two sessions side by side: each case gets the word that it has earned."""

import json
import math

import numpy as np
import pytest
from comparison_builders import case_words, compared, medians, only_words, pair, suite, timed
from hypothesis import given, settings
from hypothesis import strategies as st

from dlprof.compare.comparison import compare, exit_code
from dlprof.compare.matching import key
from dlprof.compare.times import Settings, Time
from dlprof.errors import UsageError
from dlprof.judge.slower import SAME, UNSURE, WIDE
from dlprof.report import comparison_json
from dlprof.report.comparison_answers import answers_of
from dlprof.report.comparison_document import comparison_document
from dlprof.runner.floors import Floor

COPY = {"ownership": {"verdict": "copy", "evidence": {}}, "case": {"shape": (1024, 1024)}}
ENVIRONMENT = {"cpu": "A", "machine": "x86_64", "cores": 2, "packages": {}, "gpus": []}
BUSY = {"environment": {"cores": 2}, "foreign_cores": 1.3}


def times_of(comparison):
    return {case.case.import_: time for case, time in comparison.times}


def beside_others(base, head, **changes):
    """The time of one case with these process medians, among seven that are equal."""
    others = (suite(names="abcdefg"), suite(names="abcdefg", seed=50))
    sides = [
        [*side, timed("h", ns, **changes)] for side, ns in zip(others, (base, head), strict=True)
    ]
    return times_of(compared(*sides))["h"]


def headers(base, head):
    return {"base_header": base, "head_header": head}


@pytest.mark.parametrize(
    ("ratios", "word"), [({}, "SAME"), ({"c": 1.2}, "SLOWER"), ({"c": 0.8}, "FASTER")]
)
def test_a_case_that_changed_is_found_and_the_others_are_the_same(ratios, word):
    found = compared(suite(), suite(ratios, seed=50))
    assert only_words(found) == {**dict.fromkeys("abdefgh", "SAME"), "c": word}
    assert case_words(found) == only_words(found)


def test_the_ratio_is_of_head_over_base_with_its_interval():
    time = beside_others(medians(), medians(seed=1, around_ns=1200.0))
    assert time.ratio == pytest.approx(1.2, abs=0.02)
    low, high = time.interval
    assert time.corrected[0] <= low < 1.2 < high <= time.corrected[1]
    assert time.processes == (10, 10)


@pytest.mark.parametrize(
    ("base", "head", "word"),
    [
        (medians(3), medians(3, 1200.0, seed=1), "UNSURE"),
        (medians(3), medians(3, 4000.0, seed=1), "SLOWER"),
        ([1000.0, 1001.0, 1000.5], [1700.0, 1701.0, 1700.5], "UNSURE"),
        ([1000.0], [9000.0], "UNSURE"),
    ],
    ids=["a little slower", "far slower", "another state", "one process"],
)
def test_few_processes_show_only_a_large_slowdown(base, head, word):
    assert beside_others(base, head).word == word


def test_few_processes_of_a_large_copy_say_nothing_and_many_do():
    assert beside_others(medians(4), medians(4, 9000.0), **COPY).word == "UNSURE"
    assert beside_others(medians(), medians(seed=1, around_ns=2000.0), **COPY).word == "SLOWER"


def test_modes_that_both_sides_show_are_compared_like_with_like():
    fast, slow = medians(10), medians(4, around_ns=4000.0, seed=3)
    faults = [0.0] * 10 + [300.0] * 4
    time = beside_others([*fast, *slow], [*(1.5 * ns for ns in fast), *slow], faults=faults, **COPY)
    assert time.word == "SLOWER"
    assert time.ratio == pytest.approx(1.5, abs=0.02)


def test_one_mode_that_is_the_same_does_not_clear_the_case():
    values, faults = [*medians(8), *medians(4, around_ns=4000.0)], [0.0] * 8 + [300.0] * 4
    head = [*medians(8, seed=1), *medians(4, around_ns=4000.0, seed=1)]
    assert beside_others(values, head, faults=faults, **COPY).word == "UNSURE"


def test_sides_in_different_modes_are_not_compared():
    base = timed(ns=medians(10), faults=[0.0] * 10, **COPY)
    head = timed(ns=medians(10, around_ns=4000.0), faults=[300.0] * 10, **COPY)
    (time,) = times_of(compared([base], [head])).values()
    assert time.word == "UNSURE"
    assert all(fact in time.reason for fact in ("0 page faults", "300"))


def test_a_shift_of_all_cases_of_two_sessions_is_not_blamed_on_them():
    found = compared(suite(), suite(dict.fromkeys("abcdefgh", 1.15), seed=50))
    assert set(only_words(found).values()) == {"UNSURE"}
    assert found.common == pytest.approx(1.15, abs=0.02)
    ratios = {**dict.fromkeys("abcdefgh", 1.1), "c": 1.4}
    assert only_words(compared(suite(), suite(ratios, seed=50)))["c"] == "SLOWER"


def test_a_slower_machine_cannot_be_told_from_a_single_slower_case():
    found = compared(suite(names="a"), suite({"a": 1.2}, seed=50, names="a"))
    assert only_words(found) == {"a": "UNSURE"}


def test_two_sessions_have_a_wider_floor_than_was_asked_for():
    time = beside_others(medians(20, spread=0.002), medians(20, 1045.0, spread=0.002, seed=1))
    assert (time.word, time.floor.relative, time.floor.raised_from) == ("SAME", 0.1, 0.05)


def test_what_surely_is_slower_than_asked_for_is_no_pass_by_a_wider_floor():
    time = beside_others(medians(20, spread=0.002), medians(20, 1065.0, spread=0.002, seed=1))
    assert time.word == "UNSURE"


def test_sessions_of_two_days_are_not_called_the_same_without_a_calibration():
    later = {"created": "2026-01-03T00:00:01+00:00"}
    found = compared(suite(), suite(seed=50), head_header=later)
    case = found.cases[0]
    assert case.word == UNSURE
    assert "2 days apart" in case.reason
    assert "--noise" in case.reason
    assert any("2 days apart" in answer.note for answer in answers_of(found))
    drifts = {(key(case.case), "ready"): math.log(1.2)}
    again = compared(suite(), suite(seed=50), head_header=later, drifts=drifts)
    assert [one.word for one in again.cases] == [SAME] + 7 * [UNSURE]
    assert again.cases[0].times[0].floor.relative == pytest.approx(0.2)


def test_sessions_from_before_and_after_a_restart_are_not_called_the_same():
    restarted = {"environment": {"boot_id": "another"}}
    found = compared(suite(), suite(seed=50), head_header=restarted)
    assert set(case_words(found).values()) == {UNSURE}
    assert "restart" in found.cases[0].reason


def test_what_a_calibration_finds_too_noisy_is_not_the_same_nor_slower():
    (name,) = {key(one.case) for one in suite(names="a")}
    drifts = {(name, "ready"): math.log(1.5)}
    for ratio in (1.0, 1.4):
        sides = suite(names="a"), suite({"a": ratio}, names="a", seed=50)
        assert set(case_words(compared(*sides, drifts=drifts)).values()) == {UNSURE}


def test_what_two_sessions_leave_open_has_a_bound_that_holds_their_drift():
    spread = [medians(10, spread=0.15, seed=seed) for seed in (1, 2)]
    (view,) = compared(*([timed(ns=ns)] for ns in spread)).cases
    assert view.word == WIDE
    assert view.times[0].bound > 1.07 * view.times[0].ratio
    (copy,) = compared(*([timed(ns=ns, **COPY)] for ns in spread)).cases
    assert (copy.word, copy.times[0].bound) == (UNSURE, None)  # it may be in another state


def test_in_turns_no_shift_is_excused_and_the_floor_is_the_one_asked_for():
    found = compared(suite(), suite(dict.fromkeys("abcdefgh", 1.2), seed=50), in_turns=True)
    assert set(only_words(found).values()) == {"SLOWER"}
    assert {time.floor for time in times_of(found).values()} == {Floor()}


def test_in_turns_what_is_likely_slower_is_wide_and_does_not_pass():
    sides = suite(count=8), suite({"c": 1.06}, count=8, seed=50)
    found = compared(*sides, in_turns=True)
    (_, time) = next(one for one in found.times if one[0].case.import_ == "c")
    assert (time.word, time.is_likely_slower) == (WIDE, True)
    assert time.bound > 1.06
    assert exit_code(found) == 3
    (likely,) = (answer for answer in answers_of(found) if answer.label == "likely slower")
    assert likely.code == "numpy.c(x)"


def test_a_short_time_is_likely_slower_only_from_half_of_its_whole_floor_on():
    floor, interval = Floor("ready", 0.05, 5.0), (1.04, 1.2)
    times = [
        Time("ready", WIDE, floor, base_ns=base_ns, interval=interval) for base_ns in (50.0, 5000.0)
    ]
    assert [time.is_likely_slower for time in times] == [False, True]


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


def test_in_turns_a_mode_that_only_head_runs_in_is_the_codes():
    base = timed(ns=medians(16), faults=[0.0] * 16)
    head = timed(ns=medians(16, around_ns=2000.0), faults=[300.0] * 16)
    assert only_words(compared([base], [head], in_turns=True)) == {"a": "SLOWER"}


def test_a_case_can_have_a_floor_of_its_own():
    floors = {key(suite()[2].case): (Floor("ready", 0.5),)}
    found = compared(suite(), suite({"c": 1.2}, seed=50), own_floors=floors)
    assert only_words(found)["c"] == "SAME"


def test_several_measures_are_judged_side_by_side():
    found = compared(suite(), suite({"c": 1.2}, seed=50), "ready:5%", "host:5%")
    times = next(case.times for case in found.cases if case.case.import_ == "c")
    assert [(one.measure, one.word) for one in times] == [("ready", "SLOWER"), ("host", "SLOWER")]


@pytest.mark.parametrize("name", ["BASE", "HEAD"])
def test_a_time_that_is_not_to_be_trusted_is_invalid(name):
    results = {"BASE": timed(ns=medians()), "HEAD": timed(ns=medians(seed=1))}
    results[name] = timed(ns=medians(), status="invalid", reason="throttled")
    found = compared([results["BASE"]], [results["HEAD"]])
    assert times_of(found)["a"].reason == f"{name}: throttled"


@pytest.mark.parametrize(
    ("changes", "word"),
    [({"loops": 1}, "INVALID"), ({"loops": 1000, **COPY}, "INVALID"), ({"loops": 1000}, "SAME")],
)
def test_under_a_foreign_load_only_views_of_many_calls_are_compared(changes, word):
    found = compared(suite(**changes), suite(seed=50, **changes), head_header=BUSY)
    assert set(only_words(found).values()) == {word}


def test_in_turns_both_sides_meet_the_same_load():
    found = compared(suite(), suite(seed=50), **headers(BUSY, BUSY), in_turns=True)
    assert set(only_words(found).values()) == {"SAME"}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"cpu": "B"}, "different machines"),
        ({"gpus": [{"name": "H200"}]}, "different machines"),
        ({"machine_id": None, "boot_id": None}, "not known"),
        ({"python": "3.13.1"}, "--any-python"),
    ],
)
def test_times_of_other_machines_and_pythons_are_not_compared(change, why):
    base = {"environment": {**ENVIRONMENT, "python": "3.11.7"}}
    head = {"environment": {**base["environment"], **change}}
    found = compared(suite(), suite({"c": 9.0}, seed=50), **headers(base, head))
    assert set(only_words(found).values()) == {"INVALID"}
    assert why in found.incomparable


@pytest.mark.parametrize("meant", [{"across_pythons": True}, {"in_turns": True}])
def test_two_pythons_are_compared_if_that_is_what_is_meant(meant):
    sides = [{"environment": {**ENVIRONMENT, "python": text}} for text in ("3.11.7", "3.13.1")]
    found = compared(suite(), suite(seed=50), **headers(*sides), **meant)
    assert set(only_words(found).values()) == {"SAME"}


def test_one_measurement_is_not_compared_with_itself():
    base, _ = pair(suite(), suite())
    with pytest.raises(UsageError, match="same measurement"):
        compare(base, base, Settings())


@given(
    st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=8),
    st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=8),
    st.sampled_from(["ready:5%", "ready:0%,0.000000000001ns", "ready:999999999999%"]),
    st.booleans(),
)
@settings(max_examples=50)
def test_any_times_can_be_compared_and_written(base, head, fail_on, in_turns):
    found = compared([timed(ns=base)], [timed(ns=head)], fail_on, in_turns=in_turns)
    assert json.loads(comparison_json.render(found, exit_code(found)))
    assert comparison_document(found).answers


@pytest.mark.parametrize("side", [0, 1], ids=["BASE", "HEAD"])
def test_a_faulty_probe_is_no_crash_of_a_comparison(side):
    reason = "the probe is faulty: odd's create raises KeyError: 'int4'"
    sides = [suite(), suite(seed=50)]
    sides[side][2] = timed("c", status="crashed", reason=reason)
    (case,) = (one for one in compared(*sides).cases if one.case.import_ == "c")
    assert case.word == ("NEW", "INVALID")[side]
    assert "crash" not in f"{case.reason} {case.statuses}"
    assert reason in case.reasons
