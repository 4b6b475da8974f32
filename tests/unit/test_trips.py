"""Round trips over several processes: one answer, or why there is none."""

from __future__ import annotations

import contextlib

import pytest
from builders import make_case

from dlprof.plan.settings import Settings
from dlprof.runner import trips
from dlprof.runner.interpreter import Outcome
from dlprof.runner.standby import Interpreter
from dlprof.runner.trips import Attempt

pytestmark = pytest.mark.unit

LOOK = {"there": {"views": 5}, "back": {"copies": 5, "copy_alignments": [16]}}


def _merged(ends, answers, iterations=100, rounds=None):
    there, back = ends
    attempt = Attempt([there], [back], list(answers))
    settings = Settings(rounds=rounds or len(answers), round_trips=iterations)
    (trip,) = trips.merged([attempt], settings)
    return trip


def said(per_trip_ns, **changes):
    part = {
        "idle": {"loops": 100, "samples_ns": [per_trip_ns] * 5},
        "parts": {"there_ns": per_trip_ns / 2, "back_ns": per_trip_ns / 2},
        "in_a_row": LOOK,
        "by_halves": LOOK,
        "loaded": None,
        "loaded_from": "back",
        "not_loaded": "no queue",
        "restarted": None,
    }
    return Outcome("ok", None, parts={"round_trip": part | changes})


def test_the_time_is_the_median_of_the_processes():
    trip = _merged((3, 4), [(0, said(100.0)), (1, said(104.0)), (2, said(102.0))], 100)
    assert (trip.there, trip.back, trip.iterations) == (3, 4, 100)
    assert trip.idle.median_ns == 102.0
    assert len(trip.idle.processes) == 3
    assert trip.parts["there_ns"] == 51.0
    assert (trip.loaded, trip.not_loaded, trip.reason) == (None, "no queue", None)


def test_a_process_that_died_leaves_the_others():
    trip = _merged((0, 1), [(0, Outcome("crashed", "killed")), (1, said(100.0))], 100)
    assert trip.idle.median_ns == 100.0
    assert trip.reason == "1 of 2 processes: killed"


def test_a_trip_that_no_process_made_says_why():
    trip = _merged((0, 1), [(0, Outcome("unsupported", "BufferError: no"))], 100)
    assert (trip.idle, trip.reason) == (None, "BufferError: no")


def test_the_load_is_the_median_of_those_that_were_loaded():
    loaded = {"queued_ns": 50.0, "there_ns": 49.0}
    said_loaded = said(1.0, loaded=loaded, loaded_from="there")
    trip = _merged((0, 1), [(0, said(1.0)), (1, said_loaded)], 100)
    assert (trip.loaded, trip.loaded_from) == (loaded, "there")
    assert trip.not_loaded is None


def test_trips_that_began_at_the_other_end_are_not_mixed_in():
    there, back = ({"queued_ns": 50.0, "there_ns": ns} for ns in (49.0, 1.0))
    answers = [
        (0, said(1.0, loaded=back, loaded_from="back")),
        (1, said(1.0, loaded=there, loaded_from="there")),
        (2, said(1.0, loaded=there, loaded_from="there")),
    ]
    trip = _merged((0, 1), answers)
    assert (trip.loaded, trip.loaded_from) == (there, "there")


def test_what_each_process_saw_is_kept_with_its_round():
    trip = _merged((0, 1), [(0, said(1.0)), (2, said(1.0))], 100)
    assert [one.round for one in trip.processes] == [0, 2]
    assert trip.processes[1].in_a_row.back.copy_alignments == [16]
    assert trip.processes[1].by_halves.there.views == 5


def refusal(stage):
    return Outcome("unsupported", "ValueError: not aligned", stage=stage)


def test_a_path_that_does_not_work_gives_way_to_the_next_of_its_direction():
    attempt = Attempt([3, 4], [7, 8], [(0, said(1.0)), (1, refusal("there"))])
    assert attempt.take_next()
    assert (attempt.there, attempt.back, attempt.answers) == ([4], [7, 8], [])
    attempt.keep(0, refusal("back"))
    assert attempt.take_next()
    assert (attempt.there, attempt.back) == ([4], [8])
    assert [(one.result, one.reason) for one in attempt.refused] == [
        (3, "ValueError: not aligned"),
        (7, "ValueError: not aligned"),
    ]


def test_without_another_path_the_trip_is_given_up():
    attempt = Attempt([3], [7, 8], [(0, refusal("there"))])
    assert not attempt.take_next()
    (trip,) = trips.merged([attempt], Settings(rounds=2, round_trips=100))
    assert trip.reason == "ValueError: not aligned"


def test_what_fails_later_than_in_a_first_trip_is_nobody_s_fault():
    assert not Attempt([3, 4], [7, 8], [(0, refusal("round trip"))]).take_next()


def test_trips_that_were_made_need_no_other_path():
    assert not Attempt([3, 4], [7, 8], [(0, said(1.0))]).take_next()


class Nobody:
    """A watcher that sees nothing."""

    def case(self, *_):
        pass


CASES = [
    make_case("numpy", "jax", "view_only"),
    make_case("numpy", "jax", "any_array"),
    make_case("jax", "numpy", "back"),
]


def made_by(monkeypatch, answer, candidates, rounds=2):
    """The trips of workers that answer ``answer(there, back)``, and what each was asked for."""
    asked = []

    class Worker:
        def __init__(self, *_):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def ask(self, request, _limit_s):
            asked.append((request["import"], request["back"]["import"]))
            return answer(*asked[-1])

    monkeypatch.setattr(trips, "Worker", Worker)
    settings = Settings(rounds=rounds, round_trips=100, seed=1)
    interpreters = Interpreter("python", {})
    attempts = trips.attempts([candidates])
    with contextlib.suppress(KeyboardInterrupt):
        trips.measure(attempts, CASES, interpreters, settings, Nobody())
    return trips.merged(attempts, settings), asked


def test_every_process_makes_the_trips_by_a_path_that_none_refuses(monkeypatch):
    answers = iter([said(1.0), refusal("there"), said(2.0), said(2.0)])
    (trip,), asked = made_by(monkeypatch, lambda *_: next(answers), ([0, 1], [2]))
    assert asked == [("view_only", "back")] * 2 + [("any_array", "back")] * 2
    assert (trip.there, trip.back, len(trip.idle.processes)) == (1, 2, 2)
    assert [one.result for one in trip.refused] == [0]
    assert trip.reason is None


def test_what_was_made_before_somebody_stopped_it_is_kept(monkeypatch):
    answers = iter([said(1.0), said(3.0)])

    def answer(*_):
        found = next(answers, None)
        if found is None:
            raise KeyboardInterrupt
        return found

    (trip,), _ = made_by(monkeypatch, answer, ([0], [2]), rounds=3)
    assert (trip.idle.median_ns, len(trip.processes)) == (2.0, 2)
    assert trip.reason == "the run was stopped after 2 of 3 processes"


def test_a_path_that_is_refused_at_once_is_not_asked_for_again(monkeypatch):
    (trip,), asked = made_by(
        monkeypatch,
        lambda there, _: refusal("there") if there == "view_only" else said(1.0),
        ([0, 1], [2]),
    )
    assert asked == [("view_only", "back"), *[("any_array", "back")] * 2]
    assert trip.idle is not None
