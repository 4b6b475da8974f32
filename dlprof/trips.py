"""Round trips over hundreds of iterations: by the cheapest safe path there and the one back.

Which paths these are is known only when every path was measured, so they are run at the end.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator, Mapping, Sequence

from dlprof import merge_time
from dlprof.interpreter import Outcome, Worker
from dlprof.plan import Case
from dlprof.runner import LEAST_BYTES_PER_S, Interpreter, Settings, Watcher, way
from dlprof.session import RoundTrip

Ends = tuple[int, int]
"""The indices of the case there and of the case back."""


def measure(
    trips: Sequence[Ends],
    cases: Sequence[Case],
    interpreters: Mapping[str, Interpreter],
    settings: Settings,
    watcher: Watcher,
) -> list[RoundTrip]:
    """Each trip in as many fresh processes as there are rounds, in random order."""
    answers: dict[Ends, list[tuple[int, Outcome]]] = {ends: [] for ends in trips}
    for round_ in range(settings.rounds):
        for ends in _shuffled(trips, f"{settings.seed}:trips:{round_}"):
            there, back = (cases[index] for index in ends)
            watcher.case(there, round_, "round trip")
            interpreter = interpreters[there.environment]
            with Worker(interpreter.python, interpreter.variables) as worker:
                answers[ends].append((round_, _ask(worker, there, back, settings)))
    return [_merged(ends, found, settings.round_trips) for ends, found in answers.items()]


def _shuffled(trips: Sequence[Ends], seed: str) -> Iterator[Ends]:
    order = list(trips)
    random.Random(seed).shuffle(order)  # noqa: S311 - not a secret
    yield from order


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


def _merged(ends: Ends, answers: Sequence[tuple[int, Outcome]], iterations: int) -> RoundTrip:
    found = [
        (round_, outcome.parts["round_trip"])
        for round_, outcome in answers
        if outcome.status == "ok" and "round_trip" in outcome.parts
    ]
    reasons = (outcome.reason or outcome.status for _, outcome in answers)
    parts = [part for _, part in found]
    return RoundTrip(
        there=ends[0],
        back=ends[1],
        iterations=iterations,
        idle=merge_time.merged(found, "idle"),
        parts=_medians([part["parts"] for part in parts]),
        loaded=_medians([part["loaded"] for part in parts if part["loaded"]]) or None,
        loaded_from=next((part["loaded_from"] for part in parts), "there"),
        restarted=next((part["restarted"] for part in parts if part["restarted"]), None),
        not_loaded=next((part["not_loaded"] for part in parts if part["not_loaded"]), None),
        reason=None if found else next(reasons, "the run was stopped before it"),
    )


def _medians(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = found[0] if found else {}
    return {name: statistics.median(one[name] for one in found) for name in names}
