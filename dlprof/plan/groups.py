"""Which cases share a worker of a round, and in which order they are measured."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from dlprof.plan.pairing import Case
from dlprof.plan.settings import Settings, process_of

Group = list[tuple[int, Case]]
Item = TypeVar("Item")


def grouped(entries: Iterable[tuple[int, Case]], settings: Settings) -> list[Group]:
    """Those of one process each, in the order in which they come."""
    groups: dict[Any, Group] = {}
    for index, case in entries:
        groups.setdefault(process_of(index, case, settings), []).append((index, case))
    return list(groups.values())


def shuffled(groups: list[Group], seed: int, round_: int) -> Iterator[Group]:
    """The groups, and the cases of each, in the random order of a round."""
    chance = random.Random(f"{seed}:{round_}")  # noqa: S311 - not a secret
    chance.shuffle(groups)
    for group in groups:
        yield shuffle(group, chance, seed, round_)


def shuffle(items: list[Item], chance: random.Random, seed: int, round_: int) -> list[Item]:
    """In random order; but the first, whose first call is measured, is another in each round."""
    first = _first_of(items, seed, round_)
    chance.shuffle(items)
    items.sort(key=lambda item: item is not first)
    return items


def _first_of(items: Sequence[Item], seed: int, round_: int) -> Item:
    by_turns = list(items)
    random.Random(f"{seed}:first").shuffle(by_turns)  # noqa: S311 - not a secret
    return by_turns[round_ % len(by_turns)]
