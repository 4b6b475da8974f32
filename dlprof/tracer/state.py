"""What all wrappers of a process share, and when they stop."""

from __future__ import annotations

from time import perf_counter_ns as time_ns
from typing import Any

from dlprof.tracer.arrays import Kinds
from dlprof.tracer.place import Places
from dlprof.tracer.rows import Row, Rows
from dlprof.tracer.tracebacks import raise_of_handler
from dlprof.tracer.ways import Export

CALL_NS = 1800
"""What tracing a view takes at most: benchmarks/trace/overhead.py measures it."""


class Tracer:
    """What all wrappers of a process share."""

    def __init__(self, places: Places, rows: Rows, most_percent: float | None = None) -> None:
        self.places, self.rows, self.kinds = places, rows, Kinds()
        self.inside: set[int] = set()
        """Threads that are in a traced call, but for one of a leaf."""
        self.within: set[int] = set()
        """Those of them in a call that runs methods of the array that may be the user's."""
        self.capsules: dict[int, Export] = {}
        self.is_active = True
        self.calls: list[Any] = []
        """Of each function that is wrapped."""
        self._most_percent = most_percent
        self._views: dict[Row, int] = {}
        self._looked_ns = rows.started_ns

    def tick(self, row: Row, began_s: float, took_ns: float) -> None:
        """What is to be done now and then. The call that ended is counted already."""
        try:
            self.rows.tick(row, began_s, took_ns)
            if self._most_percent is not None:
                self._limit(self._most_percent)
        except Exception as error:  # noqa: BLE001 - the tracer's own is not the program's
            raise_of_handler(error)
            self.rows.trouble("what is written now and then", error)

    def _limit(self, most_percent: float) -> None:
        """Stop to count the line with most of the calls, if that costs too much.

        Only one that makes nothing but views: its time is known, and there is nothing to find.
        """
        now, rows = time_ns(), list(self.rows.rows.values())
        views = {row: row.views for row in rows}
        new = {row: count - self._views.get(row, 0) for row, count in views.items()}
        span, self._views, self._looked_ns = now - self._looked_ns, views, now
        is_too_much = sum(new.values()) * CALL_NS > span * most_percent / 100
        candidates = [row for row in rows if new[row] and row.is_plain and not row.stopped_ns]
        if is_too_much and candidates:
            self._stop(max(candidates, key=new.__getitem__), now)

    def _stop(self, row: Row, now: int) -> None:
        row.stopped_ns = now - self.rows.started_ns
        for calls in self.calls:
            calls.pass_through(row)

    def stop(self) -> None:
        """A wrapper that is still held somewhere records no more."""
        self.is_active = False
        for calls in self.calls:
            calls.ways.clear()

    def begin_again(self) -> None:
        """In the child of a fork: nothing of the parent's is counted again."""
        self.inside.clear()
        self.within.clear()
        self.capsules.clear()
        self.rows.begin()
        for calls in self.calls:
            calls.forget()

    def finish(self) -> None:
        for export in list(self.capsules.values()):
            export.flush()
        self.capsules.clear()
        self.rows.write(ended=True)
