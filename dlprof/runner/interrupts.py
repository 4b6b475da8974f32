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
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in STOPS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler or signal.SIG_DFL)
