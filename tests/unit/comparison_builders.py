"""Sessions to compare, built from the medians of their processes."""

from dataclasses import replace

import numpy as np
from builders import make_result, make_session

from dlprof.compare.comparison import compare
from dlprof.compare.times import Floor, ProcessTimes, SidePair
from dlprof.compare.verdicts import parse

QUIET = 0.01
"""Spread of process medians on a quiet machine."""


def medians(count=10, around_ns=1000.0, spread=QUIET, seed=0):
    """Return process medians of a quiet machine, reproducible by seed."""
    noise = np.random.default_rng(seed).normal(0.0, spread, count)
    return [float(around_ns * np.exp(value)) for value in noise]


def timed(name="a", ns=(1000.0,), faults=None, loops=1, **changes):
    """A result with one sample per process."""
    faults = faults or [None] * len(ns)
    processes = [
        {"round": n, "loops": loops, "samples_ns": [v], "page_faults_per_call": f}
        for n, (v, f) in enumerate(zip(ns, faults, strict=True))
    ]
    time = {
        "median_ns": float(np.median(ns)),
        "ci95_ns": None,
        "min_ns": min(ns),
        "processes": processes,
    }
    ready = {**time, "same_as": "host_time"}
    case = {"import": name, **changes.pop("case", {})}
    fields = {"host_time": time, "ready_time": ready, **changes}
    return make_result(f"numpy.{name}(x)", case=case, **fields)


def suite(slower=None, count=10, seed=0, names="abcdefgh", spread=QUIET, **changes):
    """Return the cases of a measurement; ``slower`` maps names to ratios."""
    return [
        timed(
            name,
            [
                v * (slower or {}).get(name, 1.0)
                for v in medians(count, 900.0 + 100 * n, spread, seed=seed + n)
            ],
            **changes,
        )
        for n, name in enumerate(names)
    ]


def sample(ratio=1.0, rounds=32, sd=0.0, floor=0.05, seed=1):
    """Return a time measured in turns on which HEAD takes ``ratio`` times as long as BASE.

    ``sd`` is the spread between the processes of each side.
    """
    chance = np.random.default_rng(seed)
    sides = [
        tuple(
            ProcessTimes(number, (1000.0 * side * float(np.exp(chance.normal(0.0, sd))),))
            for number in range(rounds)
        )
        for side in (1.0, ratio)
    ]
    return SidePair(*sides, Floor("ready", floor, 0.0), in_turns=True)


def pair(base, head, base_header=None, head_header=None):
    return (
        make_session(*base, **{"created": "2026-01-01T00:00:00+00:00", **(base_header or {})}),
        make_session(*head, **{"created": "2026-01-02T00:00:00+00:00", **(head_header or {})}),
    )


def compared(base, head, *fail_on, base_header=None, head_header=None, in_turns=False, **criteria):
    """Compare two lists of results."""
    sides = pair(base, head, base_header, head_header)
    return compare(*sides, replace(parse(fail_on), **criteria), in_turns)


def only_words(comparison):
    """Map each import name to the word for its time."""
    return {case.case.import_: time.word for case, time in comparison.times}


def case_words(comparison):
    """Map each import name to the word for its case."""
    return {case.case.import_: case.word for case in comparison.cases}
