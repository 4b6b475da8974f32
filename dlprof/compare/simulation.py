"""Synthetic process medians with the noise that conversions show, to check the error rates.

Every maker returns logarithms of medians relative to the true time, of shape (repeats, cases,
sides, rounds); both sides have the same code. ``sd`` is the spread from process to process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dlprof.compare import statistic
from dlprof.compare.decision import FAMILY_LEVEL, SAME_LEVEL, UNSURE, Proof, Test, decide, prove
from dlprof.compare.drift import common_shift
from dlprof.compare.outlook import LEANING, rounds_for
from dlprof.compare.ranks import Floats, Ranks, Signed, ranks, reaches, signed, student
from dlprof.compare.sequential import Course, Plan, begin, look

Shape = tuple[int, int, int, int]
Noise = Callable[[np.random.Generator, Shape, float], Floats]

VIEW_SD = 0.012
"""Process medians of a view differ by 1.0 to 1.2 %, seen on a virtual machine with two cores."""

DISTURBED = 0.05
"""Share of the medians that a transient of the machine lengthens, by some 20 % on average."""


def normal(chance: np.random.Generator, shape: Shape, sd: float) -> Floats:
    """Nothing but the spread from process to process."""
    return chance.normal(0.0, sd, shape)


def heavy_tails(chance: np.random.Generator, shape: Shape, sd: float) -> Floats:
    """Student's t with 3 degrees of freedom: the middle as narrow as ``sd``, no end of outliers."""
    found: Floats = chance.standard_t(3, shape) * (sd * 0.85)
    return found


def transients(chance: np.random.Generator, shape: Shape, sd: float) -> Floats:
    """One median in twenty is lengthened, all samples of the process alike."""
    hit = chance.random(shape) < DISTURBED
    found: Floats = normal(chance, shape, sd) + hit * chance.exponential(0.2, shape)
    return found


def drift(chance: np.random.Generator, shape: Shape, sd: float) -> Floats:
    """The machine changes its speed as it goes, for all cases: a random walk over the rounds."""
    repeats, _, _, rounds = shape
    walk = np.cumsum(chance.normal(0.0, sd, (repeats, 1, 1, rounds)), axis=-1)
    found: Floats = normal(chance, shape, sd) + walk
    return found


def two_states(chance: np.random.Generator, shape: Shape, sd: float, apart: float = 1.7) -> Floats:
    """Every process is in one of two states, ``apart`` times apart, whatever the code."""
    slow = chance.random(shape) < 0.5  # noqa: PLR2004 - either is as likely
    found: Floats = normal(chance, shape, sd) + np.log(apart) * slow
    return found


def far_states(chance: np.random.Generator, shape: Shape, sd: float) -> Floats:
    """The same as copies have them: a hundred times apart."""
    return two_states(chance, shape, sd, 100.0)


def correlated(chance: np.random.Generator, shape: Shape, sd: float) -> Floats:
    """Neighbouring rounds, and all cases of a process, have half of their variance in common."""
    repeats, _, sides, rounds = shape
    own = normal(chance, shape, sd * np.sqrt(0.5))
    shared = chance.normal(0.0, sd * 0.5, (repeats, 1, sides, rounds))
    kicks = chance.normal(0.0, sd * 0.5, (repeats, 1, 1, rounds + 1))
    found: Floats = own + shared + (kicks[..., :-1] + kicks[..., 1:]) / np.sqrt(2.0)
    return found


def own_rounds(chance: np.random.Generator, shape: Shape, sd: float) -> Floats:
    """Every case of a side resembles itself in the round before: half of what was stays."""
    fresh = normal(chance, shape, sd)
    found = fresh.copy()
    for round_ in range(1, shape[-1]):
        found[..., round_] = 0.5 * found[..., round_ - 1] + np.sqrt(0.75) * fresh[..., round_]
    return found


def spells(chance: np.random.Generator, shape: Shape, sd: float) -> Floats:
    """A side is slower by 20 %, all cases alike, in one round of 13, for four rounds on average."""
    repeats, _, sides, rounds = shape
    drawn = chance.random((repeats, 1, sides, rounds))
    slow = drawn < 0.02 / 0.27
    for round_ in range(1, rounds):
        now = drawn[..., round_]
        slow[..., round_] = np.where(slow[..., round_ - 1], now > 0.25, now < 0.02)  # noqa: PLR2004
    found: Floats = normal(chance, shape, sd) + 0.2 * slow
    return found


