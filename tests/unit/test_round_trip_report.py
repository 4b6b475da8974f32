"""Round trips: both directions by their cheapest safe path, and where the time goes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import make_measure, make_row

from dlprof.reports.round_trip import answer, candidates, one_way, text, trips
from dlprof.reports.trip_paths import unsafe_text
from dlprof.reports.trips_in_a_row import (
    CANNOT_TELL,
    FIRST_WAITS,
    LATER_WAITS,
    NONE_WAITS,
    of,
    waits,
)
from dlprof.session.model import RoundTrip

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


def test_a_direction_whose_time_may_be_that_of_other_programs_is_not_told_apart():
    late = replace(THERE, disturbed=True)
    (trip,) = trips([late, BACK])
    assert "not told apart" in text(trip)
    assert "there 13 ms (disturbed): to(x)" in text(trip)
    (trip,) = trips([THERE, replace(BACK, disturbed=True)])
    assert trip.differs


def test_a_pair_in_one_direction_is_no_trip():
    lost = way("cupy → tf", "fro(x)", 1e6, changed=("values",))
    assert trips([THERE, lost]) == []
    assert one_way([THERE, lost]) == ["cupy → tf"]
    assert answer([THERE, lost]) == (
        "No pair has a path in both directions that was measured and seen to be right."
    )


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


def test_a_race_that_waits_besides_is_told_as_both():
    racing = way("tf → cupy", "to(x)", 13e6, loaded="unordered, waits all 45 ms")
    told = text(trips([racing, BACK])[0])
    assert "; not ordered behind queued work, although it waits all 45 ms" in told


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
            "release_ns": 0.0,
            "there_call_ns": 13e6,
            "back_call_ns": 2e6,
            "first_ns": 15e6,
            "last_ns": 15e6,
        },
        "not_loaded": "cupy finishes its work",
    }
    return RoundTrip.model_validate(fields | changes)


def shown(rows=(THERE, BACK), **changes):
    (trip,) = trips(rows)
    return " ".join(text(trip, of(rows, [made(**changes)])).split())


def test_what_was_not_made_in_a_row_is_called_a_sum():
    (trip,) = trips([THERE, BACK])
    assert "100 round trips take about 1.4 s (not measured)" in text(trip)


def test_trips_in_a_row_say_where_the_time_goes():
    assert (
        "100 trips in a row take 1.5 s: 15.00 ±0.10 ms each whether these trips copy was not looked"
        " at in other runs, which wait for the result of each half: 13 ms there and 2.0 ms back on"
        " average; 0 ns to release the arrays of the trip before nothing" in shown()
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
    assert "does not add up to a trip, and why is not known" in shown(parts=parts)
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


def test_a_call_that_returns_early_is_charged_for_its_own_work():
    parts = made().parts | {"there_ns": 14e6, "there_call_ns": 150e3, "back_ns": 600.0}
    assert "14 ms there (the call returns after 150 us) and 600 ns back" in shown(parts=parts)


def test_old_sessions_whose_halves_were_not_waited_for_do_not_tell_them():
    parts = {"there_ns": 150e3, "back_ns": 4.6e6, "wait_ns": 0.0}
    told = shown(parts=parts)
    assert "each half" not in told
    assert "4.6 ms" not in told


VIEW = {"views": 5, "view_alignments": [64]}
COPY = {"copies": 5, "copy_alignments": [16]}


def process(there, back=VIEW, halves=None, round_=0):
    look = {"there": there, "back": back}
    return {"round": round_, "in_a_row": look, "by_halves": {**look, "there": halves or there}}


def slow(*processes, **changes):
    return made(idle=make_measure(140e6, (139e6, 141e6)), processes=processes, **changes)


ALONE_A_VIEW = way("tf → cupy", "to(x)", 13e6, alignments=(256,))


def test_a_copy_in_the_trips_of_what_was_a_view_alone_is_told_with_both_alignments():
    told = (
        "there a copy of a source at a multiple of 16 bytes, alone a view of a source at a multiple"
        " of 256 bytes"
    )
    rows = (ALONE_A_VIEW, BACK)
    assert f"in these trips: {told}; back a view, as alone" in shown(
        rows, processes=[process(COPY)]
    )
    said = answer(rows, [slow(process(COPY))])
    assert "the dearest trip is tf → cupy and back, 140 ms each: 100 take 14 s" in said
    assert (
        "That is 10 times what its halves take when one array is converted again and again: in the"
        f" trips {told}; timed by halves, that is 13 ms of 15 ms." in said
    )


def test_a_view_in_the_trips_of_what_was_a_copy_alone_is_told():
    row = way("tf → cupy", "to(x)", 13e6, owner="copy", alignments=(16,))
    fast = made(idle=make_measure(93e3, (92e3, 94e3)), processes=[process(VIEW)])
    said = answer([row, BACK], [fast])
    assert "Its halves take 150 times as long when one array is converted again and again" in said
    assert "there a view of a source at a multiple of 64 bytes, alone a copy of a source" in said
    assert "again: in the trips there" in said


def test_a_difference_that_costs_little_is_told_all_the_same():
    said = answer([ALONE_A_VIEW, BACK], [made(processes=[process(COPY)])])
    assert "In the trips there a copy of a source at a multiple of 16 bytes, alone a view" in said
    assert "That is" not in said


def test_the_rest_of_a_trip_that_no_copy_takes_is_called_unknown():
    parts = made().parts | {"there_ns": 1e6, "back_ns": 100e6}
    said = answer([ALONE_A_VIEW, BACK], [slow(process(COPY), parts=parts)])
    assert "that is 1.0 ms of 100 ms, and why the rest takes longer is not known." in said


def test_a_trip_that_is_as_alone_and_costs_far_more_is_not_explained():
    said = answer([ALONE_A_VIEW, BACK], [slow(process(VIEW))])
    assert said.endswith(
        "again and again: why is not known. In the trips there a view, as alone; back a view, as"
        " alone."
    )


def test_a_trip_that_was_not_looked_at_is_not_explained():
    for processes in ((), (process({"unknown": 5}),)):
        said = answer([ALONE_A_VIEW, BACK], [slow(*processes)])
        assert said.endswith("why is not known, since whether the trips copy was not seen.")
    assert "there unknown: it could not be looked at" in shown(processes=[process({"unknown": 5})])


def test_trips_that_cost_what_their_halves_cost_are_not_compared():
    assert "That is" not in answer([ALONE_A_VIEW, BACK], [made(processes=[process(VIEW)])])


def test_new_memory_that_only_trips_touch_is_told():
    idle = make_measure(
        140e6,
        (139e6, 141e6),
        processes=[{"round": 0, "loops": 9, "samples_ns": [140e6], "page_faults_per_call": 4100.0}],
    )
    rows = [replace(row, page_faults=1.0) for row in (THERE, BACK)]
    said = answer(rows, [made(idle=idle, processes=[process(COPY)])])
    assert "; a trip touches new memory: 4,100 page faults, and 2 alone." in said


def test_processes_that_differ_are_told_with_their_times():
    idle = make_measure(
        2e6,
        (1e6, 3e6),
        processes=[
            {"round": number, "loops": 9, "samples_ns": [ns]}
            for number, ns in enumerate((660e3, 5.1e6, 5.4e6))
        ],
    )
    rounds = [process(look, round_=number) for number, look in enumerate((VIEW, COPY, COPY))]
    told = shown((ALONE_A_VIEW, BACK), idle=idle, processes=rounds)
    assert (
        "there a view of a source at a multiple of 64 bytes in 1 of 3 processes, a copy of a source"
        " at a multiple of 16 bytes in 2 of 3 processes, alone a view" in told
    )
    assert "660 us a trip where there is a view, 5.1-5.4 ms where it is a copy" in told


def test_trips_of_one_process_that_differ_are_counted():
    mixed = {**VIEW, **COPY, "views": 99, "copies": 1}
    told = shown(processes=[process(VIEW, halves=mixed)])
    assert (
        "in those runs: there a view of a source at a multiple of 64 bytes in 99 of 100 trips, else"
        " a copy of a source at a multiple of 16 bytes" in told
    )


def test_copies_of_a_pair_that_was_seen_torn_are_not_safe_in_the_trips_either():
    torn = way("tf → cupy", "other(x)", 14e6, faults=("DLP020",), suspect=True)
    told = shown((ALONE_A_VIEW, BACK, torn), processes=[process(COPY)])
    assert "there these copies are not safe: DLP020 of another copy of the pair" in told
    assert "not safe" not in shown((ALONE_A_VIEW, BACK, torn), processes=[process(VIEW)])


def test_a_view_of_aligned_memory_only_is_not_said_to_move_no_bytes():
    aligned = "a view of a source at a multiple of 64 bytes, a copy one element further"
    there = way("tf → cupy", "to(x)", 13e6, owner="view", depends=aligned)
    told = answer([there, BACK], [])
    assert f"both are views of this array, but to(x) gives {aligned}" in told
    assert "no bytes are moved" not in told


# Where no path is safe


TORN = way("tf → cupy", "torn(x)", 9e6, owner="copy", faults=("DLP020",), suspect=True)
DEARER = way("tf → cupy", "dear(x)", 20e6, owner="copy", faults=("DLP020?",), suspect=True)


def test_where_no_path_is_safe_the_cheapest_that_is_right_is_taken_and_called_unsafe():
    lost = way("tf → cupy", "lost(x)", 1.0, changed=("values",))
    rows = [lost, DEARER, TORN, BACK]
    (trip,) = trips(rows)
    assert trip.there.code == "torn(x)"
    assert "there 9.0 ms: torn(x), a copy; not safe: DLP020" in text(trip)
    assert "tf → cupy: 9.0 ms there by torn(x) (not safe: DLP020) and 1.0 ms back, 9.0" in answer(
        rows
    )
    assert "140 ms each (there by torn(x), not safe: DLP020): 100" in answer(
        rows, [slow(there=2, back=3)]
    )
    assert one_way(rows) == []


def test_a_safe_path_is_taken_before_a_cheaper_one_that_is_not():
    (paths,) = candidates([TORN, DEARER, THERE, BACK])
    assert [row.code for row in paths[0]] == ["to(x)", "torn(x)", "dear(x)"]


def test_what_is_unsafe_says_of_which_path_it_was_found():
    assert unsafe_text(DEARER) == "not safe: DLP020 of another copy of the pair"
    assert unsafe_text(way("a → b", "c(x)", 1.0, promise="copy")) == "not safe: DLP018"
    assert unsafe_text(THERE) == ""


@pytest.mark.parametrize("rule", ["DLP011", "DLP016"])
def test_a_path_whose_values_do_not_last_is_never_taken(rule):
    gone = way("tf → cupy", "gone(x)", 1.0, faults=(rule,), suspect=True)
    assert trips([gone, BACK]) == []


def test_a_path_that_the_array_of_the_trips_is_refused_by_is_told_with_the_one_taken():
    refusing = way("tf → cupy", "only(x)", 12e6)
    rows = (refusing, THERE, BACK)
    refused = [{"result": 0, "reason": "ValueError: not aligned"}]
    told = shown(rows, there=1, back=2, refused=refused)
    assert "only(x) does not work for the array of the trips: ValueError: not aligned" in told
    assert "so the trips go by to(x) (13 ms alone), and back by fro(x) (1.0 ms alone)" in told
    said = answer(rows, [made(there=1, back=2, refused=refused)])
    assert (
        "15 ms each (there by to(x), since the array of the trips is refused by only(x)): 100"
        in said
    )


@pytest.mark.parametrize("ends", [(-1, 1), (0, 9)])
def test_indices_that_a_session_does_not_have_are_no_trip(ends):
    assert of([THERE, BACK], [made(there=ends[0], back=ends[1])]) == []


def test_trips_of_another_session_are_not_told():
    assert "In a row" not in answer([THERE, BACK], [made(there=7)])
