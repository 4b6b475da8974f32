"""The rates of the steps in synthetic histories, as tables for docs/history.md.

As seen on a virtual machine with two cores: sessions of equal code differ by 1.7 %, processes of
one session by 1.2 %.

python benchmarks/history_simulation.py [HISTORIES]
"""

from __future__ import annotations

import math
import sys

import numpy as np

from dlprof.history.changes import find_steps

SESSION_SD, PROCESS_SD = 0.017, 0.012
PROCESSES, FEW_PROCESSES = 8, 3
BUSY = 0.05
"""Share of the sessions that other programs lengthen, by some 20 % on average."""

NOISES = ("normal", "heavy tails", "transients", "two states", "few processes", "noisy")

FLOOR = math.log(1.05)
LEVEL = 0.01
CASES = 20
LENGTHS = (10, 20, 40, 100)
LOOKS = 60
BEHIND = (3, 4, 5, 6, 8, 10)


def main(histories: int) -> None:
    print(f"False steps, one case at {100 * LEVEL:g} %, {histories} histories")
    for noise in NOISES:
        rates = [false_steps(noise, count, histories) for count in LENGTHS]
        looks = looked_at(noise, histories // 20)
        print(f"| {noise} | {' | '.join(f'{100 * rate:.2f} %' for rate in (*rates, looks))} |")
    print(f"Found, one of {CASES} cases, so many sessions after the step, 40 before")
    for noise in ("normal", "heavy tails", "transients"):
        for ratio in (1.05, 1.10, 1.5):
            rates = [found(noise, ratio, behind, histories // 20) for behind in BEHIND]
            cells = " | ".join(f"{100 * rate:.0f} %" for rate in rates)
            print(f"| {noise} | +{100 * (ratio - 1):.0f} % | {cells} |", flush=True)


def false_steps(noise: str, count: int, histories: int) -> float:
    """The share of histories of equal code with a step."""
    chance = np.random.default_rng(count)
    return float(
        np.mean(
            [
                bool(find_steps(history(chance, noise, count), FLOOR, LEVEL))
                for _ in range(histories)
            ]
        )
    )


def looked_at(noise: str, histories: int) -> float:
    """The same for whoever looks after every one of :data:`LOOKS` sessions."""
    chance = np.random.default_rng(LOOKS)
    made = [history(chance, noise, LOOKS) for _ in range(histories)]
    ends = range(2, LOOKS + 1)
    return float(
        np.mean([any(find_steps(one[:end], FLOOR, LEVEL) for end in ends) for one in made])
    )


def found(noise: str, ratio: float, behind: int, histories: int) -> float:
    """The share of histories in which a step is found, one session off at most."""
    chance = np.random.default_rng(behind)
    made = [slowed(history(chance, noise, 40 + behind), 40, ratio) for _ in range(histories)]
    steps = [find_steps(one, FLOOR, LEVEL / CASES) for one in made]
    return float(np.mean([any(abs(step.at - 40) <= 1 for step in some) for some in steps]))


def history(chance: np.random.Generator, noise: str, count: int) -> list[np.ndarray]:
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
        logs += math.log(1.7) * (chance.random(logs.shape) < 0.5)
    return list(logs)


def slowed(
    logs: list[np.ndarray], at: int, ratio: float, until: int | None = None
) -> list[np.ndarray]:
    """The same with sessions from ``at`` on (up to ``until``) slower by ``ratio``."""
    after = range(at, len(logs) if until is None else until)
    return [one + math.log(ratio) * (place in after) for place, one in enumerate(logs)]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
