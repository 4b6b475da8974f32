"""Answer the parent's requests until it closes the pipe."""

from __future__ import annotations

from typing import Any

from dlprof.probes.base import Probe
from dlprof.worker import loading, reference
from dlprof.worker.answer import Answer
from dlprof.worker.case import check_setup, load, run_case
from dlprof.worker.channel import Channel
from dlprof.worker.inspect import inspect, verify
from dlprof.worker.recognise import recognise
from dlprof.worker.step import case as step_case
from dlprof.worker.subject import Refused
from dlprof.worker.trip import run_trip
from dlprof.worker.words import words


def serve(requests_fd: int, replies_fd: int) -> None:
    """One reply ``{"done": ...}`` for each request, with stages and parts before it."""
    channel = Channel(requests_fd, replies_fd)
    desk = Desk(channel)
    for request in channel.requests():
        desk.answer(request)


class Desk:
    """What outlives a request: probes, namespaces, imports that failed, and how many cases ran."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.probes: dict[tuple[str, str], Probe] = {}
        self.namespaces: dict[tuple[str, ...], dict[str, Any]] = {}
        self.refused: Refused = {}
        self.cases_before = 0

    def answer(self, request: dict[str, Any]) -> None:
        answer = Answer(self.channel, request["id"])
        try:
            self._serve(request["do"], request, answer)
        except BaseException as fault:  # noqa: BLE001 - foreign code may raise anything
            answer.done("failed", words(fault))
        else:
            answer.done(*answer.outcome)

    def _serve(self, kind: str, request: dict[str, Any], answer: Answer) -> None:
        if kind == "case":
            run_case(self, request, answer)
        elif kind == "step":
            run_case(self, request, answer, step_case.measure)
        elif kind == "round trip":
            run_trip(self, request, answer)
        elif kind == "setup":
            check_setup(self, request, answer)
        elif kind == "load":
            load(self, request["cases"], answer)
        elif kind == "reference":
            answer.stage("reference")  # no import is waited for
            answer.part("reference", reference.measure(request["budget_ns"]))
        elif kind == "inspect":
            answer.part("inspect", inspect(request["sources"], request["skip"], answer.stage))
        elif kind == "recognise":
            recognise(request, answer)
        elif kind == "verify":
            answer.part("verify", verify(request["source"], request["name"]))

    def probe(self, source: str, name: str) -> Probe:
        """The probe, loaded once per worker."""
        if (source, name) not in self.probes:
            self.probes[source, name] = loading.find(source, name)
        return self.probes[source, name]
