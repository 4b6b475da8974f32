"""Sessions from several days and machines, in memory."""

from datetime import datetime, timedelta, timezone

import numpy as np
from builders import make_session
from comparison_builders import timed

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
    """A case whose processes take about ``ns``, each with one sample of many calls."""
    noise = np.random.default_rng(seed).normal(0.0, spread, processes)
    times = [float(ns * np.exp(value)) for value in noise]
    changes.setdefault("loops", 1000)
    return timed(name, times, **changes)


def day(number, *results, **header):
    """The session of a given day."""
    header.setdefault("environment", MACHINE)
    header.setdefault("created", created(number))
    return make_session(*results, **header)
