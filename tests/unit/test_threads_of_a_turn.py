"""Whether the samples of a turn may stay on one processor: not those of several threads."""

import threading
import time
from types import SimpleNamespace

import pytest

from dlprof.worker import threads, turns


@pytest.mark.parametrize(
    ("own_ns", "others_ns", "several"),
    [
        (2_000_000, 1_900_000, True),
        (28_000_000, 800_000, True),  # it spins while the other thread has no processor
        (500_000, 20_000, False),  # a thread that looks after its queue now and then
        (100_000_000, 500_000, False),
    ],
)
def test_work_of_other_threads_counts_however_long_the_calling_thread_waits_for_it(
    monkeypatch, own_ns, others_ns, several
):
    own, every = iter((0, own_ns)), iter((0, own_ns + others_ns))
    clock = SimpleNamespace(thread_time_ns=lambda: next(own), process_time_ns=lambda: next(every))
    monkeypatch.setattr(threads, "time", clock)
    monkeypatch.setattr(threads, "others_ns", lambda: 0)
    assert threads.is_multithreaded(lambda: None) is several


def test_the_time_of_another_thread_counts_and_that_of_the_caller_does_not():
    begin, end, spun = threading.Event(), threading.Event(), []

    def spin():
        begin.wait()
        while time.thread_time_ns() < 5_000_000:
            pass
        spun.append(time.thread_time_ns())
        end.wait()

    thread = threading.Thread(target=spin)
    thread.start()
    before, own = threads.others_ns(), time.thread_time_ns()
    begin.set()
    while not spun or time.thread_time_ns() - own < 1_000_000:
        pass
    grown = threads.others_ns() - before
    end.set()
    thread.join()
    assert 4_000_000 < grown < spun[0] + 1_000_000


def test_waiting_for_threads_ends_with_the_first_look_that_finds_them_asleep(monkeypatch):
    looks = iter((0, 1_000_000, 1_000_000, 2_000_000, 2_000_000, 2_100_000))
    monkeypatch.setattr(threads, "others_ns", lambda: next(looks))
    threads.wait_until_asleep()
    assert list(looks) == []


def test_a_call_that_waits_for_a_processor_does_not_change_the_sample_of_its_turn():
    calls = iter((60_000, 60_000, 9_000_000, 60_000, 60_000, 60_000, 60_000, 60_000))
    elapsed_ns = turns.of_pieces(lambda loops: sum(next(calls) for _ in range(loops)), 8, 1)
    assert elapsed_ns == 8 * 60_000
