"""Simulate the gate's false alarms and the slowdowns it finds.

Nothing is measured: synthetic processes with the noise that conversions show go through the
functions that judge real ones. Prints, for suites of 16 cases and each noise,

- gates that measure in turns (up to 64 rounds and a second pass): suites that the first pass
  flags, false alarms after both, suites that end green, what is called of one case that is slower
  by 5 and by 10 %, and rounds;
- two finished sessions of 3 to 20 rounds: false alarms, and the same of one slower case.

    python benchmarks/gate_simulation.py [--suites 100] [--tables turns sessions]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from dlprof.compare.gate_rounds import Course
from dlprof.compare.times import (
    FASTER,
    LOOKS,
    SAME,
    SLOWER,
    UNSURE,
    Floor,
    ProcessTimes,
    SidePair,
    Time,
    judge,
)
from dlprof.compare.verdicts import Criteria

CASES = 16
ROUNDS = LOOKS[-1]
VIEW_SD = 0.012
"""Processes of a view differ by 1.0 to 1.2 %, seen on a virtual machine with two cores."""
SESSION_SD = 0.017
"""Sessions of equal code, as seen there."""
ENVIRONMENTS = "environments"
ENVIRONMENT_SD = 0.007
"""Two environments with the same files differed by up to 1.5 % on single views, in every round."""
FLOOR = Floor("ready", 0.05, 0.0)

Logs = np.ndarray
Noise = Callable[[np.random.Generator, tuple[int, int, int], float], Logs]
"""Return logarithms of times by side, case and round. Both sides have the same code."""


def normal(chance: np.random.Generator, shape: tuple[int, int, int], sd: float) -> Logs:
    return chance.normal(0.0, sd, shape)


def heavy_tails(chance: np.random.Generator, shape: tuple[int, int, int], sd: float) -> Logs:
    return chance.standard_t(3, shape) * 0.85 * sd


def transients(chance: np.random.Generator, shape: tuple[int, int, int], sd: float) -> Logs:
    """Make one process in twenty take 20 % longer on average."""
    return normal(chance, shape, sd) + (chance.random(shape) < 0.05) * chance.exponential(
        0.2, shape
    )


def drift(chance: np.random.Generator, shape: tuple[int, int, int], sd: float) -> Logs:
    """Change the machine's speed for all cases: a random walk over the rounds."""
    walk = np.cumsum(chance.normal(0.0, sd, (1, 1, shape[2])), axis=-1)
    return normal(chance, shape, sd) + walk


def two_states(chance: np.random.Generator, shape: tuple[int, int, int], sd: float) -> Logs:
    """Put every process into one of two states, 1.7 times apart, independent of the code."""
    return normal(chance, shape, sd) + np.log(1.7) * (chance.random(shape) < 0.5)


def rounds_of_a_side(chance: np.random.Generator, shape: tuple[int, int, int], sd: float) -> Logs:
    """Correlate each case of a side with its round before: half of the deviation stays."""
    found = normal(chance, shape, sd)
    for round_ in range(1, shape[2]):
        found[..., round_] = 0.5 * found[..., round_ - 1] + np.sqrt(0.75) * found[..., round_]
    return found


def first_is_slower(chance: np.random.Generator, shape: tuple[int, int, int], sd: float) -> Logs:
    """Make the first side of a round 1 % slower. The sides take turns at going first."""
    second = np.arange(shape[2]) % 2
    later = np.stack([second, 1 - second])[: shape[0], None]
    return normal(chance, shape, sd) - 0.01 * later


NOISES: dict[str, Noise] = {
    "normal": normal,
    "heavy tails": heavy_tails,
    "transients": transients,
    "drift": drift,
    "two states": two_states,
    "rounds of a side": rounds_of_a_side,
    "first is slower": first_is_slower,
    ENVIRONMENTS: normal,
}


def processes(logs: Logs) -> tuple[ProcessTimes, ...]:
    return tuple(
        ProcessTimes(round_, (float(1e3 * np.exp(log)),)) for round_, log in enumerate(logs)
    )


