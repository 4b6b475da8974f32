"""What stops a run is answered in order, and nothing is cut off in the middle."""

from __future__ import annotations

import signal
import threading

import pytest

from dlprof.session.interrupts import held

pytestmark = pytest.mark.unit


@pytest.fixture
def interruptible():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_that_is_held_comes_at_the_end():
    done = []
    with pytest.raises(KeyboardInterrupt), held():  # noqa: PT012 - that all of it runs is the test
        signal.raise_signal(signal.SIGINT)
        done.append("all")
    assert done == ["all"]


@pytest.mark.usefixtures("interruptible")
def test_without_an_interrupt_the_handlers_are_as_before():
    with held():
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with held():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_thread_has_no_signals_to_hold():
    done = []

    def run():
        with held():
            done.append("all")

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert done == ["all"]
