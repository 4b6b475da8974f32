"""A worker without a process: it answers as real workers did, from the journal that they filled.

For tests of everything above the workers::

    with replayed(Path("torch-numpy.journal")):
        main(["run", "torch", "numpy"])

A case is answered round by round as it was recorded, and from the first answer again if more
rounds are asked for.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner import worker_client
from dlprof.runner.schedule import TRACE
from dlprof.runner.worker_client import OnStage, Outcome, WorkerClient

AXES = ("shape", "dtype", "layout", "device")
Key = tuple[Any, ...]


@contextmanager
def replayed(journal: Path) -> Iterator[Recording]:
    """Inside, all workers answer from ``journal``."""
    recording = Recording(journal)
    with worker_client.started_by(recording):
        yield recording


class Recording:
    """The answers of a journal, by what was asked. Starts workers that give them.

    ``asked`` lists the requests, in order.
    """

    def __init__(self, path: Path) -> None:
        self.header, answers = _answers(path)
        self.asked: list[Mapping[str, Any]] = []
        self._answers: dict[Key, list[dict[str, Any]]] = {}
        self._given: dict[Key, int] = {}
        for key, answer in answers:
            self._answers.setdefault(key, []).append(answer)

    def skip(self, journal: Path) -> None:
        """Go on behind the answers that another journal of the same run holds."""
        for key, _ in _answers(journal)[1]:
            self._given[key] = self._given.get(key, 0) + 1

    def __call__(self, python: str, variables: Mapping[str, str]) -> ReplayedWorker:  # noqa: ARG002
        return ReplayedWorker(self)

    def outcome(self, request: Mapping[str, Any]) -> Outcome:
        self.asked.append(request)
        if request["do"] == "inspect":
            catalog = self.header["catalog"]
            interpreter = {**catalog["interpreter"], "executable": sys.executable}
            return Outcome("ok", None, {"inspect": {**catalog, "interpreter": interpreter}})
        if request["do"] in ("load", "make", "setup"):
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
    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._request: Mapping[str, Any] = {}

    def send(self, request: Mapping[str, Any]) -> None:
        self._request = request

    def until_turn(self, limit_s: float, on_stage: OnStage | None = None) -> Outcome:  # noqa: ARG002
        outcome = self._recording.outcome(self._request)
        if on_stage is not None:
            on_stage(outcome.stage)
        return outcome

    poll = until_turn


def _answers(path: Path) -> tuple[dict[str, Any], list[tuple[Key, dict[str, Any]]]]:
    """The header of a journal, and its answers by what was asked."""
    header, *lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    rounds, cases = header["request"]["settings"]["rounds"], header["cases"]
    found: list[tuple[Key, dict[str, Any]]] = []
    for line in lines:
        of, round_ = line["of"], line["round"]
        kind = "case" if round_ < rounds else "trace" if round_ > rounds else "diagnosis"
        found.append(((kind, _of_case(cases[of])), line["answer"]))
    return header, found


def _key(request: Mapping[str, Any]) -> Key:
    instruments = set(request["instruments"])
    kind = "trace" if instruments <= set(TRACE) else "case"
    kind = "diagnosis" if instruments <= set(DIAGNOSIS) else kind
    return kind, _of_case(_named(request))


def _named(request: Mapping[str, Any]) -> dict[str, Any]:
    """A request with the frameworks' names alone, as a case has them."""
    return {**request, "producer": request["producer"][1], "consumer": request["consumer"][1]}


def _way(case: Mapping[str, Any]) -> Key:
    return case["producer"], case["export"], case["consumer"], case["import"]


def _of_case(case: Mapping[str, Any]) -> Key:
    shape = tuple(case["shape"])
    return (*_way(case), shape, *(case[name] for name in AXES[1:]))
