"""Round trips: both directions by their cheapest safe path, and where the time goes."""

from __future__ import annotations

import pytest
from builders import make_measure, make_row

from dlprof.reports.round_trip import answer, one_way, text, trips
from dlprof.reports.trips_in_a_row import (
    CANNOT_TELL,
    FIRST_WAITS,
    LATER_WAITS,
    NONE_WAITS,
    waits,
)
from dlprof.session import RoundTrip

pytestmark = pytest.mark.unit


def way(pair, code, ns, **changes):
    return make_row(code, ns, (0.99 * ns, 1.01 * ns), frameworks=pair, pair=pair, **changes)


THERE = way("tf → cupy", "to(x)", 13e6, owner="copy", gb_per_s=1.5, size_bytes=2**20)
BACK = way("cupy → tf", "fro(x)", 1e6)


def test_the_slower_direction_is_called_there():
    (trip,) = trips([BACK, THERE])
    assert (trip.there.code, trip.back.code, trip.ratio) == ("to(x)", "fro(x)", 13.0)


def test_each_direction_is_its_cheapest_safe_path():
    rows = [
        THERE,
        BACK,
        way("tf → cupy", "best(x)", 2e6),
        way("tf → cupy", "bad(x)", 1.0, suspect=True),
    ]
    (trip,) = trips(rows)
    assert trip.there.code == "best(x)"


def test_other_arrays_and_environments_are_other_trips():
    rows = [
        THERE,
        way("cupy → tf", "fro(x)", 1e6, shape="8"),
        way("cupy → tf", "f", 1.0, environment="new"),
    ]
    assert trips(rows) == []


def test_a_pair_in_one_direction_is_no_trip():
    lost = way("cupy → tf", "fro(x)", 1e6, changed=("values",))
    assert trips([THERE, lost]) == []
    assert one_way([THERE, lost]) == ["cupy → tf"]
    assert answer([THERE, lost]) == "No pair could be measured safely in both directions."


def test_a_framework_with_itself_is_no_trip():
    assert trips([way("tf → tf", "a(x)", 1.0)]) == []


def test_the_answer_says_which_and_how_many_times_and_why():
    assert answer([THERE, BACK]) == (
        "Of 1 round trips, 1 cost more in one direction. The most lopsided is tf → cupy:"
        " 13 ms there and 1.0 ms back, 13 times; there it copies at 1.5 GB/s, back it is a view."
    )


def test_directions_that_cannot_be_told_apart_are_not_called_different():
    rows = [THERE, way("cupy → tf", "fro(x)", 12.9e6)]
    assert answer(rows) == (
        "In none of 1 round trips can the directions be told apart with so few processes, or they"
        " cost the same. Furthest apart is tf → cupy: 13 ms there and 13 ms back."
    )
    assert "not told apart" in text(trips(rows)[0])


def test_a_wait_is_told_as_the_time_of_the_work():
    loaded = way("tf → cupy", "to(x)", 13e6, loaded="waits 130 ms")
    assert "that time is the work's, not the conversion's" in answer([loaded, BACK])
    assert "behind queued work it waits 130 ms" in text(trips([loaded, BACK])[0])


def test_many_round_trips_cost_the_sum_of_both_ways():
    assert "100 round trips take about 1.4 s" in text(trips([THERE, BACK])[0])


def made(**changes):
    fields = {
        "there": 0,
        "back": 1,
        "iterations": 100,
        "idle": make_measure(15e6, (14.9e6, 15.1e6)),
        "parts": {
            "there_ns": 13e6,
            "back_ns": 2e6,
            "wait_ns": 0.0,
            "first_ns": 15e6,
            "last_ns": 15e6,
        },
        "not_loaded": "cupy finishes its work",
    }
    return RoundTrip.model_validate(fields | changes)


def shown(**changes):
    (trip,) = trips([THERE, BACK])
    return " ".join(text(trip, made(**changes)).split())


def test_what_was_not_made_in_a_row_is_called_a_sum():
    (trip,) = trips([THERE, BACK])
    assert "100 round trips take about 1.4 s (not measured)" in text(trip)


