"""The client of a worker: the answers it keeps."""

from types import SimpleNamespace

import pytest
from builders import make_case

from dlprof.runner.case_client import CaseClient
from dlprof.runner.evidence import Lost
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Settings
from dlprof.runner.schedule import Entry
from dlprof.runner.worker_client import Outcome


@pytest.mark.parametrize(
    ("ended", "parts", "status"),
    [
        (("crashed", "handshake"), {"refused": "TypeError: no"}, "unsupported"),
        (("crashed", "handshake"), {}, "crashed"),
        (("crashed", "refusal"), {"refused": "TypeError: no"}, "crashed"),
        (("timeout", "refusal"), {"refused": "TypeError: no"}, "unsupported"),
    ],
    ids=[
        "an experiment after a refusal",
        "the handshake of a result",
        "a loop of refusals",
        "a loop of refusals that takes too long",
    ],
)
def test_a_refusal_whose_experiment_ended_the_process_is_a_refusal(ended, parts, status):
    was, stage = ended
    lost = Lost(how="lost", stage=stage)
    outcome = Outcome(was, lost.how, parts, stage=stage, lost=lost, alive=False)
    client = CaseClient(Settings(), None, Watcher())
    worker = SimpleNamespace(send=lambda _: None, poll=lambda *_: outcome)
    with pytest.raises(StopIteration) as answered:
        next(client.ask(worker, Entry(0, make_case()), 0))
    found = answered.value.value
    is_refused = status == "unsupported"
    assert (found.status, found.lost is None) == (status, is_refused)
    assert found.reason == ("TypeError: no" if is_refused else "lost")
