"""Steps of several processes become one answer, and go back for a run that is resumed."""

from __future__ import annotations

import pytest
from builders import make_answer, make_timing
from step_builders import step_case, step_result

from dlprof.probes.base import Protocol
from dlprof.rules import findings
from dlprof.session.merge import merge, unmerge
from dlprof.session.model import Result
from dlprof.session.stats import mean_interval

pytestmark = pytest.mark.unit


def parts(step=90.0, fresh=100.0, changing=400.0, word="overwritten"):
    return {
        "versus": {
            "times": {
                "step": make_timing(step),
                "fresh": make_timing(fresh),
                "reading": make_timing(2 * step),
                "fresh_reading": make_timing(2 * fresh),
            }
        },
        "shape_change": {
            "shape": [2, 3],
            "times": {
                "steady": make_timing(100.0),
                "other": make_timing(60.0),
                "changing": make_timing(changing),
            },
        },
        "reuse": {"verdict": word, "evidence": {"after_calls": 1}},
        "allocations": {"per_call": 2.0, "kept": 8, "buffers": 1},
    }


def merged(*found):
    answers = [(round_, make_answer(parts=one)) for round_, one in enumerate(found)]
    return merge(step_case(), answers, len(found))


def test_each_process_compares_its_own_loops():
    # One process of a busy machine is ten times as slow in both loops.
    step = merged(parts(), parts(900.0, 1000.0), parts(91.0, 101.0)).step
    assert step.versus.saved.median == pytest.approx(0.1, abs=0.002)
    assert step.versus.saved.ci95[0] > 0.09


def test_a_change_of_shape_costs_half_of_what_two_changes_add():
    found = merged(parts(), parts(), parts()).step.shape_change
    assert found.cost_ns == pytest.approx(120.0, rel=0.01)


def test_samples_that_others_disturbed_change_no_share():
    disturbed = parts()
    for timing in disturbed["versus"]["times"].values():
        timing["samples_ns"] = [*timing["samples_ns"][:2], *(9 * ns for ns in range(300, 303))]
    calm = merged(parts(), parts()).step.versus.saved.median
    assert merged(parts(), disturbed).step.versus.saved.median == pytest.approx(calm, abs=0.01)


def test_nothing_is_saved_of_a_step_that_takes_no_time():
    nothing = parts()
    nothing["versus"]["times"]["fresh"]["samples_ns"] = [0.0] * 5
    assert merged(nothing).step.versus.saved is None


def test_one_process_has_no_interval():
    step = merged(parts()).step
    assert (step.versus.saved.ci95, step.shape_change.cost_ci95_ns) == (None, None)


def test_processes_that_disagree_on_an_output_are_told():
    step = merged(parts(), parts(word="kept")).step
    assert step.reuse.verdict == "varies"


def test_a_conversion_is_no_step():
    assert merge(step_case(protocol="dlpack"), [(0, make_answer())], 1).step is None


def test_a_result_gives_the_answers_it_was_made_of():
    whole = merged(parts(), parts(95.0), parts(85.0))
    answers = unmerge(whole, 3)
    assert merge(step_case(), answers, 3).step == whole.step


def test_half_of_the_processes_can_be_merged_with_the_rest():
    rounds = [parts(), parts(95.0), parts(85.0)]
    whole = merged(*rounds)
    answers = unmerge(merged(*rounds[:2]), 3)
    answers.append((2, make_answer(parts=rounds[2])))
    assert merge(step_case(), answers, 3).step == whole.step


def test_the_session_holds_a_step_as_it_was():
    result = step_result()
    assert Result.model_validate_json(result.model_dump_json(by_alias=True)) == result


def test_no_rule_speaks_of_steps():
    crashed = step_result(status="crashed", reason="killed by SIGSEGV during host_time")
    assert crashed.case.protocol == Protocol.STEP
    assert findings([step_result(), crashed]) == []


@pytest.mark.parametrize(
    ("values", "low", "high"), [([1.0, 1.0, 1.0], 1.0, 1.0), ([-10.0, 0.0, 10.0], -24.8, 24.8)]
)
def test_differences_have_an_interval_that_may_reach_below_nothing(values, low, high):
    assert mean_interval(values) == pytest.approx((low, high), abs=0.1)
    assert mean_interval(values[:1]) is None
