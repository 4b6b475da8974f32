"""Rules judge each environment apart, and a scenario may have thresholds of its own."""

from __future__ import annotations

import pytest
from builders import make_header, make_result

from dlprof.analysis import thresholds
from dlprof.rules import findings
from dlprof.rules.evaluate import find, own_thresholds

pytestmark = pytest.mark.unit

DEVICE = {"verdict": "copy", "evidence": {"result_device": "cpu"}}


def slow_and_fast(**changes):
    """Two copies of which one takes twenty times as long."""
    slow = make_result("slow(x)", 2e6, (1.9e6, 2.1e6), ownership=DEVICE, **changes)
    fast = make_result("fast(x)", 1e5, (0.9e5, 1.1e5), ownership=DEVICE, **changes)
    return [slow, fast]


def test_a_faster_path_of_the_same_environment_is_advised():
    (found,) = findings(slow_and_fast(environment="old"))
    assert (found.rule, found.results) == ("DLP012", (0,))
    assert found.summary.startswith("in old: slow(x)")


def test_a_faster_path_of_another_environment_is_not():
    slow, fast = slow_and_fast()
    apart = [
        slow.model_copy(update={"environment": "old"}),
        fast.model_copy(update={"environment": "new"}),
    ]
    assert findings(apart) == []


def test_a_finding_points_to_the_results_of_the_whole_session():
    results = [*slow_and_fast(environment="old"), *slow_and_fast(environment="new")]
    assert sorted(found.results for found in findings(results)) == [(0,), (2,)]


def test_without_environments_a_finding_says_nothing_of_them():
    (found,) = findings(slow_and_fast())
    assert found.summary.startswith("slow(x)")


def test_a_scenario_may_decide_on_other_numbers():
    assert findings(slow_and_fast(), {"slow_ratio": 50.0}) == []


def test_the_numbers_are_as_before_afterwards():
    before = thresholds.named()
    findings(slow_and_fast(), {"slow_ratio": 50.0})
    assert thresholds.named() == before


def test_the_numbers_are_as_before_also_after_an_error():
    before = thresholds.named()
    with pytest.raises(RuntimeError), thresholds.replaced({"slow_ratio": 50.0}):
        raise RuntimeError
    assert thresholds.named() == before


def test_a_session_is_judged_by_the_numbers_of_its_scenario():
    header = make_header(request={"scenario": {"thresholds": {"slow_ratio": 50.0}}})
    assert find(slow_and_fast(), own_thresholds(header)) == []


@pytest.mark.parametrize(
    "scenario", [None, 3, {}, {"thresholds": None}, {"thresholds": {"none": 1, "slow_ratio": "x"}}]
)
def test_numbers_that_nobody_knows_are_left_out(scenario):
    assert own_thresholds(make_header(request={"scenario": scenario})) == {}
