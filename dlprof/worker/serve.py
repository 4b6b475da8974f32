"""Answer the parent's requests until it closes the pipe."""

from __future__ import annotations

from typing import Any

from dlprof.protocol.messages import words
from dlprof.worker import case, inspect
from dlprof.worker.channel import Answer, Channel
from dlprof.worker.instruments import step
from dlprof.worker.loading import WorkerState
from dlprof.worker.recognise import recognise

MEASURE: dict[str, case.Measure] = {
    "case": case.measure,
    "round trip": case.measure_trip,
    "setup": case.check_setup,
    "step": step.measure,
}


def serve(requests_fd: int, replies_fd: int) -> None:
    """One reply ``{"done": ...}`` for each request, with stages and parts before it."""
    channel = Channel(requests_fd, replies_fd)
    state = WorkerState(channel)
    for request in channel.requests():
        answer = Answer(channel, request["id"])
        try:
            _serve(state, request["do"], request, answer)
        except BaseException as fault:  # noqa: BLE001 - the outermost boundary of the worker
            answer.done("failed", words(fault))
        else:
            answer.done(*answer.outcome)


def _serve(state: WorkerState, kind: str, request: dict[str, Any], answer: Answer) -> None:
    if kind in MEASURE:
        case.serve(state, request, answer, MEASURE[kind])
    elif kind == "load":
        case.load(state, request["cases"], answer)
    elif kind == "inspect":
        answer.part("inspect", inspect.inspect(request["sources"], request["skip"], answer.stage))
    elif kind == "recognise":
        recognise(request, answer)
    elif kind == "verify":
        answer.part("verify", inspect.verify(request["source"], request["name"]))
