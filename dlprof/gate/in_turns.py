"""Two rounds in turns: each side goes on until its next stop, and only one of them at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from dlprof.plan.turns import SERIES, Round, Stop

Position = tuple[int, int]

FAR = 4
"""Processes of equal code choose numbers of calls that are a factor of 2 apart, or of 4 where
samples of few calls last longer."""


@dataclass
class Player:
    """A side of a round. ``ranks`` are the places of its cases in the order common to both."""

    round: Round
    ranks: Mapping[int, int]
    at: Position | None = field(default=None, init=False)
    """None before it begins and when it has ended."""
    calls: int = field(default=0, init=False)
    """Of the sample before which it stands."""

    def step(self, calls: int | None = None) -> None:
        """On to its next stop, or its end; with a sample of so many calls."""
        try:
            stop = self.round.send(calls)
        except StopIteration:
            self.at = None
        else:
            self.at, self.calls = self._position(stop), stop.calls

    def _position(self, stop: Stop) -> Position:
        series = SERIES.index(stop.series) + 1 if stop.series in SERIES else 0
        return self.ranks[stop.case], series


def _common(players: Sequence[Player]) -> int | None:
    """Of how many calls samples of both are to be; None where that is for each to say.

    The first calls of a sample find the caches as the other process left them. Where one sample had
    twice as many calls as the other, a conversion of 31 us took 5 to 9 % less in it. Who is far
    slower than the other is not made to wait for as many calls.
    """
    if len(players) == 1:
        return None
    few, many = min(one.calls for one in players), max(one.calls for one in players)
    return many if 0 < many <= FAR * few else None


def alternate(first: Player, second: Player) -> None:
    """Run both rounds to their ends; both are closed whatever happens.

    While both stand before a sample of the same series of the same case, each takes one, ``first``
    before ``second``. Elsewhere the one goes on that is behind, until the other is reached.

    Strictly A B A B: in A B B A every other sample would find the caches as its own process left
    them, and copies of 4 MiB were 1.8 times as long in one pair as in the next.
    """
    with closing(first.round), closing(second.round):
        first.step()
        second.step()
        while first.at is not None and second.at is not None:
            behind = min(first.at, second.at)
            ones = [one for one in (first, second) if one.at == behind]
            calls = _common(ones)
            for one in ones:
                one.step(calls)
        for left in (first, second):
            while left.at is not None:
                left.step()
