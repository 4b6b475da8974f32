"""Does the address of the source decide whether a path is a view? And strides in bytes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from dlprof.analysis import thresholds
from dlprof.analysis.case_view import PLACES, CaseView
from dlprof.probes.base import CONTIGUOUS

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


def _looks(case: CaseView) -> Iterator[tuple[str, float | None]]:
    """``view`` or ``copy``, and the bytes that divide the source's address, of every look at it."""
    for word, evidence in case.owners:
        for begins in evidence.alignments or (None,):
            yield word, begins
    found = case.result.alignment
    for place, look in found.evidence.places if found is not None else ():
        for word in found.evidence.words_at(place) if found is not None else ():
            yield word, look.alignment_bytes


class Steady:
    """What all looks of a session say together, by path and by the memory of the source.

    Memory that is aligned better is at most more of a view: a copy of a source at 64 bytes is taken
    to be one at 16, and a view at 16 to be one at 64.
    """

    def __init__(self, cases: Iterable[CaseView]) -> None:
        self._paths: dict[Any, dict[str, list[float | None]]] = defaultdict(
            lambda: defaultdict(list)
        )
        self._sources: dict[Any, list[float]] = defaultdict(list)
        self._dependent: set[Any] = set()
        for case in cases:
            for word, begins in _looks(case):
                if word in WORDS:
                    self._paths[_path(case)][word].append(begins)
            if case.result.alignment is not None and case.result.alignment.says("dependent"):
                self._dependent.add(_path(case))
            known = (size for word, one in case.owners if word in WORDS for size in one.alignments)
            self._sources[_source(case)] += map(_capped, known)

    def holds(self, case: CaseView) -> bool:
        """Whether the path gave nothing else, at every alignment that was measured of its source.

        If alignments are not known, nothing speaks against it.
        """
        if self._differs(case):
            return False
        word = case.owner or ""
        found = self._paths.get(_path(case), {}).get(word, ())
        known = [_capped(begins) for begins in found if begins is not None]
        begins = self._sources.get(_source(case), ())
        if not known or not begins:
            return True
        return max(known) >= max(begins) if word == "copy" else min(known) <= min(begins)

    def _differs(self, case: CaseView) -> bool:
        """Whether the path was seen to be something else, or refused, elsewhere."""
        looks = self._paths.get(_path(case), {})
        other = any(looks.get(word) for word in WORDS if word != case.owner)
        return other or _path(case) in self._dependent

    def where(self, case: CaseView) -> str:
        """`` where x begins at a multiple of 64 bytes``: as far as it is known that it ``holds``;
        empty where it does.
        """
        if self.holds(case):
            return ""
        looks = self._paths.get(_path(case), {})
        mine = looks.get(case.owner or "", [])
        others = [size for word in WORDS if word != case.owner for size in looks.get(word, ())]
        copied, viewed = (mine, others) if case.owner == "copy" else (others, mine)
        if not mine or not _separate(copied, viewed):
            return " in some processes"
        limit = f"{_begins(copied, viewed, case.owner or ''):.0f} bytes"
        limit += " and no more" if case.owner == "copy" else ""
        elsewhere = "" if self._differs(case) else " (not known elsewhere)"
        return f" where x begins at a multiple of {limit}{elsewhere}"


def _path(case: CaseView) -> tuple[str, ...]:
    """The path whatever the shape; contiguous layouts differ in nothing but alignment."""
    found = case.result.case
    return (*case.pair, found.export, found.import_, found.dtype, _memory(case), found.device)


def _source(case: CaseView) -> tuple[str, ...]:
    return case.pair[0], _memory(case), case.result.case.device


def _memory(case: CaseView) -> str:
    return CONTIGUOUS[0] if is_contiguous(case) else case.result.case.layout


def _begins(copied: Sequence[float | None], viewed: Sequence[float | None], word: str) -> float:
    """The widest alignment of copies, or what is asked of views: a cache line, if that is known."""
    widest, narrowest = max(filter(None, copied), default=0), min(filter(None, viewed), default=0)
    if word == "copy":
        return widest
    return _capped(narrowest) if _capped(narrowest) > widest else narrowest


def _separate(copied: Sequence[float | None], viewed: Sequence[float | None]) -> bool:
    """Whether every copy was of memory aligned worse than that of every view."""
    if None in copied or None in viewed:
        return False
    return max(filter(None, copied), default=0) < min(filter(None, viewed), default=math.inf)


def _capped(alignment: float) -> float:
    return min(alignment, thresholds.ALIGNED_BYTES)
