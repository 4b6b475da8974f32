"""Sessions of weeks, in memory: one a day, on machines that can be told apart."""

from datetime import datetime, timedelta, timezone

import numpy as np
from builders import make_session
from comparison_builders import timed

from dlprof.history.entry import Label, entry_of
from dlprof.history.series import series_of
from dlprof.history.trend import trends_of

BEGAN = datetime(2026, 1, 1, 3, tzinfo=timezone.utc)
MACHINE = {
    "python": "3.11.7",
    "cpu": "Example 7",
    "cores": 8,
    "machine": "x86_64",
    "platform": "Linux-6.1",
    "packages": {"torch": "2.9.0", "numpy": "2.4.0"},
    "gpus": [],
    "cuda_devices": 0,
}


def created(day=0):
    return (BEGAN + timedelta(days=day)).isoformat()


def machine(**changes):
    return {**MACHINE, **changes}


def result(name="a", ns=1000.0, processes=8, seed=0, spread=0.005, **changes):
    """A case whose processes are around ``ns``, each of one sample of many calls."""
    noise = np.random.default_rng(seed).normal(0.0, spread, processes)
    times = [float(ns * np.exp(value)) for value in noise]
    changes.setdefault("loops", 1000)
    return timed(name, times, **changes)


def day(number, *results, **header):
    """The session of a day."""
    header.setdefault("environment", MACHINE)
    header.setdefault("created", created(number))
    return make_session(*results, **header)


def entry(number, *results, label="", **header):
    return entry_of(day(number, *results, **header), Label(label, "--label" if label else ""))


def month(times_ns, change=lambda number: {}, header=lambda number: {}, label=lambda number: ""):
    """One entry for each time: a case ``a``; ``change`` and ``header`` say what differs when."""
    return [
        entry(
            number,
            result("a", ns, seed=number, **change(number)),
            label=label(number),
            **header(number),
        )
        for number, ns in enumerate(times_ns)
    ]


def stepped(count=20, at=10, ratio=1.2, around_ns=1000.0):
    """Times that take ``ratio`` times as long from session ``at`` on."""
    return [around_ns * (ratio if number >= at else 1.0) for number in range(count)]


def trends(entries, measure="ready"):
    return trends_of(series_of(entries, measure), measure)


def trend(entries, measure="ready"):
    (found,) = trends(entries, measure)
    return found
