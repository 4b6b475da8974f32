"""Does the address of the source decide whether a path is a view?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from dlprof.judge import thresholds
from dlprof.judge.case_view import PLACES, CaseView
from dlprof.probes.base import CONTIGUOUS

WORDS = ("copy", "view")


class Limits(NamedTuple):
    """The most bytes that divide the address of a copy, and the fewest of a view."""

    copied: float
    viewed: float

    @property
    def evidence(self) -> dict[str, float]:
        return {"copy_alignment_bytes": self.copied, "view_alignment_bytes": self.viewed}

    def where(self, word: str) -> str:
        """``is aligned to 64 bytes (a copy at 16)``: where it is a ``view``, or a ``copy``.

        The limit is somewhere between the two, so that both are named.
        """
        isnt = "" if word == "view" else "not "
        return f"is {isnt}aligned to {self.viewed:.0f} bytes (a copy at {self.copied:.0f})"

    @property
    def advice(self) -> str:
        """How memory is made that is a view: at the least alignment that was seen to be enough."""
        enough, few = f"{self.viewed:.0f}", f"{self.copied:.0f}"
        return f"Begin the source at a multiple of {enough} bytes ({few} are too few)."


def limits(cases: Iterable[CaseView]) -> Limits | None:
    """The alignments that separate copies from views in all processes; None if none do."""
    found: dict[str, list[float]] = {word: [] for word in WORDS}
    for case in cases:
        for word, evidence in case.kinds_seen:
            if word not in found or not evidence.alignments:
                return None
            found[word] += evidence.alignments
        if case.by_address is None or case.by_address.verdict != "dependent":
            continue
        for place, look in case.by_address.evidence.places:
            begins = look.alignment_bytes
            if look.verdict in WORDS and begins is not None:
                # The layout ``aligned`` is made at a cache line: more is an accident.
                found[look.verdict].append(_capped(begins) if place == PLACES[0] else begins)
    if not all(found.values()):
        return None
    copied, viewed = max(found["copy"]), min(found["view"])
    return Limits(copied, viewed) if copied < viewed else None


def aligned_as(view: CaseView, case: CaseView) -> bool:
    """Whether the view's source was aligned no better than the case's, as far as is known.

    What is a view of a source at 64 bytes may be a copy of one at 16, as JAX's imports are.
    """
    needed, had = view.alignments, case.alignments
    return not needed or not had or _capped(min(needed)) <= min(had)


def is_contiguous(case: CaseView) -> bool:
    return case.result.case.layout in CONTIGUOUS


def but_layout(case: CaseView) -> tuple[object, ...]:
    """The array that was converted, and how, without its layout."""
    found = case.result.case
    return (*case.pair, found.export, found.import_, found.shape, found.dtype, found.device)


def _capped(alignment: float) -> float:
    return min(alignment, thresholds.ALIGNED_BYTES)


class Steady:
    """What all looks of a session say together of each path, whatever the shape.

    Memory that is aligned better is at most more of a view: a copy of a source at 64 bytes is taken
    to be one at 16, and a view at 16 to be one at 64.
    """

    def __init__(self, cases: Iterable[CaseView]) -> None:
        self._looks: dict[Any, dict[str, set[float | None]]] = defaultdict(
            lambda: {word: set() for word in WORDS}
        )
        self._sources: dict[Any, set[float]] = defaultdict(set)
        self._dependent: set[Any] = set()
        for case in cases:
            looks = self._looks[_path(case)]
            for word, evidence in case.kinds_seen:
                if word in WORDS:
                    looks[word].update(evidence.alignments or (None,))
                    self._sources[_source(case)].update(map(_capped, evidence.alignments))
            tried = case.result.alignment
            if tried is None:
                continue
            for _, look in tried.evidence.places:
                if look.verdict in WORDS:
                    looks[look.verdict].add(look.alignment_bytes)
            if tried.says("dependent"):
                self._dependent.add(_path(case))

    def is_constant(self, case: CaseView) -> bool:
        """Whether the path gave nothing else, at every alignment that was measured of its source.

        If alignments are not known, nothing speaks against it.
        """
        looks, begins = self._looks[_path(case)], self._sources[_source(case)]
        known = [_capped(size) for size in looks.get(case.kind or "", ()) if size is not None]
        if self._differs(case) or not known or not begins:
            return not self._differs(case)
        return max(known) >= max(begins) if case.kind == "copy" else min(known) <= min(begins)

    def _differs(self, case: CaseView) -> bool:
        """Whether the path was seen to be something else, or refused, elsewhere."""
        others = self._looks[_path(case)].items()
        return _path(case) in self._dependent or any(
            found for word, found in others if word != case.kind
        )


def _source(case: CaseView) -> tuple[str, ...]:
    return case.pair[0], case.result.case.device


def _path(case: CaseView) -> tuple[str, ...]:
    """The path whatever the shape; contiguous layouts differ in nothing but alignment."""
    found = case.result.case
    layout = CONTIGUOUS[0] if is_contiguous(case) else found.layout
    return (*case.pair, found.export, found.import_, found.dtype, layout, found.device)
