"""Pairs of frameworks from text: ``tf->cupy``, ``tf<->cupy``, ``torch->*``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from dlprof.errors import UsageError
from dlprof.runner.catalog import Catalog

WILD = frozenset("*?[")


@dataclass(frozen=True)
class PairPattern:
    """``producer`` and ``consumer`` are names, aliases or globs; ``both`` is either direction."""

    producer: str
    consumer: str
    both: bool = False

    def __str__(self) -> str:
        return f"{self.producer}{'<->' if self.both else '->'}{self.consumer}"

    def matches(self, pair: tuple[str, str]) -> bool:
        """Whether a pair of the catalog's names is one of these."""
        sides = (self.producer, self.consumer)
        directions = (sides, sides[::-1]) if self.both else (sides,)
        return any(
            fnmatchcase(pair[0], producer) and fnmatchcase(pair[1], consumer)
            for producer, consumer in directions
        )


def parse(text: str) -> PairPattern:
    """Read one pair. Raises :class:`UsageError`."""
    for arrow, both in (("<->", True), ("->", False)):
        left, found, right = (word.strip() for word in text.partition(arrow))
        if found and left and right and not any(mark in left + right for mark in "<> "):
            return PairPattern(left, right, both)
    raise UsageError(f"pair {text!r} is not like tf->cupy, tf<->cupy or torch->*")


def named(pattern: PairPattern, catalog: Catalog) -> PairPattern:
    """The same in the catalog's names. Raises :class:`UsageError` for an unknown framework."""
    return PairPattern(
        _named(pattern.producer, catalog), _named(pattern.consumer, catalog), pattern.both
    )


def pairs(
    patterns: Sequence[PairPattern], catalog: Catalog, able: Iterable[str]
) -> tuple[tuple[str, str], ...]:
    """The pairs that these mean, each once, in their order.

    A glob means the frameworks of ``able``; a name means itself, installed or not. Raises
    :class:`UsageError` for an unknown framework.
    """
    found: dict[tuple[str, str], None] = {}
    usable = list(dict.fromkeys(able))
    for pattern in patterns:
        whole = named(pattern, catalog)
        producers = list(_those(whole.producer, usable))
        consumers = list(_those(whole.consumer, usable))
        found |= {(one, other): None for one in producers for other in consumers}
        if pattern.both:
            found |= {(other, one): None for one in producers for other in consumers}
    return tuple(found)


def _named(word: str, catalog: Catalog) -> str:
    return word if WILD & set(word) else catalog.named(word).name


def _those(word: str, able: Sequence[str]) -> Iterator[str]:
    if not WILD & set(word):
        yield word
        return
    yield from (name for name in able if fnmatchcase(name, word))
