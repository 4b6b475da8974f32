"""Whether the samples of a turn may stay on one processor: not those of several threads."""

from types import SimpleNamespace

import pytest

from dlprof.worker import turns


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
    monkeypatch.setattr(turns, "time", clock)
    assert turns._by_several_threads(lambda _: None, 1) is several
