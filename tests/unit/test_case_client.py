"""What the client of a worker keeps of its answers."""

from contextlib import closing

import pytest

from dlprof.runner.case_client import CaseClient
from dlprof.runner.journal import Journal
from dlprof.runner.worker_client import Outcome
from dlprof.session.evidence import Lost


@pytest.mark.parametrize(
    ("stage", "parts", "status"),
    [
        ("handshake", {"refused": "TypeError: no"}, "unsupported"),
        ("handshake", {}, "crashed"),
        ("refusal", {"refused": "TypeError: no"}, "crashed"),
    ],
    ids=["an experiment after a refusal", "the handshake of a result", "a loop of refusals"],
)
def test_a_refusal_whose_experiment_ended_the_process_is_a_refusal(stage, parts, status):
    lost = Lost(how="killed by SIGABRT", stage=stage)
    outcome = Outcome("crashed", lost.how, parts, stage=stage, lost=lost, alive=False)
    with closing(Journal()) as journal:
        CaseClient(None, None, journal, None, None).record(0, 0, outcome)
        ((_, answer),) = journal.answers(0)
    is_refused = status == "unsupported"
    assert (answer["status"], answer["lost"] is None) == (status, is_refused)
    assert answer["reason"] == ("TypeError: no" if is_refused else "killed by SIGABRT")
