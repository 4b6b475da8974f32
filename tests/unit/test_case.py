"""Cases: the source is ready, and every error is reported as an outcome."""

from types import SimpleNamespace

import pytest
from builders import make_subject

from dlprof.probes.base import Unsupported
from dlprof.probes.numpy import NumPy
from dlprof.runner.case_client import SURVEY
from dlprof.worker import memory, serve
from dlprof.worker.channel import Reply
from dlprof.worker.loading import WorkerState
from dlprof.worker.refusal import FaultyProbe
from dlprof.worker.subject import SetupFailed

INSTRUMENTS = "dlprof.worker.instruments"
REQUEST = {"instruments": [], "budget_ns": 1, "largest_bytes": 1}


class TestSubject:
    @pytest.mark.parametrize("where", ["cuda", "quantum", None])
    def test_a_result_is_on_its_observed_device_or_else_the_declared_one(self, where):
        class Elsewhere(NumPy):
            devices = ("cpu", "cuda")

            def device(self, array):
                return where

            def wait(self, device):
                return f"wait_on_{device}({{x}})"

        subject = make_subject(consumer=Elsewhere(), wait_on_cpu=id)
        placed = subject.relocate(subject.convert())
        expected = ("cuda", "wait_on_cuda({x})") if where == "cuda" else ("cpu", subject.wait)
        assert (placed.result_device, placed.wait) == expected


def served(measure):
    """Return the outcome of a request that ``measure`` serves, its answer, and what was sent."""
    sent = []
    channel = SimpleNamespace(send=sent.append, measuring=True)
    answer = Reply(channel, 1)
    outcome = serve.measured(SimpleNamespace(channel=channel), {}, answer, measure)
    assert not channel.measuring
    return outcome, answer, sent


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (memory.TooLarge("too large"), ("skipped", "too large")),
        (SetupFailed("the setup fails"), ("skipped", "the setup fails")),
        (FaultyProbe("no name"), ("faulty", "the probe is faulty: no name")),
        (SyntaxError("bad"), ("faulty", "the probe is faulty: SyntaxError: bad")),
        (Unsupported("no such dtype"), ("unsupported", "no such dtype")),
        (BufferError("not contiguous"), ("unsupported", "BufferError: not contiguous")),
        (SystemExit(3), ("crashed", "raised SystemExit: 3")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_error_is_the_outcome_of_the_case(fault, outcome):
    def measure(*_):
        raise fault

    assert served(measure)[0] == outcome


BUSY = "GPU 0 was also used by 2 other processes"


@pytest.mark.parametrize(
    ("instruments", "status"),
    [
        (SURVEY, "ok"),
        (["values", "ready_time"], "invalid"),
        (["first_call", "ownership"], "invalid"),
        (["fresh_source"], "invalid"),
    ],
)
def test_a_busy_device_counts_only_if_times_or_waits_are_measured(instruments, status, monkeypatch):
    def watch(run, gpu):
        run()
        return BUSY

    monkeypatch.setattr(serve.gpu_state, "watch", watch)
    found, _ = measured_by_numpy(instruments)
    assert found == (status, BUSY if status == "invalid" else None)


def measured_by_numpy(instruments):
    """Return the outcome of a small NumPy array, and what was sent."""
    sent = []
    channel = SimpleNamespace(send=sent.append)
    numpy = NumPy()
    array = {"shape": [4, 8], "dtype": "float32", "layout": "C", "device": "cpu"}
    ways = {"export": numpy.exports[0].name, "import": numpy.imports[0].name}
    probes = dict.fromkeys(("producer", "consumer"), ("builtin", "numpy"))
    request = {**REQUEST, **array, **ways, **probes, "instruments": list(instruments)}
    answer = Reply(channel, 1)
    return serve.measured(WorkerState(channel), request, answer, serve.measure_case), sent


@pytest.mark.parametrize("where", ["settings.verdict", "times.timer", "subject.check_source"])
def test_an_internal_error_of_dlprof_is_no_refusal(where, monkeypatch):
    monkeypatch.setattr(f"{'dlprof.worker' if 'subject' in where else INSTRUMENTS}.{where}", None)
    (status, reason), sent = measured_by_numpy(["settings", "first_call", "refusal"])
    assert (status, "failed in" in reason) == ("skipped", True)
    assert not [one for one in sent if one.get("part") in ("refused", "refused_at", "refusal")]
