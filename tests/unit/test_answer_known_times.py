"""Answers over times that are not known to be the path's own, disturbed or scattered."""

from __future__ import annotations

import pytest
from builders import make_measure, make_row, timed

from dlprof.reports.answer import answers

pytestmark = pytest.mark.unit

MICROSECOND = 1000.0


VIEW = timed("view(x)", MICROSECOND)


def test_a_time_that_other_programs_made_long_is_not_called_the_slowest():
    rows = [
        timed("view(x)", 500),
        timed("copy(x)", 5_000),
        timed("stalled(x)", 8e6, disturbed=True),
    ]
    (answer,) = answers(rows)
    assert "The slowest whose time is known, copy(x)," in answer
    assert "stalled" not in answer


def test_the_slowest_is_called_so_without_a_word_where_nothing_slower_was_left_out():
    rows = [timed("view(x)", 500), timed("copy(x)", 5_000), timed("f(x)", 4_000, disturbed=True)]
    assert "The slowest, copy(x)," in answers(rows)[0]


def test_the_slowest_is_called_right_where_a_slower_one_is_wrong():
    wrong = timed("wrong(x)", 9 * MICROSECOND, changed=("shape",))
    (answer,) = answers([wrong, VIEW, timed("copy(x)", 5_000)])
    assert "The slowest that is right, copy(x), takes 5.0 us" in answer


def test_where_no_time_but_the_best_is_known_no_slowest_is_named():
    assert "slowest" not in answers([VIEW, timed("stalled(x)", 8e6, disturbed=True)])[0]


def test_a_time_that_is_not_known_and_was_as_short_once_is_not_told_apart():
    ready = make_measure(8e6, None, min_ns=900.0)
    (answer,) = answers([VIEW, make_row("stalled(x)", ready=ready, scattered=True)])
    assert "Not told apart from it: stalled(x)." in answer


def test_of_a_time_that_is_not_known_no_ratio_is_told():
    (answer,) = answers([timed("f(x)", 500, disturbed=True), timed("copy(x)", 5_000)])
    assert "f(x), a view, 500 ±20 ns (disturbed)." in answer
    assert answer.endswith("The slowest, copy(x), takes 5.0 us.")


def test_a_copy_whose_time_is_that_of_other_programs_is_offered_last():
    rows = [
        timed("view(x)", 1_000),
        timed("a(x)", 50_000, owner="copy", promise="copy", disturbed=True),
        timed("b(x)", 90_000, owner="copy", promise="copy"),
    ]
    assert "If you need a copy: b(x)" in answers(rows)[0]


def test_of_copies_whose_times_are_all_those_of_other_programs_the_fastest_is_offered():
    copies = {"owner": "copy", "promise": "copy", "disturbed": True}
    rows = [
        timed("view(x)", 1_000),
        timed("fastest(x, copy=True)", 50_000, width=0.4, **copies),
        timed("f(x)", 60_000, width=0.4, **copies),
    ]
    offer = "If you need a copy: fastest(x, copy=True), 50 ±20 us (disturbed)."
    assert answers(rows)[0].endswith(offer)


def test_a_documented_copy_is_offered_before_one_whose_time_is_known():
    rows = [
        timed("view(x)", 1_000),
        timed("f(x)", 50_000, owner="copy"),
        timed("g(x)", 60_000, owner="copy", promise="copy", disturbed=True),
    ]
    assert "If you need a copy: g(x), 60 ±2 us (disturbed)." in answers(rows)[0]
