"""Signals stop a run in order, but not while it saves what it measured."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def stop_in_order() -> None:
    """SIGTERM and a lost terminal do what Ctrl-C does, unless they are ignored."""
    for number in STOPS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore the signals that stop a run: a second Ctrl-C must not lose what the first one kept."""
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers belong to the main thread, and so does KeyboardInterrupt
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in STOPS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


@contextmanager
def held() -> Iterator[None]:
    """Delay the signals that stop a run: an import that is cut off fails for good."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in STOPS}
    for number, handler in handlers.items():
        if callable(handler):
            signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if callable(handler):
                signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])
