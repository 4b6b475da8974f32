"""Is it a view, or a copy, wherever the source begins? Only what is may be advised as one."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dlprof.analysis.known import PLACES, alignments, mapping, number, seen
from dlprof.probes.base import CONTIGUOUS
from dlprof.rules import thresholds
from dlprof.rules.alignment import WORDS
from dlprof.session.model import Result

Looks = tuple[tuple[str, float | None], ...]
"""``view`` or ``copy``, and the bytes that divide the source's address; None if not known."""


def owners_of(result: Result) -> Looks:
    """The looks of *ownership*, at the array that was measured."""
    return _known(
        (word, size)
        for word, evidence in seen(result.ownership)
        for size in alignments(evidence) or (None,)
    )


def looks_of(result: Result) -> Looks:
    """Every look at the memory of a result: those, and the ones of *alignment* elsewhere."""
    return owners_of(result) + _known(_elsewhere(result))


def _elsewhere(result: Result) -> Iterator[tuple[str, object]]:
    """What *alignment* saw at each place; several verdicts where it was not the same each time."""
    evidence = result.alignment.evidence if result.alignment is not None else {}
    for place in PLACES:
        one = mapping(evidence.get(place))
        words = mapping(evidence.get("looks")).get(place)
        for word in words if isinstance(words, list) else [one.get("verdict")]:
            yield str(word), one.get("alignment_bytes")


def _known(looks: Iterable[tuple[str, object]]) -> Looks:
    return tuple((word, number(bytes_)) for word, bytes_ in looks if word in WORDS)


def depends(result: Result) -> bool:
    """Whether *alignment* saw one verdict at one place, and another or a refusal at the other."""
    return result.alignment is not None and result.alignment.verdict == "dependent"


def memory_of(layout: str) -> str:
    """What a layout's alignment goes with: contiguous layouts differ in nothing else."""
    return CONTIGUOUS[0] if layout in CONTIGUOUS else layout


@dataclass(frozen=True)
class Look:
    """A case's looks: ``way`` is its path, ``source`` whose memory it is, whatever the shape."""

    way: Hashable
    source: Hashable
    looks: Looks
    measured: Looks
    """Of them those at the array that was measured."""
    depends: bool = False
    """Whether *alignment* found that it depends on where the source begins."""


class Steady:
    """What all looks of a session say together.

    Memory that is aligned better is at most more of a view: a copy of a source at 64 bytes is taken
    to be one at 16, and a view at 16 to be one at 64.
    """

    def __init__(self, looks: Iterable[Look]) -> None:
        self._ways: dict[Any, dict[str, list[float | None]]] = defaultdict(
            lambda: defaultdict(list)
        )
        self._sources: dict[Any, list[float]] = defaultdict(list)
        self._dependent: set[Hashable] = set()
        for one in looks:
            for word, bytes_ in one.looks:
                self._ways[one.way][word].append(bytes_)
            self._dependent.update([one.way] if one.depends else [])
            self._sources[one.source] += [_capped(b) for _, b in one.measured if b is not None]

    def holds(self, word: str, way: Hashable, source: Hashable) -> bool:
        """Whether ``way`` gave nothing but a ``word``, at every alignment that was measured of
        ``source``; where alignments are not known, nothing speaks against it.
        """
        if self.differs(word, way):
            return False
        found = [_capped(b) for b in self._ways.get(way, {}).get(word, ()) if b is not None]
        begins = self._sources.get(source, ())
        if not found or not begins:
            return True
        return max(found) >= max(begins) if word == "copy" else min(found) <= min(begins)

    def differs(self, word: str, way: Hashable) -> bool:
        """Whether ``way`` was seen to be something else than a ``word``, or refused, elsewhere."""
        ways = self._ways.get(way, {})
        return way in self._dependent or any(ways.get(one) for one in WORDS if one != word)

    def where(self, word: str, way: Hashable, source: Hashable) -> str:
        """`` where x begins at a multiple of 64 bytes``: as far as it is known that it ``holds``;
        empty where it does.
        """
        if self.holds(word, way, source):
            return ""
        ways = self._ways.get(way, {})
        mine = ways.get(word, [])
        others = [b for other in WORDS if other != word for b in ways.get(other, ())]
        copied, viewed = (mine, others) if word == "copy" else (others, mine)
        if not mine or not _told_apart(copied, viewed):
            return " in some processes"
        limit = f"{_begins(copied, viewed, word):.0f} bytes"
        limit += " and no more" if word == "copy" else ""
        elsewhere = "" if self.differs(word, way) else " (not known elsewhere)"
        return f" where x begins at a multiple of {limit}{elsewhere}"


def _begins(copied: Sequence[float | None], viewed: Sequence[float | None], word: str) -> float:
    """The widest alignment of copies, or what is asked of views: a cache line, if that is known."""
    widest, narrowest = max(filter(None, copied), default=0), min(filter(None, viewed), default=0)
    if word == "copy":
        return widest
    return _capped(narrowest) if _capped(narrowest) > widest else narrowest


def _told_apart(copied: Sequence[float | None], viewed: Sequence[float | None]) -> bool:
    """Whether every copy was of memory aligned worse than that of every view."""
    if None in copied or None in viewed:
        return False
    return max(filter(None, copied), default=0) < min(filter(None, viewed), default=math.inf)


def _capped(alignment: float) -> float:
    return min(alignment, thresholds.ALIGNED_BYTES)
