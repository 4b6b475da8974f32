"""Whether the samples of a turn may stay on one processor: not those of several threads."""

import threading
import time

from dlprof.worker import threads, turns


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


def test_a_call_that_waits_for_a_processor_does_not_change_the_sample_of_its_turn():
    calls = iter((60_000, 60_000, 9_000_000, 60_000, 60_000, 60_000, 60_000, 60_000))
    elapsed_ns = turns.of_pieces(lambda loops: sum(next(calls) for _ in range(loops)), 8, 1)
    assert elapsed_ns == 8 * 60_000
