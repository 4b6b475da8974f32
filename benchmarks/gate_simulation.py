"""How often would the gate cry wolf, and what would it catch?

Nothing is measured: synthetic process medians with the noise that conversions show go through the
functions that judge real ones. Prints, for suites of 16 cases,

- gates that measure in turns (looks after 8, 12, 16, 24, 32, 48 and 64 rounds, and a second pass):
  suites in which the first pass flags anything, false alarms after both, what is called of a case
  that is slower by 5 and by 10 %, and rounds of the first pass;
- two finished sessions of 3 to 20 rounds: the same;
- gates against a baseline of 10 and 20 rounds, both passes with the same BASE: the same, what is
  caught with a fifth of the suites.

    python benchmarks/gate_simulation.py [--repeats 10000] [--sd 0.012] [--tables turns sessions]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from dlprof.compare import decision, simulation
from dlprof.compare.sequential import IN_TURNS, Course, Plan
from dlprof.history.simulation import SESSION_SD

CASES = 16
CHUNK = 500
"""Suites at a time: memory stays below 1 GB."""
STEP = float(np.log(1.05))
SLOWDOWNS = (1.05, 1.10)
ENVIRONMENT_SDS = (simulation.ENVIRONMENT_SD, 2 * simulation.ENVIRONMENT_SD)
"""By how much two environments differ, in all rounds and both passes alike."""
ROUNDS = (3, 5, 7, 10, 15, 20)
BASE_ROUNDS = (10, 20)
SESSION_SDS = (0.01, SESSION_SD, 2**0.5 * SESSION_SD)


def main() -> None:
    given = arguments()
    print(f"{given.repeats:,} suites of {CASES} cases, sd {given.sd:.2%} between processes")
    for name in given.tables:
        print()
        TABLES[name](given)


def turns(given: argparse.Namespace) -> None:
    print("measured in turns, stopped as soon as all is decided")
    columns = (
        "noise              flagged  false alarm  all same  rounds  +5 %: caught  passed  +10 %"
    )
    print(columns)
    for name in simulation.NOISES:
        print(f"{name:<19}{gate_row(name, given)}", flush=True)
    for sd in ENVIRONMENT_SDS:
        name = f"environments {sd:.1%}"
        print(f"{name:<19}{gate_row('normal', given, sd)}", flush=True)


def sessions(given: argparse.Namespace) -> None:
    print("two finished sessions; SLOWER / UNSURE / SAME of one case, in percent")
    print("noise              rounds  false alarm    +0 %            +5 %            +10 %")
    for name in simulation.NOISES:
        for rounds in ROUNDS:
            print(f"{name:<19}{rounds:>6}  {session_row(name, rounds, given)}", flush=True)
    print(f"\nthe same, of sessions of a case that differ by {SESSION_SD:.1%} besides")
    for rounds in ROUNDS:
        print(f"{'normal':<19}{rounds:>6}  {session_row('normal', rounds, given, SESSION_SD)}")


def baseline(given: argparse.Namespace) -> None:
    print("against a baseline; sessions of a case differ by so much besides")
    print("noise              besides  rounds  flagged  false alarm   +5 %  +10 %  +20 %")
    rows = [*((name, 0.0) for name in simulation.NOISES), *(("normal", sd) for sd in SESSION_SDS)]
    for name, sd in rows:
        for rounds in BASE_ROUNDS:
            row = baseline_row(name, rounds, given, sd)
            print(f"{name:<19}{sd:>7.1%}{rounds:>8}  {row}", flush=True)


TABLES = {"turns": turns, "sessions": sessions, "baseline": baseline}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=10_000)
    parser.add_argument("--sd", type=float, default=simulation.VIEW_SD)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    return parser.parse_args()


def chunks(
    make: Callable[..., simulation.Suites], name: str, rounds: int, given: argparse.Namespace
) -> Iterator[simulation.Suites]:
    for number, begin in enumerate(range(0, given.repeats, CHUNK)):
        size = min(CHUNK, given.repeats - begin)
        seed = given.seed * 1000 + number
        yield make(simulation.NOISES[name], seed, size, CASES, rounds, given.sd)


def gate_row(name: str, given: argparse.Namespace, environment_sd: float = 0.0) -> str:
    flagged, alarms, same, rounds = [], [], [], []
    caught: dict[float, list[np.ndarray]] = {ratio: [] for ratio in SLOWDOWNS}
    passed = []
    again = argparse.Namespace(**{**vars(given), "seed": given.seed + 1_000_000})
    most = IN_TURNS.looks[-1]
    passes = [chunks(simulation.suites, name, most, one) for one in (given, again)]
    for number, pair in enumerate(zip(*passes, strict=True)):
        first, second = simulation.of_environments(pair, number, environment_sd)
        course, used = simulation.gate(first, IN_TURNS, STEP)
        flagged.append(course.slower().any(-1))
        alarms.append(both(course, second).any(-1))
        same.append(course.same().all(-1))
        rounds.append(used)
        for ratio, found in caught.items():
            course, _ = simulation.gate(first.slowed(0, ratio), IN_TURNS, STEP)
            found.append(both(course, second.slowed(0, ratio))[:, 0])
            if ratio == SLOWDOWNS[0]:
                passed.append(course.same()[:, 0])
    five, ten = (np.concatenate(caught[ratio]).mean() for ratio in SLOWDOWNS)
    return (
        f"{np.concatenate(flagged).mean():>7.2%}{np.concatenate(alarms).mean():>13.2%}"
        f"{np.concatenate(same).mean():>10.1%}{np.concatenate(rounds).mean():>8.1f}"
        f"{five:>14.1%}{np.concatenate(passed).mean():>8.1%}{ten:>7.1%}"
    )


def both(course: Course, again: simulation.Suites) -> np.ndarray:
    """What both passes call slower, of each repeat."""
    return np.array(
        [
            simulation.second_pass(
                Course(course.plan, course.words[place : place + 1]),
                simulation.Suites(again.base[place : place + 1], again.head[place : place + 1]),
                STEP,
            )
            for place in range(len(course.words))
        ]
    )


def session_row(name: str, rounds: int, given: argparse.Namespace, session_sd: float = 0.0) -> str:
    alarms: list[np.ndarray] = []
    seen: dict[float, list[np.ndarray]] = {ratio: [] for ratio in (1.0, *SLOWDOWNS)}
    apart = partial(simulation.suites_apart, session_sd=session_sd)
    for suites in chunks(apart, name, rounds, given):
        for ratio, words in seen.items():
            found = simulation.sessions(suites.slowed(0, ratio), STEP, name in simulation.COPIES)
            words.append(found[:, 0])
            if ratio == 1.0:
                alarms.append((found == decision.SLOWER).any(-1))
    text = f"{np.concatenate(alarms).mean():>10.2%}  "
    for words in seen.values():
        text += "   " + shares(np.concatenate(words))
    return text


def baseline_row(name: str, rounds: int, given: argparse.Namespace, session_sd: float) -> str:
    seen: dict[float, list[np.ndarray]] = {ratio: [] for ratio in (*SLOWDOWNS, 1.20)}
    flagged, alarms = [], []
    for number, begin in enumerate(range(0, given.repeats, CHUNK)):
        size = (min(CHUNK, given.repeats - begin), CASES, 2, IN_TURNS.looks[-1])
        seed = given.seed * 1000 + number
        noise = simulation.NOISES[name]
        passes = simulation.passes_after(noise, seed, size, rounds, given.sd, session_sd)
        copies = name in simulation.COPIES
        first, both_ = simulation.both_against(passes, Plan(), STEP, copies)
        flagged.append(first.any(-1))
        alarms.append(both_.any(-1))
        for ratio, found in seen.items() if 5 * begin < given.repeats else ():
            slowed = [one.slowed(0, ratio) for one in passes]
            found.append(simulation.both_against(slowed, Plan(), STEP, copies)[1][:, 0])
    caught = "".join(f"{np.concatenate(found).mean():>7.1%}" for found in seen.values())
    return f"{np.concatenate(flagged).mean():>7.2%}{np.concatenate(alarms).mean():>13.2%}{caught}"


def shares(words: np.ndarray) -> str:
    order = (decision.SLOWER, decision.UNSURE, decision.SAME)
    return "/".join(f"{100 * (words == word).mean():>4.0f}" for word in order).ljust(13)


if __name__ == "__main__":
    main()
