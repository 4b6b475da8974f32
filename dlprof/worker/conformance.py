"""Run one check of :mod:`dlprof.conformance` here, or write it as a script."""

from __future__ import annotations

import gc
from typing import Any

from dlprof.conformance import consumer, exchange, producer  # noqa: F401 - they declare the checks
from dlprof.conformance.binding import binding
from dlprof.conformance.check import CHECKS, answer
from dlprof.conformance.script import script
from dlprof.worker import loading
from dlprof.worker.channel import Answer
from dlprof.worker.source_text import execute

_frameworks: dict[tuple[str, str], Any] = {}


def run(request: dict[str, Any], reply: Answer) -> None:
    """Reply with the parts ``verdict`` and ``seen``, or with ``script``."""
    check = CHECKS[request["check"]]
    reference = request["source"], request["name"]
    if request.get("script"):
        reply.part("script", script(check, loading.find(*reference)))
        return
    reply.stage("import")
    if reference not in _frameworks:
        namespace: dict[str, Any] = {}
        execute(binding(loading.find(*reference)), namespace, "conformance")
        _frameworks[reference] = namespace["framework"]
    reply.stage("check")
    verdict, seen = answer(check.run, _frameworks[reference])
    gc.collect()  # what is freed too often ends the process here, and not in the next check
    reply.part("verdict", verdict)
    reply.part("seen", seen)