def first_is_slower(chance: np.random.Generator, shape: Shape, sd: float) -> Floats:
    """The side that goes first in a round takes 1 % longer; the sides take turns in that."""
    second = np.arange(shape[-1]) % 2
    later = np.stack([second, 1 - second])[: shape[2]]
    found: Floats = normal(chance, shape, sd) - 0.01 * later
    return found


COPIES = ("far states",)
"""Noises that only copies have."""

NOISES: Mapping[str, Noise] = {
    "normal": normal,
    "heavy tails": heavy_tails,
    "transients": transients,
    "drift": drift,
    "two states": two_states,
    "far states": far_states,
    "correlated rounds": correlated,
    "rounds of a side": own_rounds,
    "spells of a side": spells,
    "first is slower": first_is_slower,
}


@dataclass(frozen=True, eq=False)
class Suites:
    """Many measurements of one suite: logarithms of shape (repeats, cases, rounds)."""

    base: Floats
    head: Floats

    def slowed(self, case: int, ratio: float) -> Suites:
        """The same with one case of HEAD slower by ``ratio``."""
        head = self.head.copy()
        head[:, case] += np.log(ratio)
        return Suites(self.base, head)

    def of(self, repeats: NDArray[np.intp]) -> Suites:
        """Only these repeats."""
        return Suites(self.base[repeats], self.head[repeats])

    @property
    def rounds(self) -> int:
        return int(self.base.shape[-1])

    def in_turns(self, rounds: int) -> Signed:
        """The test after so many rounds that were measured in turns."""
        return signed(self.head[..., :rounds] - self.base[..., :rounds])

    def apart(self) -> Ranks:
        """The test of two finished sessions."""
        return ranks(self.base, self.head)


def gate(suites: Suites, plan: Plan, step: float) -> tuple[Course, Floats]:
    """What one pass of a gate says, and after how many rounds each repeat stops.

    It takes the looks of the plan that there are rounds for, and gives up what
    :mod:`dlprof.compare.outlook` gives up.
    """
    course = begin(plan, suites.base.shape[:2])
    used = np.zeros(len(suites.base))
    given_up = np.zeros(course.words.shape, dtype=np.bool_)
    for rounds in plan.looks:
        going = np.flatnonzero((course.open & ~given_up).any(axis=-1))
        if rounds > suites.rounds or not going.size:
            break
        used[going] = rounds
        test = suites.of(going).in_turns(rounds)
        seen = look(replace(course, words=course.words[going]), prove(test, step))
        words = np.where(given_up[going], UNSURE, seen.words)
        given_up[going] |= (words == UNSURE) & _hopeless(test, words == UNSURE, step, plan)
        course = replace(seen, words=course.words.copy())
        course.words[going] = words
    return course, used


def _hopeless(test: Signed, open_: NDArray[np.bool_], step: float, plan: Plan) -> NDArray[np.bool_]:
    """Open cases that do not lean to slower, and that all looks would not decide."""
    found = open_ & (test.p_above(0.0) > LEANING)
    if test.rounds == plan.looks[-1]:
        return np.zeros_like(found)
    low, high = signed(test.differences[found]).interval(SAME_LEVEL)
    found[found] = rounds_for(test.rounds, high - low, step) > plan.looks[-1]
    return found


def second_pass(first: Course, again: Suites, step: float) -> NDArray[np.bool_]:
    """What both passes call slower: the second has fresh processes, and only what was flagged.

    ``first`` and ``again`` are of one repeat.
    """
    flagged = np.flatnonzero(first.slower()[0])
    found = np.zeros(first.words.shape[-1], dtype=np.bool_)
    if flagged.size:
        fewer = Suites(again.base[:1, flagged], again.head[:1, flagged])
        found[flagged] = gate(fewer, first.plan, step)[0].slower()[0]
    return found


def sessions(suites: Suites, step: float, copies: bool = False) -> NDArray[np.str_]:
    """The words of two finished sessions, as :func:`~dlprof.compare.times.judge` finds them.

    ``copies`` are cases that run in states; few processes of such tell nothing.
    """
    proof = _of_sessions(suites, suites.rounds, step, copies)
    return np.full(suites.base.shape[:2], UNSURE) if proof is None else decide(proof)


