"""Round trips over hundreds of iterations: by the cheapest safe path there and the one back.

Which paths these are is known only when every path was measured, so they are run at the end. A path
that does not work for the array of the trips gives way to the next.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dlprof.plan.pairing import Case
from dlprof.plan.settings import Settings
from dlprof.runner.asker import LEAST_BYTES_PER_S, Watcher, way
from dlprof.runner.interpreter import Outcome, Worker
from dlprof.runner.standby import Interpreter
from dlprof.session import merge_time
from dlprof.session.model import RoundTrip
from dlprof.session.run_record import Refused, TripProcess

MOST_REFUSED = 6
"""So many paths of one trip may not work before the trip is given up."""


@dataclass
class Attempt:
    """One trip; ``there`` and ``back`` are the indices of cases that are left to be tried, the best
    first, and never empty.
    """

    there: list[int]
    back: list[int]
    answers: list[tuple[int, Outcome]] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)

    def keep(self, round_: int, outcome: Outcome) -> None:
        self.answers.append((round_, outcome))

    @property
    def broken(self) -> Outcome | None:
        """What a process said in which one of the two ways did not work at all."""
        said = (outcome for _, outcome in self.answers)
        return next((one for one in said if one.status != "ok" and one.stage in WAYS), None)

    def take_next(self) -> bool:
        """Give the path that did not work up for the next one; whether there is one to be tried."""
        broken = self.broken
        if broken is None or len(self.refused) >= MOST_REFUSED:
            return False
        left = self.there if broken.stage == "there" else self.back
        if len(left) < 2:  # noqa: PLR2004 - the one that does not work, and another
            return False
        self.refused.append(Refused(result=left.pop(0), reason=broken.reason or broken.status))
        self.answers = []
        return True


WAYS = ("there", "back")
"""The stages of a worker in which it tries each way once."""


def attempts(trips: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[Attempt]:
    """One for each trip: the indices of the cases that may lead there, the best first, and of those
    back.
    """
    return [Attempt(list(there), list(back)) for there, back in trips]


def measure(
    trips: Sequence[Attempt],
    cases: Sequence[Case],
    interpreter: Interpreter,
    settings: Settings,
    watcher: Watcher,
) -> None:
    """Make each trip in as many fresh processes as there are rounds, in random order.

    What was made until somebody stops it stands in ``trips``.
    """
    waiting = trips
    while waiting:
        for round_ in range(settings.rounds):
            for attempt in _shuffled(waiting, f"{settings.seed}:trips:{round_}"):
                if attempt.broken is None:
                    outcome = _run(attempt, round_, cases, interpreter, settings, watcher)
                    attempt.keep(round_, outcome)
        waiting = [attempt for attempt in waiting if attempt.take_next()]


def merged(trips: Sequence[Attempt], settings: Settings) -> list[RoundTrip]:
    """What became of each, also of those that were stopped."""
    return [_merged(attempt, settings) for attempt in trips]


def _shuffled(attempts: Sequence[Attempt], seed: str) -> Iterator[Attempt]:
    order = list(attempts)
    random.Random(seed).shuffle(order)  # noqa: S311 - not a secret
    yield from order


def _run(
    attempt: Attempt,
    round_: int,
    cases: Sequence[Case],
    interpreter: Interpreter,
    settings: Settings,
    watcher: Watcher,
) -> Outcome:
    there, back = cases[attempt.there[0]], cases[attempt.back[0]]
    watcher.case(there, round_, "round trip")
    with Worker(interpreter.python, interpreter.variables) as worker:
        return _ask(worker, there, back, settings)


def _ask(worker: Worker, there: Case, back: Case, settings: Settings) -> Outcome:
    request = {
        "do": "round trip",
        **way(there),
        "back": {**way(back), "setup": settings.setup},
        "setup": settings.setup,
        "shape": there.shape,
        "dtype": there.dtype,
        "layout": there.layout,
        "device": there.device,
        "iterations": settings.round_trips,
        "budget_ns": settings.sample_ns,
    }
    bytes_ = there.size_bytes * settings.round_trips
    return worker.ask(request, settings.limit_s + bytes_ / LEAST_BYTES_PER_S)


def _merged(attempt: Attempt, settings: Settings) -> RoundTrip:
    answers = attempt.answers
    found = [
        (round_, outcome.parts["round_trip"])
        for round_, outcome in answers
        if outcome.status == "ok" and "round_trip" in outcome.parts
    ]
    parts = [part for _, part in found]
    ends = [part["loaded_from"] for part in parts if part["loaded"]]
    # Trips that begin at the other end are others; the end is that of most processes.
    end = max(ends, key=ends.count, default="there")
    loaded = [part["loaded"] for part in parts if part["loaded"] and part["loaded_from"] == end]
    not_loaded = [part["not_loaded"] for part in parts if part["not_loaded"]]
    return RoundTrip(
        there=attempt.there[0],
        back=attempt.back[0],
        iterations=settings.round_trips,
        idle=merge_time.merged(found, "idle"),
        parts=_medians([part["parts"] for part in parts]),
        processes=[_process(round_, part) for round_, part in found],
        refused=attempt.refused,
        loaded=_medians(loaded) or None,
        loaded_from=end,
        restarted=next((part["restarted"] for part in parts if part["restarted"]), None),
        not_loaded=None if loaded else next(iter(not_loaded), None),
        reason=_reason(answers, len(found), settings.rounds),
    )


def _reason(answers: Sequence[tuple[int, Outcome]], good: int, rounds: int) -> str | None:
    """Why not every process made the trips; None if all did."""
    reasons = [outcome.reason or outcome.status for _, outcome in answers if outcome.status != "ok"]
    if reasons:
        where = f"{len(reasons)} of {len(answers)} processes: " if good else ""
        return f"{where}{reasons[0]}"
    if not good:
        return "the run was stopped before it"
    return None if good == rounds else f"the run was stopped after {good} of {rounds} processes"


def _process(round_: int, part: Mapping[str, object]) -> TripProcess:
    looks = {name: part[name] for name in ("in_a_row", "by_halves")}
    return TripProcess.model_validate({"round": round_, **looks})


def _medians(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = found[0] if found else {}
    return {name: statistics.median(one[name] for one in found) for name in names}
