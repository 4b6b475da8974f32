"""Two processes that take their samples in turns, so that whatever the machine does meets both."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from dlprof.plan.schedule import SERIES, Round, Stop, shuffle

FAR = 4
"""Processes of equal code choose numbers of calls that are a factor of 2 apart, or of 4 if samples
of few calls last longer."""

Pair = tuple[int | None, int | None]
"""The numbers of a case on both sides; None for a side that does not measure it."""


def cpu_of(round_: int) -> int | None:
    """The processor for the samples of a round; None if the system does not say which there are.

    It is another one in every second round, so that either side is the first on each.
    """
    if not hasattr(os, "sched_getaffinity"):
        return None
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[round_ // 2 % len(allowed)]


def in_order(pairs: Sequence[tuple[Pair, bool]], seed: int, round_: int) -> list[Pair]:
    """Pairs at random, another one first in each round; those that are large come last.

    Large cases have processes of their own, which start after the one that all others share.
    """
    chance = random.Random(f"{seed}:{round_}")  # noqa: S311 - not a secret
    groups = [[pair for pair, large in pairs if large is wanted] for wanted in (False, True)]
    return [pair for group in groups if group for pair in shuffle(group, chance, seed, round_)]


@dataclass
class Player:
    """A side of a round. ``ranks`` are the places of its cases in the order common to both."""

    round: Round
    ranks: Mapping[int, int]
    at: tuple[int, int] | None = field(default=None, init=False)
    """The rank and the series before which it stands; None before it begins and after its end."""
    calls: int = field(default=0, init=False)
    """How many calls its next sample is of."""

    def step(self, calls: int | None = None) -> None:
        """On to its next stop, or its end; with a sample of so many calls."""
        try:
            stop = self.round.send(calls)
        except StopIteration:
            self.at = None
        else:
            self.at, self.calls = self._position(stop), stop.calls

    def _position(self, stop: Stop) -> tuple[int, int]:
        series = SERIES.index(stop.series) + 1 if stop.series in SERIES else 0
        return self.ranks[stop.case], series


def alternate(first: Player, second: Player) -> None:
    """Run both rounds to their ends; both are closed whatever happens.

    If both stand before a sample of the same series of the same case, each takes one, ``first``
    before ``second``. Otherwise the one that is behind goes on until it has reached the other.

    The order is strictly A B A B. In A B B A every other sample would find the caches as its own
    process left them: copies of 4 MiB were 1.8 times as long in one pair as in the next.
    """
    with closing(first.round), closing(second.round):
        first.step()
        second.step()
        while first.at is not None and second.at is not None:
            behind = min(first.at, second.at)
            players = [one for one in (first, second) if one.at == behind]
            calls = _common_calls(players)
            for player in players:
                player.step(calls)
        for left in (first, second):
            while left.at is not None:
                left.step()


def _common_calls(players: Sequence[Player]) -> int | None:
    """Of how many calls the samples of both are; None if each side decides for itself.

    The first calls of a sample find the caches as the other process left them. If one sample had
    twice as many calls as the other, a conversion of 31 us took 5 to 9 % less in it. A side that is
    far faster does not wait for as many calls as the other.
    """
    if len(players) == 1:
        return None
    few, many = min(one.calls for one in players), max(one.calls for one in players)
    return many if 0 < many <= FAR * few else None
