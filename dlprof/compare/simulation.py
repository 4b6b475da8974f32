"""Synthetic process medians with the noise that conversions show, to check the error rates.

Every maker returns logarithms of medians relative to the true time, of shape (repeats, cases,
sides, rounds); both sides have the same code. ``sd`` is the spread from process to process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dlprof.compare.ranks import Floats, Ranks, ranks

Shape = tuple[int, int, int, int]
Noise = Callable[[np.random.Generator, Shape, float], Floats]

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


def two_states(chance: np.random.Generator, shape: Shape, sd: float) -> Floats:
    """Every process is in one of two states, three times apart, whatever the code."""
    slow = chance.random(shape) < 0.5  # noqa: PLR2004 - either is as likely
    found: Floats = normal(chance, shape, sd) + np.log(3.0) * slow
    return found


def correlated(chance: np.random.Generator, shape: Shape, sd: float) -> Floats:
    """Neighbouring rounds, and all cases of a process, have half of their variance in common."""
    repeats, _, sides, rounds = shape
    own = normal(chance, shape, sd * np.sqrt(0.5))
    shared = chance.normal(0.0, sd * 0.5, (repeats, 1, sides, rounds))
    kicks = chance.normal(0.0, sd * 0.5, (repeats, 1, 1, rounds + 1))
    found: Floats = own + shared + (kicks[..., :-1] + kicks[..., 1:]) / np.sqrt(2.0)
    return found


NOISES: Mapping[str, Noise] = {
    "normal": normal,
    "heavy tails": heavy_tails,
    "transients": transients,
    "drift": drift,
    "two states": two_states,
    "correlated rounds": correlated,
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

    def blocks(self, rounds: int, block: int) -> Ranks:
        """The test after so many rounds, in blocks."""
        starts = range(0, rounds, block)
        return ranks(
            [self.base[..., start : min(start + block, rounds)] for start in starts],
            [self.head[..., start : min(start + block, rounds)] for start in starts],
        )


def suites(noise: Noise, seed: int, repeats: int, cases: int, rounds: int, sd: float) -> Suites:
    """Both sides measured in turns."""
    found = noise(np.random.default_rng(seed), (repeats, cases, 2, rounds), sd)
    return Suites(found[:, :, 0], found[:, :, 1])
