"""A worker without a process, which replays the answers of real workers from a recorded run.

For tests of everything above the workers::

    with replayed(NUMPY_TORCH):
        main(["run", "torch", "numpy"])

A case is answered round by round as it was recorded. If more rounds are requested, the
answers start again from the first.
"""

import json
import sys
from contextlib import contextmanager
from unittest.mock import patch

from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner import worker_client
from dlprof.runner.case_client import TRACE
from dlprof.runner.worker_client import Outcome, WorkerClient


@contextmanager
def replayed(path):
    """Let all workers answer from the recording, inside the context."""
    recording = Recording(path)
    with patch.object(worker_client, "start", recording):
        yield recording


class Recording:
    """Recorded answers, keyed by request. Starts workers that replay them.

    ``asked`` lists the requests in order.
    """

    def __init__(self, path):
        self.header, answers = _answers(path)
        self.asked = []
        self._answers = {}
        self._given = {}
        for key, answer in answers:
            self._answers.setdefault(key, []).append(answer)

    def skip(self, path):
        """Skip the answers that the session file ``path`` of the same run already holds."""
        for key, _ in _answers(path)[1]:
            self._given[key] = self._given.get(key, 0) + 1

    def __call__(self, python, variables):
        return ReplayedWorker(self)

    def outcome(self, request):
        self.asked.append(request)
        if request["do"] == "inspect":
            catalog = self.header["catalog"]
            interpreter = {**catalog["interpreter"], "executable": sys.executable}
            return Outcome("ok", None, {"inspect": {**catalog, "interpreter": interpreter}})
        if request["do"] in ("load", "make", "setup", "fork", "end fork", "exit"):
            return Outcome("ok", None)
        key = _key(request)
        answers = self._answers.get(key)
        if not answers:
            return Outcome("failed", f"there is no recorded answer to {request['do']}")
        answer = answers[self._given.get(key, 0) % len(answers)]
        self._given[key] = self._given.get(key, 0) + 1
        return Outcome(
            answer["status"],
            answer["reason"],
            dict(answer["parts"]),
            list(answer.get("failures", ())),
            answer.get("stage", "recorded"),
            answer.get("output"),
        )


class ReplayedWorker(WorkerClient):
    def __init__(self, recording):
        self._recording = recording
        self._request = {}

    def send(self, request):
        self._request = request

    def poll(self, limit_s, wait_s=0.0):
        return self._recording.outcome(self._request)


def _answers(path):
    """Return the header of a recording, and its answers keyed by request."""
    header, *lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    rounds, cases = header["request"]["settings"]["rounds"], header["cases"]
    found = []
    for line in lines:
        if "answer" in line:
            round_ = line["round"]
            kind = "case" if round_ < rounds else "trace" if round_ > rounds else "diagnosis"
            found.append(((kind, _of_case(cases[line["of"]])), line["answer"]))
    return header, found


def _key(request):
    instruments = set(request["instruments"])
    kind = "trace" if instruments <= set(TRACE) else "case"
    kind = "diagnosis" if instruments <= set(DIAGNOSIS) else kind
    return kind, _of_case(_named(request))


def _named(request):
    """Reduce a request to the frameworks' names, as a case has them."""
    return {**request, "producer": request["producer"][1], "consumer": request["consumer"][1]}


def _of_case(case):
    way = ("producer", "export", "consumer", "import", "dtype", "layout", "device")
    return (*(case[name] for name in way), tuple(case["shape"]))
