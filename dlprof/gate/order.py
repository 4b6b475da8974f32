"""In which order both sides of a round measure, so that they meet before the same case."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence

from dlprof.compare.match import Key
from dlprof.plan.groups import shuffle
from dlprof.plan.pairing import Case
from dlprof.plan.settings import OWN_PROCESS_BYTES

Pair = tuple[int | None, int | None]
"""The numbers of a case on both sides; None where one does not measure it."""


def paired(
    base: Mapping[Key, int], head: Mapping[Key, int], names: Mapping[Key, Key]
) -> list[Pair]:
    """The numbers of one side and the other; ``names`` are the keys of BASE's cases on HEAD."""
    bases = {names.get(name, name): number for name, number in base.items()}
    return [(bases.get(name), head.get(name)) for name in dict.fromkeys([*bases, *head])]


def in_order(pairs: Sequence[Pair], large: Collection[Pair], seed: int, round_: int) -> list[Pair]:
    """At random, and in each round another one first. Those that are ``large`` come last: they have
    processes of their own, which are started after the one that all others share.
    """
    chance = random.Random(f"{seed}:{round_}")  # noqa: S311 - not a secret
    kinds = [[pair for pair in pairs if (pair in large) is is_large] for is_large in (False, True)]
    return [pair for kind in kinds if kind for pair in shuffle(kind, chance, seed, round_)]


def large_of(pairs: Sequence[Pair], base: Sequence[Case], head: Sequence[Case]) -> set[Pair]:
    """Those with a process of their own."""
    return {pair for pair in pairs if _size(pair, base, head) >= OWN_PROCESS_BYTES}


def _size(pair: Pair, base: Sequence[Case], head: Sequence[Case]) -> int:
    both = ((pair[0], base), (pair[1], head))
    return max(cases[number].size_bytes for number, cases in both if number is not None)
