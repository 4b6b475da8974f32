"""Answer the parent's requests until it closes the pipe.

What a framework raises is recorded in its own words, and costs one instrument or one case.
"""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from dlprof.protocol.messages import FAILED_IN, FAULTY, words
from dlprof.worker import case, inspect
from dlprof.worker.case import Outcome
from dlprof.worker.channel import Answer, Channel
from dlprof.worker.instruments import step
from dlprof.worker.loading import WorkerState, path_of
from dlprof.worker.memory import TooLarge
from dlprof.worker.refusal import FaultyProbe, Refusal, attempt, own_place
from dlprof.worker.subject import SetupFailed
from dlprof.worker.supervisor import FORK_ENDED, forked

Measure = Callable[[WorkerState, dict[str, Any], Answer], Outcome]


def serve(requests_fd: int, replies_fd: int) -> None:
    """One reply ``{"done": ...}`` for each request, with stages and parts before it."""
    channel = Channel(requests_fd, replies_fd)
    state = WorkerState(channel)
    for request in channel.requests():
        answer = Answer(channel, request["id"])
        if request["do"] == "fork":
            _load(state, request["cases"], answer)
            if threading.active_count() > 1:  # a fork has none of them: what waits for one hangs
                channel.send({"id": answer.identity, "done": "failed", "reason": "has threads"})
                continue
            if not forked():
                continue  # the fork has answered
            channel.belongs_here()
        try:
            outcome = _served(state, request["do"], request, answer)
        except BaseException as fault:  # noqa: BLE001 - the outermost boundary of the worker
            outcome = "failed", Refusal(fault).reason
        channel.send({"id": answer.identity, "done": outcome[0], "reason": outcome[1]})
        if request["do"] == "end fork":
            os._exit(FORK_ENDED)


def _served(state: WorkerState, kind: str, request: dict[str, Any], answer: Answer) -> Outcome:
    if kind == "case":
        return measured(state, request, answer, case.measure)
    if kind == "step":
        return measured(state, request, answer, step.measure)
    if kind == "setup":
        return measured(state, request, answer, _check_setup)
    if kind == "load":
        _load(state, request["cases"], answer)
    elif kind == "inspect":
        answer.part("inspect", inspect.inspect(request["sources"], request["skip"], answer.stage))
    elif kind == "recognize":
        inspect.recognize(request, answer)
    elif kind == "conformance":
        from dlprof.worker import conformance

        conformance.run(request, answer)
    elif kind == "verify":
        answer.part("verify", inspect.verify(request["source"], request["name"]))
    return "ok", None


def _load(state: WorkerState, cases: list[dict[str, Any]], answer: Answer) -> None:
    """Import for these cases. An import that fails is reported when its case is asked for."""
    for imports in cases:
        with contextlib.suppress(BaseException):
            if "statements" in imports:
                exec(imports["statements"], {})  # noqa: S102 - the imports that the user typed
            else:
                path_of(state, imports, answer)


def _check_setup(state: WorkerState, request: dict[str, Any], answer: Answer) -> Outcome:
    path_of(state, request, answer)
    return "ok", None


def measured(
    state: WorkerState, request: dict[str, Any], answer: Answer, measure: Measure
) -> Outcome:
    """Return the outcome of ``measure``; what it raises is an outcome, too."""
    found = attempt(partial(measure, state, request, answer), BaseException)
    outcome = _outcome_of(found, answer) if isinstance(found, Refusal) else found
    state.channel.measuring = False
    del found  # its traceback holds the case's arrays
    gc.collect()
    gc.freeze()  # what is alive now is a cache of a framework: the next collections pass it by
    return outcome


def _outcome_of(refusal: Refusal, answer: Answer) -> Outcome:
    error = refusal.error
    if isinstance(error, (TooLarge, SetupFailed)):
        return "skipped", str(error)
    if isinstance(error, (FaultyProbe, SyntaxError)):
        why = str(error) if isinstance(error, FaultyProbe) else words(error)
        return "faulty", f"{FAULTY}: {why}"
    if place := own_place(error):
        return "skipped", f"{FAILED_IN} {place}: {words(error)}"
    if isinstance(error, Exception):
        answer.part("refused_at", answer.at)
        return "unsupported", refusal.reason
    if answer.at == "ready_time":  # else the host's time would be taken for it
        answer.failed("ready_time", words(error))
    return "crashed", f"raised {words(error)}"
