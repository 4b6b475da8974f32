"""Two rounds in turns: each side goes on until its next stop, and only one of them at a time."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field

from dlprof.turns import SERIES, Round, Stop

Position = tuple[int, int]


@dataclass
class Player:
    """A side of a round. ``ranks`` are the places of its cases in the order common to both."""

    round: Round
    ranks: Mapping[int, int]
    at: Position | None = field(default=None, init=False)
    """None before it begins and when it has ended."""

    def step(self) -> None:
        """On to its next stop, or its end."""
        stop = next(self.round, None)
        self.at = None if stop is None else self._position(stop)

    def _position(self, stop: Stop) -> Position:
        series = SERIES.index(stop.series) + 1 if stop.series in SERIES else 0
        return self.ranks[stop.case], series


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
            for one in [one for one in (first, second) if one.at == behind]:
                one.step()
        for left in (first, second):
            while left.at is not None:
                left.step()
