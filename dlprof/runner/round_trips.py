"""Round trips over hundreds of iterations: by the cheapest safe path there and the one back.

They come last, when every path was measured. A path that does not work for the array of the trips
gives way to the next.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dlprof.runner.case_client import LEAST_BYTES_PER_S, imports_of
from dlprof.runner.journal import Journal
from dlprof.runner.measured import Refused, TripProcess
from dlprof.runner.merge_times import merge_time
from dlprof.runner.pairing import Case
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Settings
from dlprof.runner.session import RoundTrip
from dlprof.runner.worker_client import WorkerPool

MOST_REFUSED = 6
"""A trip is given up if so many of its paths do not work."""
WAYS = ("there", "back")
"""The stages in which a worker tries each way once."""

Answers = Sequence[tuple[int, Mapping[str, Any]]]


@dataclass
class Trip:
    """A trip by the cases ``there[0]`` and ``back[0]``; the others are left to be tried."""

    there: list[int]
    back: list[int]
    refused: list[Refused] = field(default_factory=list)

    @property
    def ends(self) -> tuple[int, int]:
        return self.there[0], self.back[0]

    def take_next(self, broken: Mapping[str, Any]) -> bool:
        """Replace the path that does not work by the next one; false if there is none to try."""
        left = self.there if broken["stage"] == "there" else self.back
        if len(left) < 2 or len(self.refused) >= MOST_REFUSED:  # noqa: PLR2004 - it and another
            return False
        reason = broken["reason"] or broken["status"]
        self.refused.append(Refused(result=left.pop(0), reason=reason))
        return True


class RoundTrips:
    """Makes trips in as many fresh processes as there are rounds, in random order.

    ``ends`` are, for each trip, the cases that may lead there, the best first, and those that may
    lead back. Every answer goes into the journal, and one that is there is not measured again.
    """

    def __init__(
        self,
        ends: Sequence[tuple[Sequence[int], Sequence[int]]],
        cases: Sequence[Case],
        settings: Settings,
        journal: Journal,
    ) -> None:
        self._trips = [Trip(list(there), list(back)) for there, back in ends]
        self._cases = cases
        self._settings = settings
        self._journal = journal

    def measure(self, pool: WorkerPool, watcher: Watcher) -> None:
        waiting = self._trips
        while waiting:
            for round_ in range(self._settings.rounds):
                order = list(waiting)
                random.Random(f"{self._settings.seed}:trips:{round_}").shuffle(order)  # noqa: S311 - not a secret
                for trip in order:
                    answers = self._journal.answers(trip.ends)
                    if round_ not in dict(answers) and _broken(answers) is None:
                        watcher.case(self._cases[trip.there[0]], round_, "round trip")
                        self._journal.add(trip.ends, round_, self._ask(pool, *trip.ends))
            waiting = [trip for trip in waiting if self._goes_on(trip)]

    def merged(self) -> list[RoundTrip]:
        """The result of each trip, also of those that were stopped."""
        return [self._merged(trip) for trip in self._trips]

    def _goes_on(self, trip: Trip) -> bool:
        broken = _broken(self._journal.answers(trip.ends))
        return broken is not None and trip.take_next(broken)

    def _ask(self, pool: WorkerPool, there_index: int, back_index: int) -> dict[str, Any]:
        there, back, settings = self._cases[there_index], self._cases[back_index], self._settings
        request = {
            "do": "round trip",
            **imports_of(there),
            "back": {**imports_of(back), "setup": settings.setup},
            "setup": settings.setup,
            "shape": there.shape,
            "dtype": there.dtype,
            "layout": there.layout,
            "device": there.device,
            "iterations": settings.round_trips,
            "budget_ns": settings.sample_ns,
        }
        size_bytes = there.size_bytes * settings.round_trips
        with pool.worker() as worker:
            outcome = worker.ask(request, settings.limit_s + size_bytes / LEAST_BYTES_PER_S)
        return {
            "status": outcome.status,
            "reason": outcome.reason,
            "stage": outcome.stage,
            "parts": outcome.parts,
        }

    def _merged(self, trip: Trip) -> RoundTrip:
        answers = self._journal.answers(trip.ends)
        found = [
            (round_, answer["parts"]["round_trip"])
            for round_, answer in answers
            if answer["status"] == "ok" and "round_trip" in answer["parts"]
        ]
        parts = [part for _, part in found]
        ends = [part["loaded_from"] for part in parts if part["loaded"]]
        # Trips that begin at the other end are others; the end is that of most processes.
        end = max(ends, key=ends.count, default="there")
        loaded = [part["loaded"] for part in parts if part["loaded"] and part["loaded_from"] == end]
        not_loaded = [part["not_loaded"] for part in parts if part["not_loaded"]]
        return RoundTrip(
            there=trip.there[0],
            back=trip.back[0],
            iterations=self._settings.round_trips,
            idle=merge_time(found, "idle"),
            parts=_medians([part["parts"] for part in parts]),
            processes=[
                TripProcess.model_validate(
                    {"round": round_, "in_a_row": part["in_a_row"], "by_halves": part["by_halves"]}
                )
                for round_, part in found
            ],
            refused=trip.refused,
            loaded=_medians(loaded) or None,
            loaded_from=end,
            restarted=next((part["restarted"] for part in parts if part["restarted"]), None),
            not_loaded=None if loaded else next(iter(not_loaded), None),
            reason=_reason(answers, len(found), self._settings.rounds),
        )


def _broken(answers: Answers) -> Mapping[str, Any] | None:
    """The answer of a process in which one of the two ways did not work at all."""
    failed = (answer for _, answer in answers if answer["status"] != "ok")
    return next((answer for answer in failed if answer["stage"] in WAYS), None)


def _reason(answers: Answers, good: int, rounds: int) -> str | None:
    """Why not every process made the trips; None if all did."""
    failed = [answer for _, answer in answers if answer["status"] != "ok"]
    if failed:
        where = f"{len(failed)} of {len(answers)} processes: " if good else ""
        return f"{where}{failed[0]['reason'] or failed[0]['status']}"
    if not good:
        return "the run was stopped before it"
    return None if good == rounds else f"the run was stopped after {good} of {rounds} processes"


def _medians(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = found[0] if found else {}
    return {name: statistics.median(one[name] for one in found) for name in names}