def test_trips_in_a_row_say_where_the_time_goes():
    assert (
        "100 trips in a row take 1.5 s: 15.00 ±0.10 ms each in another run, timed by halves: 13 ms"
        " there and 2.0 ms back on average; the wait at the end 0 ns nothing" in shown()
    )
    assert "nothing was queued: cupy finishes its work" in shown()
    assert "the last of them" not in shown()


def test_trips_that_grow_dearer_are_told():
    parts = made().parts | {"last_ns": 40e6}
    assert "the last of them cost 40 ms each, the first 15 ms" in shown(parts=parts)


def test_trips_that_begin_anew_say_why():
    assert "what comes back cannot go again: BufferError: read-only" in shown(
        restarted="BufferError: read-only"
    )


LOADED = {"queued_ns": 50e6, "there_ns": 49e6, "back_ns": 1e6, "others_ns": 99e6, "wait_ns": 0.0}


def test_behind_queued_work_the_first_trip_shows_who_waits():
    told = shown(loaded=LOADED, not_loaded=None)
    assert "behind some 50 ms of work of tf: the first trip takes 50 ms, the other 99 99 ms" in told
    assert "the first trip waits for the work" in told
    free = shown(loaded={**LOADED, "there_ns": 1e6, "wait_ns": 49e6}, loaded_from="back")
    assert "work of cupy" in free
    assert "no call waits for the work" in free


def test_halves_that_do_not_add_up_to_a_trip_are_called_so():
    parts = made().parts | {"there_ns": 90e6}
    assert "does not add up to a trip, so the runs differ" in shown(parts=parts)
    assert "does not add up" not in shown()


@pytest.mark.parametrize(
    ("there_ns", "others_ns", "wait_ns", "verdict"),
    [
        (120e6, 8e6, 20e3, FIRST_WAITS),  # less than half of a queue that was long once
        (76e3, 8e6, 200e6, NONE_WAITS),
        (76e3, 8e6, 20e3, CANNOT_TELL),  # the queue was over before
        (76e3, 280e6, 20e3, LATER_WAITS),
        (1.9e6, 45e6, 8e3, CANNOT_TELL),
        (80e6, 8e6, 150e6, CANNOT_TELL),
    ],
)
def test_who_waits_is_judged_against_an_idle_trip(there_ns, others_ns, wait_ns, verdict):
    found = {"queued_ns": 300e6, "there_ns": there_ns, "back_ns": 1e3}
    assert waits({**found, "others_ns": others_ns, "wait_ns": wait_ns}, 76e3, 100) == verdict


def test_trips_that_were_not_measured_say_why():
    assert "not measured: killed" in shown(idle=None, reason="killed")


def test_the_answer_tells_a_trip_in_a_row_that_costs_far_more_than_its_halves():
    slow = made(idle=make_measure(140e6, (139e6, 141e6)))
    told = answer([THERE, BACK], [slow])
    assert "the dearest trip is tf → cupy and back, 140 ms each: 100 take 14 s" in told
    assert "That is 10 times what its halves take when one array is converted again" in told
    assert "in a row each trip converts the array that the one before made." in told
    assert "That is" not in answer([THERE, BACK], [made()])


def test_trips_that_begin_anew_are_not_said_to_convert_new_arrays():
    slow = made(idle=make_measure(140e6, (139e6, 141e6)), restarted="BufferError: read-only")
    told = answer([THERE, BACK], [slow])
    assert "in a row only the way back gets a new array each time." in told


def test_a_view_of_aligned_memory_only_is_not_said_to_move_no_bytes():
    aligned = "a view of a source at a multiple of 64 bytes, a copy one element further"
    there = way("tf → cupy", "to(x)", 13e6, owner="view", depends=aligned)
    slow = made(idle=make_measure(140e6, (139e6, 141e6)))
    told = answer([there, BACK], [slow])
    assert f"both are views of this array, but to(x) gives {aligned}" in told
    assert "no bytes are moved" not in told
    assert "in a row it may be the other" in told


def test_trips_of_another_session_are_not_told():
    assert "In a row" not in answer([THERE, BACK], [made(there=7)])
