"""Loops of several processes become one answer, and go back for a run that is resumed."""

from __future__ import annotations

import pytest
from builders import make_measure, make_record

from dlprof.session import merge_placement
from dlprof.session.merge import merge, unmerge
from dlprof.session.model import Share

pytestmark = pytest.mark.unit

SURE = Share(median=0.5, ci95=(0.4, 0.6))


def timing(*samples_ns):
    return {"loops": 1, "samples_ns": list(samples_ns), "page_faults_per_call": 0.0}


def found(in_loop, hoisted):
    times = {"in-loop": timing(in_loop), "hoisted": timing(hoisted)}
    return {"use": "add(x, 1)", "times": times, "refused": {"implicit": "no"}}


def test_each_process_compares_its_own_two_loops():
    # One process of a busy machine is ten times as slow in both loops.
    rounds = [(0, found(100.0, 50.0)), (1, found(1000.0, 500.0)), (2, found(104.0, 52.0))]
    merged = merge_placement.merged(rounds, make_measure(50.0))
    assert merged.share.median == 0.5
    assert merged.share.ci95 == pytest.approx((0.5, 0.5))
    assert merged.in_loop.median_ns == 104.0


@pytest.mark.parametrize("nothing", [0.0, -1.0])
def test_a_loop_that_takes_no_time_has_no_share(nothing):
    merged = merge_placement.merged([(0, found(nothing, 50.0))], make_measure(50.0))
    assert (merged.share, merged.in_loop.median_ns) == (None, nothing)


def test_one_process_has_a_share_and_no_interval():
    merged = merge_placement.merged([(0, found(100.0, 50.0))], make_measure(50.0))
    assert (merged.share.ci95, merged.break_even_iterations) == (None, None)


def test_without_both_loops_there_is_no_share():
    one = {"use": "add(x, 1)", "times": {"hoisted": timing(5.0)}, "refused": {}}
    merged = merge_placement.merged([(0, one)], make_measure(50.0))
    assert (merged.share, merged.in_loop, merged.hoisted.median_ns) == (None, None, 5.0)


@pytest.mark.parametrize(
    ("convert", "in_loop", "hoisted", "share", "expected"),
    [
        (50.0, 100.0, 50.0, SURE, 2),
        (10.0, 100.0, 50.0, SURE, 2),
        (500.0, 100.0, 50.0, SURE, 11),
        (50.0, 100.0, 50.0, Share(median=0.5, ci95=(-0.1, 0.6)), None),
        (50.0, 100.0, 50.0, Share(median=0.5), None),
        (50.0, 100.0, 50.0, Share(median=0.5, ci95=(0.1, 0.8)), None),
        (50.0, 100.0, 50.0, None, None),
        (50.0, 50.0, 50.0, SURE, None),
    ],
)
def test_hoisting_pays_once_it_has_saved_its_conversion(convert, in_loop, hoisted, share, expected):
    measures = [make_measure(ns) for ns in (convert, in_loop, hoisted)]
    assert merge_placement.break_even(*measures, share) == expected


def answer(round_):
    parts = {"host_time": timing(50.0 + round_), "placement": found(100.0 + round_, 50.0)}
    return round_, {"status": "ok", "reason": None, "parts": parts, "failures": []}


def test_a_resumed_run_knows_the_loops_of_its_earlier_rounds():
    answers = [answer(round_) for round_ in range(3)]
    result = merge(make_record(), answers, 3)
    assert result.placement.refused == {"implicit": "no"}
    assert merge(make_record(), unmerge(result, 3), 3) == result