def _of_sessions(suites: Suites, rounds: int, step: float, copies: bool) -> Proof | None:
    """What so many rounds of HEAD prove; None for few processes of copies."""
    few = Suites(suites.base, suites.head[..., :rounds])
    test: Test = few.apart()
    least = statistic.APART
    if not reaches((suites.rounds, rounds), FAMILY_LEVEL / suites.base.shape[1]):
        if copies:
            return None
        test, least = student(few.base, few.head, statistic.VIEW_SD), statistic.STATE
    common = common_shift(test.location)[..., None]
    return prove(test, step, common, least)


def suites(noise: Noise, seed: int, repeats: int, cases: int, rounds: int, sd: float) -> Suites:
    """Both sides measured in turns."""
    found = noise(np.random.default_rng(seed), (repeats, cases, 2, rounds), sd)
    return Suites(found[:, :, 0], found[:, :, 1])


ENVIRONMENT_SD = 0.007
"""Two environments with the same files differed by up to 1.5 % on single views, in every round
alike (docs/results/gate-noise.md)."""


def of_environments(
    passes: Sequence[Suites], seed: int, sd: float = ENVIRONMENT_SD
) -> list[Suites]:
    """The same passes, of a HEAD whose environment makes each case longer or shorter throughout."""
    shape = (*passes[0].base.shape[:2], 1)
    own = np.random.default_rng(seed).normal(0.0, sd, shape)
    return [Suites(one.base, one.head + own) for one in passes]


def suites_apart(
    noise: Noise,
    seed: int,
    repeats: int,
    cases: int,
    rounds: int,
    sd: float,
    session_sd: float = 0.0,
) -> Suites:
    """HEAD measured after BASE: what the machine does meanwhile goes on.

    ``session_sd`` is by how much two sessions of one case differ besides, all processes alike.
    """
    chance = np.random.default_rng(seed)
    found = noise(chance, (repeats, cases, 1, 2 * rounds), sd)[:, :, 0]
    own = chance.normal(0.0, session_sd, (2, repeats, cases, 1)) if session_sd else (0.0, 0.0)
    return Suites(found[..., :rounds] + own[0], found[..., rounds:] + own[1])


def passes_after(
    noise: Noise,
    seed: int,
    size: Shape,
    base_rounds: int,
    sd: float,
    session_sd: float = 0.0,
) -> list[Suites]:
    """Two passes of HEAD, one after the other, with the finished session of BASE that both share.

    ``size`` is (repeats, cases, passes, rounds). BASE and HEAD differ by ``session_sd`` besides,
    both passes alike: they are of one hour.
    """
    repeats, cases, passes, rounds = size
    chance = np.random.default_rng(seed)
    found = noise(chance, (repeats, cases, 1, base_rounds + passes * rounds), sd)[:, :, 0]
    own = chance.normal(0.0, session_sd, (2, repeats, cases, 1)) if session_sd else (0.0, 0.0)
    base = found[..., :base_rounds] + own[0]
    heads = np.split(found[..., base_rounds:] + own[1], passes, axis=-1)
    return [Suites(base, head) for head in heads]


def against(suites: Suites, plan: Plan, step: float, copies: bool = False) -> Course:
    """What one pass of a gate says against a finished BASE. None gives up: it would only end."""
    course = begin(plan, suites.base.shape[:2])
    for rounds in plan.looks:
        going = np.flatnonzero(course.open.any(axis=-1))
        if rounds > suites.head.shape[-1] or not going.size:
            break
        proof = _of_sessions(suites.of(going), rounds, step, copies)
        if proof is None:
            course = replace(course, looks_done=course.looks_done + 1)
            continue
        seen = look(replace(course, words=course.words[going]), proof)
        words = course.words.copy()
        words[going] = seen.words
        course = replace(seen, words=words)
    return course


def both_against(
    passes: Sequence[Suites], plan: Plan, step: float, copies: bool = False
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """What the first of two such passes calls slower, and what both do; the second is of that."""
    first, again = passes
    flagged = against(first, plan, step, copies).slower()
    found = np.zeros_like(flagged)
    for place in np.flatnonzero(flagged.any(axis=-1)):
        cases = np.flatnonzero(flagged[place])
        base, head = (side[place : place + 1, cases] for side in (again.base, again.head))
        found[place, cases] = against(Suites(base, head), plan, step, copies).slower()[0]
    return flagged, found
