"""Does the address of the source decide whether a path is a view? And strides in bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from operator import mul
from typing import NamedTuple

from dlprof.analysis.known import PLACES, Known, alignments, mapping, number
from dlprof.probes.base import CONTIGUOUS, DTYPES
from dlprof.rules import thresholds

WORDS = ("copy", "view")


class Parted(NamedTuple):
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
        known = "" if self.viewed == 2 * self.copied else f" {self._known}"
        return (
            f"Allocate the source so that it begins at a multiple of {size}: {size} more than it"
            f" needs, and of them the part from the first such address on.{known}"
        )

    @property
    def _known(self) -> str:
        enough = f"{self.viewed:.0f} is known to be enough and {self.copied:.0f} is known not to be"
        return f"{enough}; nothing between was seen."


def of_all(found: Sequence[Parted]) -> Parted | None:
    """What is enough for each of several: the widest that is known to be needed by one of them."""
    if not found:
        return None
    return Parted(max(one.copied for one in found), max(one.viewed for one in found))


def parted(cases: Iterable[Known]) -> Parted | None:
    """What tells copies from views in all processes; None if nothing does."""
    found: dict[str, list[float]] = {word: [] for word in WORDS}
    for case in cases:
        if case.tried is not None and case.tried.verdict == "inconstant":
            return None  # it gave both at one place
        for word, evidence in case.owners:
            sizes = alignments(evidence)
            if word not in found or not sizes:
                return None
            found[word] += sizes
        for word, alignment in _tried(case):
            found[word].append(alignment)
    if not all(found.values()):
        return None
    copied, viewed = max(found["copy"]), min(found["view"])
    return Parted(copied, viewed) if copied < viewed else None


def _tried(case: Known) -> Iterator[tuple[str, float]]:
    """What the instrument *alignment* saw of the same path.

    What it makes for the layout ``aligned`` is made at a multiple of a cache line: that this
    array begins at a multiple of more is an accident, and nothing that the path was seen to need.
    """
    seen = case.tried
    for place in PLACES if seen is not None and seen.verdict == "dependent" else ():
        one = mapping(seen.evidence.get(place)) if seen is not None else {}
        alignment = number(one.get("alignment_bytes"))
        if one.get("verdict") in WORDS and alignment is not None:
            asked = min(alignment, thresholds.ALIGNED_BYTES) if place == PLACES[0] else alignment
            yield str(one["verdict"]), asked


def aligned_as(view: Known, case: Known) -> bool:
    """Whether the view's source was aligned no better than the case's, as far as is known.

    What is a view of a source at 64 bytes may be a copy of one at 16, as JAX's imports are.
    """
    needed, had = view.alignments, case.alignments
    if not needed or not had:
        return True
    return min(*needed, thresholds.ALIGNED_BYTES) <= min(had)


def is_contiguous(case: Known) -> bool:
    return case.result.case.layout in CONTIGUOUS


def strides_bytes(case: Known) -> tuple[int, ...] | None:
    """Strides of the source in bytes, by its layout; None where its dtype is not known."""
    found = case.result.case
    item = DTYPES.get(found.dtype)
    if item is None or not found.shape:
        return None
    if found.layout == "F":
        return _contiguous(found.shape, item)
    if found.layout == "strided":
        wide = (*found.shape[:-1], 2 * found.shape[-1])
        return (*_contiguous(wide[::-1], item)[::-1][:-1], 2 * item)
    strides = _contiguous(found.shape[::-1], item)[::-1]
    first = {"reversed": -strides[0], "broadcast": 0}.get(found.layout, strides[0])
    return (first, *strides[1:])


def _contiguous(shape: Sequence[int], item: int) -> tuple[int, ...]:
    """Strides of which each is the size of all before."""
    return tuple(accumulate((item, *shape[:-1]), mul))


def but_layout(case: Known) -> tuple[object, ...]:
    """The array that was converted, and how, without its layout."""
    found = case.result.case
    return (*case.pair, found.export, found.import_, found.shape, found.dtype, found.device)
