"""Round trips over several processes: one answer, or why there is none."""

import contextlib
from contextlib import closing

from builders import make_case

from dlprof.runner.journal import Journal
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Settings
from dlprof.runner.round_trips import RoundTrips
from dlprof.runner.worker_client import Outcome, WorkerPool, started_by

LOOK = {"there": {"views": 5}, "back": {"copies": 5, "copy_alignments": [16]}}
CASES = [
    make_case("numpy", "jax", "view_only"),
    make_case("numpy", "jax", "any_array"),
    make_case("jax", "numpy", "back"),
    make_case("jax", "numpy", "other_back"),
]


def made(per_trip_ns=1.0, **changes):
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


def refusal(stage):
    return Outcome("unsupported", "ValueError: not aligned", stage=stage)


class Worker:
    """Gives the next of the answers, and notes what it was asked for; the last one is a stop."""

    def __init__(self, answers, asked):
        self.answers, self.asked = answers, asked

    def __enter__(self):
        return self

    def __exit__(self, *_): ...

    def ask(self, request, _limit_s):
        self.asked.append((request["import"], request["back"]["import"]))
        for answer in self.answers:
            return answer
        raise KeyboardInterrupt


def trip_of(answers, there=(0,), back=(2,), rounds=None, journal=None):
    """The trip of workers that give these answers, and their requests."""
    asked, left = [], iter(answers)
    settings = Settings(rounds=rounds or len(answers), round_trips=100, seed=1)
    with closing(Journal()) as own, started_by(lambda *_: Worker(left, asked)):
        trips = RoundTrips([(there, back)], CASES, settings, journal or own)
        with contextlib.suppress(KeyboardInterrupt):
            trips.measure(WorkerPool("python", {}), Watcher())
        (trip,) = trips.merged()
    return trip, asked


def test_the_time_is_the_median_of_the_processes():
    trip, _ = trip_of([made(100.0), made(104.0), made(102.0)])
    assert (trip.there, trip.back, trip.iterations) == (0, 2, 100)
    assert (trip.idle.median_ns, len(trip.idle.processes)) == (102.0, 3)
    assert trip.parts["there_ns"] == 51.0
    assert (trip.loaded, trip.not_loaded, trip.reason) == (None, "no queue", None)


def test_every_process_makes_the_trips_by_a_path_that_none_refuses():
    answers = [made(), refusal("there"), made(), refusal("back"), made(2.0), made(2.0)]
    trip, asked = trip_of(answers, (0, 1), (2, 3), rounds=2)
    assert asked[::2] == [("view_only", "back"), ("any_array", "back"), ("any_array", "other_back")]
    assert (trip.there, trip.back, len(trip.idle.processes), trip.reason) == (1, 3, 2, None)
    why = "ValueError: not aligned"
    assert [(one.result, one.reason) for one in trip.refused] == [(0, why), (2, why)]


def test_without_another_path_the_trip_is_given_up():
    trip, asked = trip_of([refusal("there")], back=(2, 3), rounds=2)
    assert (trip.idle, trip.reason, len(asked)) == (None, "ValueError: not aligned", 1)


def test_trips_before_a_stop_are_kept_and_not_made_again():
    with closing(Journal()) as journal:
        trip, _ = trip_of([made(1.0), made(3.0)], rounds=3, journal=journal)
        assert (trip.idle.median_ns, len(trip.processes)) == (2.0, 2)
        assert "2 of 3 processes" in trip.reason
        trip, asked = trip_of([made(2.0)], rounds=3, journal=journal)
        assert (len(asked), len(trip.processes), trip.reason) == (1, 3, None)
