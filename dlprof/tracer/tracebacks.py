"""Tracebacks of the program without the frames of the tracer."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - few imports


class WithoutFrame:
    """A block of a function whose frame no traceback of the program has; from Python 3.11 on."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None and trace is not None:
            error.__traceback__ = trace.tb_next


class Hook:
    """Calls the program's ``sys.excepthook`` for the error that ends it, as Python does."""

    def __init__(self) -> None:
        self._own: Callable[..., Any] = sys.excepthook
        sys.excepthook = self

    def __call__(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        sys.excepthook = self._own
        while trace is not None and trace.tb_frame.f_code.co_filename.startswith(HERE):
            trace = trace.tb_next
        error.__traceback__ = sys.last_traceback = trace
        with WithoutFrame():
            self._own(kind, error, trace)
