"""The user's own lines: the nearest frame outside of frameworks, and the time of each line."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import sysconfig
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from types import CodeType, FrameType
from typing import Any

from dlprof.probes.builtin import ALL

PACKAGES = ("site-packages", "dist-packages")
REWRITTEN = "__autograph_generated_file"
"""Begins the names of files that TensorFlow writes for a function, and removes again."""
FRAMEWORKS = frozenset(probe.module for probe in ALL)
INTERVAL_S = 0.01
SHARE = 100
"""Looking takes at most this part of a program's time."""
_clock, _cost, _sleep = time.perf_counter, time.thread_time, time.sleep
_start, _own = _thread.start_new_thread, _thread.get_ident
"""Bound here: a program may replace those of the modules."""


class Places:
    """Tells the user's own files from others; ``include`` names packages that count as own."""

    def __init__(self, include: tuple[str, ...] = ()) -> None:
        self._include = include
        paths = sysconfig.get_paths()
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - few imports
        self._foreign_folders = [
            *(os.path.join(paths[name], "") for name in ("stdlib", "platstdlib")),  # noqa: PTH118
            os.path.join(package, ""),  # noqa: PTH118
        ]
        self._answers: dict[str, bool] = {}

    def is_own(self, frame: FrameType) -> bool:
        """Whether the frame runs the user's code."""
        name = frame.f_code.co_filename
        if name.startswith("<"):  # made from text: the module decides
            return self._is_own_text(frame)
        found = self._answers.get(name)
        if found is None:
            is_own = self._is_own_file(name) and not self._is_of_framework(frame)
            found = self._answers[name] = is_own
        return found

    def _is_of_framework(self, frame: FrameType) -> bool:
        """Whether the code is of a framework that was built in its source folder."""
        root = str(frame.f_globals.get("__name__")).partition(".")[0]
        file = getattr(sys.modules.get(root), "__file__", None)
        if root not in FRAMEWORKS or root in self._include or file is None:
            return False
        return frame.f_code.co_filename.startswith(os.path.join(os.path.dirname(file), ""))  # noqa: PTH118, PTH120

    def _is_own_text(self, frame: FrameType) -> bool:
        name = frame.f_code.co_filename
        if name.startswith(("<frozen", "<__array_function__")):
            return False
        module = sys.modules.get(str(frame.f_globals.get("__name__")))
        file = getattr(module, "__file__", None)
        return file is None or self._is_own_file(file)

    def _is_own_file(self, name: str) -> bool:
        parts = name.split("/")
        for folder in PACKAGES:
            if folder in parts:
                package = parts[parts.index(folder) + 1 :][:1]
                return bool(package) and package[0].removesuffix(".py") in self._include
        if parts[-1].startswith(REWRITTEN):
            return False
        path = os.path.abspath(name)  # noqa: PTH100
        return not any(path.startswith(folder) for folder in self._foreign_folders)

    def line_frame(self, frame: FrameType | None) -> FrameType | None:
        """Return the nearest of the user's frames from ``frame`` outwards.

        Otherwise a package's frame. None if a thread of Python's began the call.
        """
        package = None
        while frame is not None:
            if self.is_own(frame):
                return frame
            if package is None and self._is_of_package(frame.f_code.co_filename):
                package = frame
            frame = frame.f_locals["_caller"] if frame.f_code is CARRIED else frame.f_back
        return package

    def _is_of_package(self, name: str) -> bool:
        is_tracer = os.path.abspath(name).startswith(self._foreign_folders[-1])  # noqa: PTH100
        return not is_tracer and any(folder in name.split("/") for folder in PACKAGES)


def carried(_caller: Any, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a function in another thread, for the line of its caller."""
    return function(*args, **kwargs)


CARRIED = carried.__code__


class Lines:
    """The time of each line, without functions of the user's that it calls, by samples.

    Threads on the same line at once count once. This covers what a line does outside traced
    calls: ``torch.stack``, ``array.astype``.
    """

    def __init__(self, places: Places, times_s: dict[tuple[str, int], float]) -> None:
        self._places, self.times_s = places, times_s
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
            for place in self._busy():
                self.times_s[place] = self.times_s.get(place, 0.0) + began_s - last_s
            last_s = began_s
            pause_s = max(INTERVAL_S, SHARE * (_cost() - cost_s))

    def _busy(self) -> set[tuple[str, int]]:
        """Return the lines on which other threads are."""
        frames = sys._current_frames()  # noqa: SLF001 - CPython's own way
        frames.pop(_own(), None)
        found = map(self._places.line_frame, frames.values())
        return {(line.f_code.co_filename, line.f_lineno or 0) for line in found if line is not None}


@cache
def _positions(code: CodeType) -> list[Any]:
    """Return the places of all instructions; empty before Python 3.11."""
    return list(code.co_positions()) if hasattr(code, "co_positions") else []


def span(code: CodeType, instruction: int) -> tuple[int, int, int, int] | None:
    """Return the expression's first and last line and its columns, if they are known."""
    places = _positions(code)
    found = places[instruction // 2] if 0 <= instruction // 2 < len(places) else None
    return None if found is None or None in found else tuple(found)