def suite(
    noise: str, seed: int, slower: float = 1.0, sd: float = VIEW_SD, cases: int = CASES
) -> list[SidePair]:
    """Simulate one pass in turns. The first case of HEAD is slower by ``slower``."""
    logs = NOISES[noise](np.random.default_rng(seed), (2, cases, ROUNDS), sd)
    logs[1, 0] += np.log(slower)
    if noise == ENVIRONMENTS:  # both passes of a gate have the same, and consecutive seeds
        logs[1] += np.random.default_rng(seed // 2).normal(0.0, ENVIRONMENT_SD, (cases, 1))
    return [
        SidePair(processes(base), processes(head), FLOOR, in_turns=True)
        for base, head in zip(*logs, strict=True)
    ]


def one_pass(samples: Sequence[SidePair]) -> tuple[list[Time], int]:
    """Return the times of one pass and the number of its rounds."""
    course, used = Course((UNSURE,) * len(samples)), 0
    cut = [cut_to(one, 0) for one in samples]
    while course.next_look is not None and course.open - course.given_up:
        used = course.next_look
        # A settled case is not measured again; the family stays the whole suite.
        cut = [
            done if place in course.given_up else cut_to(one, used)
            for place, (one, done) in enumerate(zip(samples, cut, strict=True))
        ]
        course.look(cut)
        course.give_up(cut)
    decided = [None if word == UNSURE else word for word in course.words]
    return judge(cut, decided), used


def cut_to(sample: SidePair, rounds: int) -> SidePair:
    return replace(sample, base=sample.base[:rounds], head=sample.head[:rounds])


def gate(noise: str, seed: int, slower: float = 1.0, sd: float = VIEW_SD) -> tuple[set, set, list]:
    """Return the cases flagged by the first pass, those flagged by both, and the times after both.

    A case that the second pass calls SAME is SAME. All other flagged cases keep their first word.
    """
    times, _ = one_pass(suite(noise, 2 * seed, slower, sd))
    flagged = {place for place, time in enumerate(times) if time.word == SLOWER}
    again = suite(noise, 2 * seed + 1, slower, sd)
    seconds, _ = one_pass([again[place] for place in sorted(flagged)]) if flagged else ([], 0)
    confirmed = set()
    for place, second in zip(sorted(flagged), seconds, strict=True):
        if second.word == SLOWER:
            confirmed.add(place)
        elif second.word == SAME:
            times[place] = second
    return flagged, confirmed, times


def is_green(times: Iterable[Time]) -> bool:
    """Whether a gate with these times ends with exit code 0."""
    return all(time.word in (SAME, FASTER) or Criteria().passes(time) for time in times)


def sessions(
    noise: str, seed: int, rounds: int, slower: float = 1.0, session_sd: float = SESSION_SD
) -> list[str]:
    """Return the words of two finished sessions, measured one after the other."""
    chance = np.random.default_rng(seed)
    logs = NOISES[noise](chance, (1, CASES, 2 * rounds), VIEW_SD)[0]
    own = chance.normal(0.0, session_sd, (2, CASES, 1))
    base, head = logs[:, :rounds] + own[0], logs[:, rounds:] + own[1]
    head[0] += np.log(slower)
    samples = [
        SidePair(processes(before), processes(after), FLOOR)
        for before, after in zip(base, head, strict=True)
    ]
    return [time.word for time in judge(samples)]


def turns_table(suites: int, noises: Sequence[str]) -> None:
    print("in turns           flagged  false alarm     green  rounds  +5 %: caught  passed  +10 %")
    for noise in noises:
        equal = [gate(noise, seed) for seed in range(suites)]
        slower = {
            ratio: [gate(noise, seed, ratio) for seed in range(suites)] for ratio in (1.05, 1.1)
        }
        rounds = np.mean([one_pass(suite(noise, 2 * seed))[1] for seed in range(suites)])
        print(
            f"{noise:<19}{share(flagged for flagged, _, _ in equal):>7}"
            f"{share(both for _, both, _ in equal):>13}"
            f"{share(is_green(times) for _, _, times in equal):>10}{rounds:>8.1f}"
            f"{share(0 in both for _, both, _ in slower[1.05]):>14}"
            f"{share(times[0].word == SAME for _, _, times in slower[1.05]):>8}"
            f"{share(0 in both for _, both, _ in slower[1.1]):>7}",
            flush=True,
        )


def sessions_table(suites: int, noises: Sequence[str]) -> None:
    print("two sessions       rounds  false alarm   +50 % caught  +150 % caught   +5 % passed")
    for noise in noises:
        for rounds in (3, 7, 10, 20):
            equal = [sessions(noise, seed, rounds) for seed in range(suites)]
            found = {
                ratio: [sessions(noise, seed, rounds, ratio)[0] for seed in range(suites)]
                for ratio in (1.05, 1.5, 2.5)
            }
            print(
                f"{noise:<19}{rounds:>6}{share(SLOWER in words for words in equal):>13}"
                f"{share(word == SLOWER for word in found[1.5]):>15}"
                f"{share(word == SLOWER for word in found[2.5]):>15}"
                f"{share(word == SAME for word in found[1.05]):>14}",
                flush=True,
            )


def share(found: Iterable[object]) -> str:
    return f"{np.mean([bool(one) for one in found]):.1%}"


TABLES = {"turns": turns_table, "sessions": sessions_table}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suites", type=int, default=100)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--noises", nargs="+", choices=NOISES, default=list(NOISES))
    given = parser.parse_args()
    for name in given.tables:
        TABLES[name](given.suites, given.noises)


if __name__ == "__main__":
    main()
