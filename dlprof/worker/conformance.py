"""Run one check of :mod:`dlprof.conformance` here, or write it as a script."""

from __future__ import annotations

import gc
from typing import Any

from dlprof.conformance import CHECKS
from dlprof.conformance.check import answer
from dlprof.conformance.script import Binding, binding, script
from dlprof.worker import loading
from dlprof.worker.channel import Reply
from dlprof.worker.source_text import execute

_frameworks: dict[tuple[str, str], tuple[Binding, Any]] = {}


def run(request: dict[str, Any], reply: Reply) -> None:
    """Reply with the parts ``verdict`` and ``observation``, or with ``script``."""
    check = CHECKS[request["check"]]
    reference = request["source"], request["name"]
    reply.stage("import")
    if reference not in _frameworks:
        bound = binding(loading.find(*reference))
        _frameworks[reference] = bound, loaded(bound)
    bound, framework = _frameworks[reference]
    if request.get("script"):
        reply.part("script", script(check, bound, request["version"]))
        return
    reply.stage("check")
    verdict, observation = answer(check, framework)
    gc.collect()  # a double free ends the process here, and not in the next check
    reply.part("verdict", verdict)
    reply.part("observation", observation)


def loaded(bound: Binding) -> Any:
    """Return the framework that a binding defines."""
    namespace: dict[str, Any] = {}
    execute(bound.text(), namespace, "conformance")
    return namespace["framework"]
