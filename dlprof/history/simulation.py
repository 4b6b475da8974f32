"""Synthetic histories with the noise that sessions show, to check the rates of the steps.

As seen on a virtual machine with two cores: sessions of equal code differ by 1.7 %, processes of
one session by 1.2 %.
"""

from __future__ import annotations

import math

import numpy as np

from dlprof.compare.ranks import Floats

SESSION_SD, PROCESS_SD = 0.017, 0.012
PROCESSES, FEW_PROCESSES = 8, 3
BUSY = 0.05
"""Share of the sessions that other programs lengthen, by some 20 % on average."""

NOISES = ("normal", "heavy tails", "transients", "two states", "few processes", "noisy")


def history(chance: np.random.Generator, noise: str, count: int) -> list[Floats]:
    """Logarithms of the processes' times of each session, of the same code in all.

    *heavy tails*: sessions by Student's t with 3 degrees of freedom. *transients*: one session in
    twenty was disturbed. *two states*: processes are in one of two states 1.7 times apart.
    *noisy*: sessions differ by five times as much as assumed.
    """
    sessions = chance.normal(0.0, SESSION_SD, count)
    if noise == "heavy tails":
        sessions = chance.standard_t(3, count) * 0.85 * SESSION_SD
    if noise == "noisy":
        sessions *= 5
    if noise == "transients":
        sessions += (chance.random(count) < BUSY) * chance.exponential(0.2, count)
    processes = FEW_PROCESSES if noise == "few processes" else PROCESSES
    logs = sessions[:, None] + chance.normal(0.0, PROCESS_SD, (count, processes))
    if noise == "two states":
        logs += math.log(1.7) * (chance.random(logs.shape) < 0.5)  # noqa: PLR2004 - either is as likely
    return list(logs)


def slowed(logs: list[Floats], at: int, ratio: float, until: int | None = None) -> list[Floats]:
    """The same with sessions from ``at`` on (up to ``until``) slower by ``ratio``."""
    after = range(at, len(logs) if until is None else until)
    return [one + math.log(ratio) * (place in after) for place, one in enumerate(logs)]
