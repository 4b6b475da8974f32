"""What a report shows of one result; small, so that ten thousand fit into memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dlprof.analysis.alignment import Look
from dlprof.analysis.case_view import says_no_copy
from dlprof.analysis.quantity import plain_time
from dlprof.errors import Unmeasured
from dlprof.probes.base import Protocol
from dlprof.session.model import (
    Placement,
    TimeMeasure,
)
from dlprof.session.step_record import Step

A_VIEW, A_COPY, REFUSED = "a view", "a copy", "refused"


@dataclass(frozen=True)
class Row:
    """One line of a table. ``cost_ns`` sorts it: infinite for what was not measured."""

    pair: str
    code: str
    shape: str
    dtype: str
    layout: str
    device: str
    size_bytes: int
    ready: TimeMeasure | None
    device_ns: float | None
    device_resolution_ns: float
    gb_per_s: float | None
    share_of_memcpy: float | None
    owner: str
    changed: tuple[str, ...]
    promise: str | None
    status: str
    reason: str | None
    notes: tuple[str, ...]
    setup: str = ""
    frameworks: str = ""
    """``pair`` without the environment."""
    environment: str = ""
    """The name of the interpreter, where there are several; ``pair`` then has it too."""
    loaded: str = ""
    """Whether the call waits behind queued work, and how long; empty where nothing was queued."""
    process_medians_ns: tuple[float, ...] = ()
    suspect: bool = False
    """Whether a finding says that the path is wrong or unsafe."""
    faults: tuple[str, ...] = ()
    """The rules that say so; with a question mark one that says it of another copy of the pair."""
    torn_where: str = ""
    """Of which sources copies of it were seen torn; empty where of any, or none was."""
    unwritten: bool = False
    """Whether nobody looked whether the copy still reads its source."""
    cautions: tuple[str, ...] = ()
    """Rules that say under which condition it is safe."""
    unseen: bool = False
    """Whether nothing of the result could be looked at: neither its memory nor its values."""
    unlooked: str = ""
    """What keeps the path from being called safe: that something was not looked at."""
    depends: str = ""
    """How view or copy depends on where the source begins, in words; empty where it does not."""
    alignments: tuple[int, ...] = ()
    """At multiples of which bytes the sources began that were looked at."""
    page_faults: float | None = None
    """Per call, median of the processes."""
    host_ns: float | None = None
    first_ns: float | None = None
    """The first call, where it was the first conversion of its process."""
    placement: Placement | None = None
    path: str = ""
    form: str = ""
    """The code without the shape that may stand in it: the same for every array of a dtype."""
    protocol: str = ""
    create_ns: float | None = None
    peak_arrays: float | None = None
    """Peak of memory beyond the source, in arrays of its size."""
    step: Step | None = None
    """Of a step of inference, without samples."""
    disturbed: bool = False
    """Whether half of the time or more is that of other programs, in half of the samples."""
    scattered: bool = False
    """Whether it is the time of one process whose own samples disagree."""
    kept_ns: tuple[float, float] | None = None
    """First and second conversion of a new array, where the framework keeps what it made."""
    kept_bytes: float | None = None
    """The size of those arrays, where it is not that of the case."""
    look: Look | None = None
    """At which addresses it was seen to be a view, and at which a copy."""
    unchecked: str = ""
    """Why nobody knows whether the values survived; empty where that is known."""

    @property
    def cost_ns(self) -> float:
        return self.ready.median_ns if self.ready is not None else math.inf

    @property
    def is_known(self) -> bool:
        """Whether the time is the path's own, as far as one can see."""
        return not (self.disturbed or self.scattered)

    @property
    def is_step(self) -> bool:
        """Whether it is a step of inference, and no conversion."""
        return self.protocol == Protocol.STEP

    @property
    def strategy(self) -> str:
        """What a step does with its output's memory."""
        return self.path.partition("->")[2]

    @property
    def why_lost(self) -> str | None:
        """The reason of the result; where it has none, the note that tells of its ready time."""
        if self.reason is not None or not self.notes:
            return self.reason
        return next((note for note in self.notes if note.startswith("ready_time: ")), self.notes[0])

    @property
    def forbids_copy(self) -> bool:
        """Whether documentation or code ask for no copy: it is nothing to offer as one."""
        return self.promise == "view" or says_no_copy(self.code)

    @property
    def ends_whole(self) -> bool:
        """Whether the consumer has nothing to wait for: its calls return when all is done."""
        return self.ready is not None and self.ready.same_as == "host_time"

    @property
    def why_not(self) -> str | None:
        """Why there is no ready time, with the host time where that is known."""
        lost = self.why_lost
        if self.reason is not None or self.host_ns is None or lost is None:
            return lost
        return f"host time {plain_time(self.host_ns)}; {lost}"

    @property
    def safe(self) -> bool:
        """Measured to the end, seen to be right, as documented, and no finding calls it unsafe."""
        whole = self.status == "ok" and self.ready is not None and not self.changed
        if self.suspect or self.unseen:
            return False
        return whole and not self.promise_broken

    @property
    def promise_broken(self) -> bool:
        """Documented to copy and a view, if only of some memory; or as a view and a copy."""
        if self.promise == "copy" and self.is_view_if_aligned:
            return True
        return {self.promise, self.owner} == {"copy", "view"}

    @property
    def is_view_if_aligned(self) -> bool:
        """Whether it is a view of aligned memory, and none of other memory."""
        return self.depends.startswith(A_VIEW)

    @property
    def copies_elsewhere(self) -> bool:
        """Whether it was a copy where the source begins elsewhere, whatever it is here."""
        return A_COPY in self.depends

    @property
    def refuses_elsewhere(self) -> bool:
        """Whether it raised where the source begins elsewhere, whatever it is here."""
        return self.depends.startswith(A_VIEW) and REFUSED in self.depends

    @property
    def array(self) -> tuple[str, str, str, str, str]:
        """What was converted: rows of the same array can be compared."""
        return self.pair, self.shape, self.dtype, self.layout, self.device


def diagnosed(rows: Sequence[Row]) -> list[Row]:
    """The rows, told what was looked at once for each path, at its first shape.

    That is how view or copy depends on where the source begins, and what makes a path safe.
    """
    written = {way(row) for row in rows if not row.unwritten}
    depends = {way(row): row.depends for row in reversed(rows) if row.depends}
    looked = {way(row) for row in rows if row.status == "ok" and not row.unlooked}
    return [
        replace(
            row,
            depends=row.depends or depends.get(way(row), ""),
            unlooked="" if way(row) in looked else row.unlooked,
            unwritten=way(row) not in written,
        )
        if way(row) in depends or way(row) in looked or way(row) in written
        else row
        for row in rows
    ]


def trusted(rows: Iterable[Row]) -> list[Row]:
    """The safe ones whose values were checked; where there are none, all safe ones."""
    safe = [row for row in rows if row.safe]
    return [row for row in safe if not row.unchecked] or safe


def way(row: Row) -> tuple[str, ...]:
    """The path, dtype, layout and device: the same for every shape."""
    return row.pair, row.form or row.code, row.dtype, row.layout, row.device


def check_measured(rows: Sequence[Row]) -> None:
    """Raise :class:`Unmeasured` where no case has a time."""
    if not any(row.ready is not None or row.host_ns is not None for row in rows):
        raise Unmeasured(f"nothing could be measured: {_first_reason(rows)}")


def _first_reason(rows: Sequence[Row]) -> str:
    reasons = (row.reason or next(iter(row.notes), None) for row in rows)
    reason = next((reason for reason in reasons if reason), "no reason was given")
    return reason.strip().splitlines()[0]
