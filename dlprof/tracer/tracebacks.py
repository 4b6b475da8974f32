"""Tracebacks of the program without the frames of the tracer."""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - few imports


def raise_of_handler(error: Exception) -> None:
    """Raise it again if the handler of a signal raised it: then it is the program's own."""
    codes = {_code(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            raise error
        trace = trace.tb_next


def _code(handler: Any) -> Any:
    if not callable(handler):
        return None
    while isinstance(handler, functools.partial):
        handler = handler.func
    function = getattr(handler, "__func__", handler)
    return getattr(function, "__code__", getattr(type(handler).__call__, "__code__", None))


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
