"""Answer the parent's requests until it closes the pipe."""

from __future__ import annotations

from typing import Any

from dlprof.worker import reference
from dlprof.worker.case import check_setup, load, run_case
from dlprof.worker.channel import Answer, Channel
from dlprof.worker.inspect import inspect, verify
from dlprof.worker.recognise import recognise
from dlprof.worker.state import WorkerState
from dlprof.worker.step import case as step_case
from dlprof.worker.trip import run_trip
from dlprof.worker.words import words


def serve(requests_fd: int, replies_fd: int) -> None:
    """One reply ``{"done": ...}`` for each request, with stages and parts before it."""
    channel = Channel(requests_fd, replies_fd)
    state = WorkerState(channel)
    for request in channel.requests():
        _answer(state, request)


def _answer(state: WorkerState, request: dict[str, Any]) -> None:
    answer = Answer(state.channel, request["id"])
    try:
        _serve(state, request["do"], request, answer)
    except BaseException as fault:  # noqa: BLE001 - foreign code may raise anything
        answer.done("failed", words(fault))
    else:
        answer.done(*answer.outcome)


def _serve(state: WorkerState, kind: str, request: dict[str, Any], answer: Answer) -> None:
    if kind == "case":
        run_case(state, request, answer)
    elif kind == "step":
        run_case(state, request, answer, step_case.measure)
    elif kind == "round trip":
        run_trip(state, request, answer)
    elif kind == "setup":
        check_setup(state, request, answer)
    elif kind == "load":
        load(state, request["cases"], answer)
    elif kind == "reference":
        answer.stage("reference")  # no import is waited for
        answer.part("reference", reference.measure(request["budget_ns"]))
    elif kind == "inspect":
        answer.part("inspect", inspect(request["sources"], request["skip"], answer.stage))
    elif kind == "recognise":
        recognise(request, answer)
    elif kind == "verify":
        answer.part("verify", verify(request["source"], request["name"]))
