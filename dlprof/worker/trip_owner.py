"""View or copy in trips: does each way of a trip share its source's memory, or make a copy?

Proof: source and result of a way are both alive when they are looked at, so that one address is one
memory, and two addresses in which the one array does not reach into the other are two. Whether
the same path copies may change from trip to trip: what goes again may begin elsewhere in memory
than the first array did. It cannot tell for an array without elements, nor where a framework
does not say where its array begins, or where two arrays overlap.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dlprof.probes.base import WHOLE_LAYOUTS, ArraySpec, Probe
from dlprof.probes.capsule import alignment
from dlprof.worker.subject import Subject

MOST_ALIGNMENTS = 8


@dataclass
class Seen:
    """How often one way was a view or a copy, and at multiples of which bytes its sources began."""

    views: int = 0
    copies: int = 0
    unknown: int = 0
    view_alignments: set[int] = field(default_factory=set)
    copy_alignments: set[int] = field(default_factory=set)

    def add(self, kind: str, address: int | None) -> None:
        if kind == "unknown" or address is None:
            self.unknown += 1
        elif kind == "view":
            self.views += 1
            self.view_alignments.add(alignment(address))
        else:
            self.copies += 1
            self.copy_alignments.add(alignment(address))

    def as_dict(self) -> dict[str, Any]:
        return {
            "views": self.views,
            "copies": self.copies,
            "unknown": self.unknown,
            "view_alignments": sorted(self.view_alignments)[:MOST_ALIGNMENTS],
            "copy_alignments": sorted(self.copy_alignments)[:MOST_ALIGNMENTS],
        }


class Owners:
    """What was seen of both ways of trips that ``there`` begins and ``back`` ends."""

    def __init__(self, there: Subject, back: Subject) -> None:
        self._there, self._back = there, back
        self.there, self.back = Seen(), Seen()

    def look(self, x: Any, y: Any, z: Any) -> None:
        """One trip, whose three arrays are alive and ready."""
        there, back = self._there, self._back
        begin = _Memory(there.producer, x, there.spec)
        middle = _Memory(there.consumer, y, back.spec)
        end = _Memory(back.consumer, z, back.spec)
        self.there.add(kind_of(begin, middle), begin.address)
        self.back.add(kind_of(middle, end), middle.address)

    def as_dict(self) -> dict[str, Any]:
        return {"there": self.there.as_dict(), "back": self.back.as_dict()}


class _Memory:
    """Where an array is."""

    def __init__(self, probe: Probe, array: Any, spec: ArraySpec) -> None:
        self.address, self.device = _place(probe, array) if spec.elements else (None, "")
        # The widest layout, every second element, spans twice the array's bytes.
        self.reach = spec.size_bytes * (1 if spec.layout in WHOLE_LAYOUTS else 2)


def _place(probe: Probe, array: Any) -> tuple[int | None, str]:
    try:
        return probe.pointer(array), probe.device(array)
    except Exception:  # noqa: BLE001 - any framework, any error: it costs the look, not the times
        return None, ""


def kind_of(source: _Memory, result: _Memory) -> str:
    """``view``, ``copy`` or ``unknown``."""
    if not source.address or not result.address:
        return "unknown"
    if source.device != result.device:
        return "copy"
    if source.address == result.address:
        return "view"
    apart = abs(source.address - result.address)
    return "unknown" if apart < max(source.reach, result.reach) else "copy"
