"""The time of each of the user's lines: a thread looks where the others are.

This covers what a line does outside traced calls: ``torch.stack``, ``array.astype``.
"""

from __future__ import annotations

import _thread
import signal
import sys
import time
from contextlib import suppress
from types import FrameType

from dlprof.tracer.place import Places

INTERVAL_S = 0.01
SHARE = 100
"""Looking takes at most this part of a program's time."""
_clock, _cost, _sleep = time.perf_counter, time.thread_time, time.sleep
_start, _own = _thread.start_new_thread, _thread.get_ident
"""Bound here: a program may replace those of the modules."""


class Lines:
    """The time of each line of a process. Threads on the same line at once count once."""

    def __init__(self, places: Places, times_s: dict[tuple[str, int], float]) -> None:
        self._places = places
        self.times_s = times_s
        """By file and line, without functions of the user's that the line calls."""
        self._is_active = False

    def start(self) -> None:
        if not self._is_active:
            self._is_active = True
            self._start()

    def begin_again(self) -> None:
        """Look in the child of a fork, which has no other thread."""
        if self._is_active:
            self._start()

    def stop(self) -> None:
        self._is_active = False

    def _start(self) -> None:
        with suppress(RuntimeError):  # no more threads are allowed
            _start(self._run, ())

    def _run(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        pause_s, last_s = INTERVAL_S, _clock()
        while self._is_active:
            _sleep(pause_s)
            began_s, cost_s = _clock(), _cost()
            for place in {self._place(frame) for frame in self._frames()}:
                if place is not None:
                    self.times_s[place] = self.times_s.get(place, 0.0) + began_s - last_s
            last_s = began_s
            pause_s = max(INTERVAL_S, SHARE * (_cost() - cost_s))

    @staticmethod
    def _frames() -> list[FrameType]:
        found = sys._current_frames()  # noqa: SLF001 - CPython's own way
        found.pop(_own(), None)
        return [*found.values()]

    def _place(self, frame: FrameType) -> tuple[str, int] | None:
        line = self._places.line_frame(frame)
        return None if line is None else (line.f_code.co_filename, line.f_lineno or 0)
