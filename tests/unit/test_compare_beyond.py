"""What is slower than was asked for and within a floor of its own: never hidden, and no pass by noise."""

from __future__ import annotations

import json

import pytest
from comparison_builders import compared, only_words, suite

from dlprof.compare.match import key
from dlprof.plan.floors import Floor
from dlprof.reports import comparison as terminal
from dlprof.reports import comparison_json
from dlprof.reports.ci import junit, of_comparison
from dlprof.reports.comparison_text import answers

pytestmark = pytest.mark.unit

BY_NOISE = Floor("ready", 2.0, 5.0, raised_from=0.05)
BY_HAND = Floor("ready", 2.0, 5.0)


def found(ratio, floor):
    own = {key(suite()[2].case): (floor,)}
    return compared(suite(), suite({"c": ratio}, seed=50), own_floors=own, in_turns=True)


def text(ratio, floor):
    return " ".join(terminal.render(*found(ratio, floor)).split())


def test_a_noise_file_makes_no_pass_of_what_is_slower_than_asked_for():
    comparison, result = found(1.59, BY_NOISE)
    assert only_words(comparison)["c"] == "UNSURE"
    assert (result.code(), result.code(unsure=0)) == (3, 0)
    assert "slower than the 5 % asked for" in text(1.59, BY_NOISE)


def test_what_is_within_the_noise_of_this_machine_is_named_with_its_ratio_and_floor():
    assert "UNSURE *" in text(1.59, BY_NOISE)
    assert "Slower than asked for, but within the noise of this machine: numpy.c(x) takes 1.5" in (
        text(1.59, BY_NOISE)
    )


def test_more_time_is_not_promised_to_tell_what_the_machine_cannot():
    assert not any("More time" in line for line in answers(*found(1.59, BY_NOISE)))


@pytest.mark.parametrize("ratio", [1.0, 0.7])
def test_what_is_no_slower_than_asked_for_passes_by_a_raised_floor(ratio):
    comparison, result = found(ratio, BY_NOISE)
    assert only_words(comparison)["c"] in ("SAME", "FASTER")
    assert result.code() == 0


def test_a_floor_that_a_person_wrote_stands_and_is_visible():
    comparison, result = found(1.59, BY_HAND)
    assert only_words(comparison)["c"] == "SAME"
    assert result.code() == 0
    assert "SAME *" in text(1.59, BY_HAND)
    assert "HEAD is not slower than its floors allow: " in text(1.59, BY_HAND)
    assert "Slower than the floor of all cases, but within its own: numpy.c(x) takes 1." in text(
        1.59, BY_HAND
    )


def test_the_answer_names_the_floors_that_were_used():
    said = answers(*found(1.0, BY_HAND))[0]
    assert "the times of 7 cases are within the floor of ready 5 % and 5.00 ns" in said
    assert "within a floor of its own: ready 200 % and 5.00 ns for numpy.c(x)" in said


def test_reports_for_machines_name_the_floors_too():
    comparison, result = found(1.59, BY_HAND)
    content = json.loads(comparison_json.render(comparison, result, 0))
    assert [(one["code"], one["relative"]) for one in content["own_floors"]] == [
        ("numpy.c(x)", 2.0)
    ]
    checks = of_comparison.checks(comparison, result, of_comparison.doubts(3))
    assert "floor 200 % and 5.00 ns" in junit.render("t", checks)
