"""Warnings of a traced call name the user's line, as they do without the tracer.

A warning is placed by the frame that is so many levels up, and one of them is the wrapper's. Such
a warning is given again at the line that called the wrapper, where the program's filters and its
record of what was warned apply. A filter lets it come that far: Python shows warnings of some kinds
only if the program's main module is where they are.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from contextlib import suppress
from typing import Any

from dlprof.tracer import wrappers

FILE = wrappers.__file__
RUNNERS = tuple(os.path.join(os.path.dirname(FILE), name) for name in ("program.py", "__main__.py"))  # noqa: PTH118, PTH120
"""Below the first frame of a program."""


OF_WRAPPERS = "always", None, Warning, re.compile(re.escape(wrappers.__name__) + "$"), 0


class WarnedAt:
    """Stands in for what :mod:`warnings` calls to show a message."""

    def __init__(self) -> None:
        warnings.filters.insert(0, OF_WRAPPERS)  # type: ignore[attr-defined]
        _filters_changed()
        self._show = warnings._showwarnmsg  # type: ignore[attr-defined]  # noqa: SLF001
        warnings._showwarnmsg = self.show  # type: ignore[attr-defined]  # noqa: SLF001

    def stop(self) -> None:
        with suppress(ValueError):
            warnings.filters.remove(OF_WRAPPERS)  # type: ignore[attr-defined]
            _filters_changed()
        if warnings._showwarnmsg == self.show:  # type: ignore[attr-defined]  # noqa: SLF001
            warnings._showwarnmsg = self._show  # type: ignore[attr-defined]  # noqa: SLF001

    def show(self, message: Any) -> None:
        caller = _caller() if message.filename == FILE else None
        if message.filename in RUNNERS:
            message.filename, message.lineno = "sys", 1  # where Python places what has no frame
        if caller is None:
            self._show(message)
            return
        # Both records would silence the second look: of this place, and of what is shown once.
        vars(wrappers).pop("__warningregistry__", None)
        once = (str(message.message), message.category)
        getattr(warnings, "onceregistry", {}).pop(once, None)
        warnings.warn_explicit(
            message.message,
            message.category,
            caller.f_code.co_filename,
            caller.f_lineno,
            caller.f_globals.get("__name__") or "<sys>",
            caller.f_globals.setdefault("__warningregistry__", {}),
            None,
            message.source,
        )


def _filters_changed() -> None:
    """Have :mod:`warnings` forget what it decided by the filters before."""
    getattr(warnings, "_filters_mutated", lambda: None)()


def _caller() -> Any:
    """The frame that called the innermost wrapper."""
    frame: Any = sys._getframe(1)  # noqa: SLF001 - CPython's own way
    while frame is not None and frame.f_code.co_filename != FILE:
        frame = frame.f_back
    while frame is not None and frame.f_code.co_filename == FILE:
        frame = frame.f_back
    return frame
