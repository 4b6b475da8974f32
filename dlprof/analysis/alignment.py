"""Does the address of the source decide whether a path is a view? And strides in bytes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dlprof.analysis import thresholds
from dlprof.analysis.case_view import PLACES, CaseView, seen
from dlprof.probes.base import CONTIGUOUS
from dlprof.session.model import Result

WORDS = ("copy", "view")


class Limits(NamedTuple):
    """Bytes that divide the addresses: at most so many of all copies, at least of all views."""

    copied: float
    viewed: float

    @property
    def evidence(self) -> dict[str, float]:
        return {"copy_alignment_bytes": self.copied, "view_alignment_bytes": self.viewed}

    def where(self, word: str) -> str:
        """``at a multiple of 64 bytes``: where it is a ``view``, or a ``copy``.

        The limit is somewhere between the two, so that both are named.
        """
        if word == "view":
            return f"at a multiple of {self.viewed:.0f} bytes (a copy at {self.copied:.0f})"
        return f"at a multiple of {self.copied:.0f} bytes and no more"

    @property
    def advice(self) -> str:
        """How memory is made that is a view: at the least alignment that was seen to be enough."""
        size = f"{self.viewed:.0f} bytes"
        known = (
            ""
            if self.viewed == 2 * self.copied
            else f" {self.copied:.0f} bytes are too few. Nothing between was seen."
        )
        return (
            f"Allocate the source so that it begins at a multiple of {size}: allocate {size} more,"
            f" and begin at the first such address.{known}"
        )


def of_all(found: Sequence[Limits]) -> Limits | None:
    """What is enough for each of several: the widest that is known to be needed by one of them."""
    if not found:
        return None
    return Limits(max(one.copied for one in found), max(one.viewed for one in found))


def limits(cases: Iterable[CaseView]) -> Limits | None:
    """The alignments that separate copies from views in all processes; None if none do."""
    found: dict[str, list[float]] = {word: [] for word in WORDS}
    for case in cases:
        if case.tried is not None and case.tried.verdict == "inconstant":
            return None  # it gave both at one place
        for word, evidence in case.owners:
            sizes = evidence.alignments
            if word not in found or not sizes:
                return None
            found[word] += sizes
        for word, alignment in _tried(case):
            found[word].append(alignment)
    if not all(found.values()):
        return None
    copied, viewed = max(found["copy"]), min(found["view"])
    return Limits(copied, viewed) if copied < viewed else None


def _tried(case: CaseView) -> Iterator[tuple[str, float]]:
    """What the instrument *alignment* saw of the same path.

    What it makes for the layout ``aligned`` is made at a multiple of a cache line: that this
    array begins at a multiple of more is an accident, and nothing that the path was seen to need.
    """
    if case.tried is None or not case.tried.says("dependent"):
        return
    for place, look in case.tried.evidence.places:
        begins = look.alignment_bytes
        if look.verdict in WORDS and begins is not None:
            asked = min(begins, thresholds.ALIGNED_BYTES) if place == PLACES[0] else begins
            yield look.verdict, asked


def aligned_as(view: CaseView, case: CaseView) -> bool:
    """Whether the view's source was aligned no better than the case's, as far as is known.

    What is a view of a source at 64 bytes may be a copy of one at 16, as JAX's imports are.
    """
    needed, had = view.alignments, case.alignments
    if not needed or not had:
        return True
    return min(*needed, thresholds.ALIGNED_BYTES) <= min(had)


def is_contiguous(case: CaseView) -> bool:
    return case.result.case.layout in CONTIGUOUS


def but_layout(case: CaseView) -> tuple[object, ...]:
    """The array that was converted, and how, without its layout."""
    found = case.result.case
    return (*case.pair, found.export, found.import_, found.shape, found.dtype, found.device)


Looks = tuple[tuple[str, float | None], ...]
"""``view`` or ``copy``, and the bytes that divide the source's address; None if not known."""


def owners_of(result: Result) -> Looks:
    """The looks of *ownership*, at the array that was measured."""
    return _known(
        (word, size)
        for word, evidence in seen(result.ownership)
        for size in evidence.alignments or (None,)
    )


def looks_of(result: Result) -> Looks:
    """Every look at the memory of a result: those, and the ones of *alignment* elsewhere."""
    return owners_of(result) + _known(_elsewhere(result))


def _elsewhere(result: Result) -> Iterator[tuple[str, float | None]]:
    """What *alignment* saw at each place; several verdicts where it was not the same each time."""
    if result.alignment is None:
        return
    evidence = result.alignment.evidence
    for place, look in evidence.places:
        for word in evidence.words_at(place):
            yield word, look.alignment_bytes


def _known(looks: Iterable[tuple[str, float | None]]) -> Looks:
    return tuple((word, begins) for word, begins in looks if word in WORDS)


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
