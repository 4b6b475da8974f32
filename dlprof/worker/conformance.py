"""Run one check of :mod:`dlprof.conformance` here, or write it as a script."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

from dlprof.conformance.binding import Binding, binding
from dlprof.conformance.check import Check, Violated, answer
from dlprof.conformance.every import CHECKS
from dlprof.conformance.needs import newest
from dlprof.conformance.script import script
from dlprof.worker import loading
from dlprof.worker.channel import Answer
from dlprof.worker.source_text import execute

_frameworks: dict[tuple[str, str], tuple[Binding, Any]] = {}


def run(request: dict[str, Any], reply: Answer) -> None:
    """Reply with the parts ``verdict`` and ``seen``, or with ``script``."""
    check = CHECKS[request["check"]]
    reference = request["source"], request["name"]
    reply.stage("import")
    if reference not in _frameworks:
        _frameworks[reference] = loaded(binding(loading.find(*reference)))
    bound, framework = _frameworks[reference]
    if request.get("script"):
        only = alone(check, bound, framework) if request.get("alone") else bound
        reply.part("script", script(check, only, request["version"]))
        return
    reply.stage("check")
    verdict, seen = answer(check, framework)
    gc.collect()  # what is freed too often ends the process here, and not in the next check
    reply.part("verdict", verdict)
    reply.part("seen", seen)


def alone(check: Check, bound: Binding, framework: Any) -> Binding:
    """The binding with the first array that violates the clause by itself, or with all arrays.

    The check has been run: it makes no array here that it did not make then.
    """
    kinds: list[str] = []
    make, arrays = framework.make, framework.arrays

    def noted(kind: str) -> Any:
        kinds.append(kind)
        return make(kind)

    framework.make = noted
    _violated(check, framework)
    framework.make = make
    every = dict(arrays)
    for kind in dict.fromkeys(kinds):
        if kind not in every:
            continue
        arrays.clear()
        arrays[kind] = every[kind]
        is_violated = _violated(check, framework)
        arrays.update(every)
        if is_violated:
            return replace(bound, arrays={kind: every[kind]})
    return bound


def _violated(check: Check, framework: Any) -> bool:
    return answer(replace(check, needs=()), framework)[0] == Violated.verdict


def loaded(bound: Binding) -> tuple[Binding, Any]:
    """The framework that a binding defines, and the binding with what only a try says."""
    namespace: dict[str, Any] = {}
    execute(bound.text(), namespace, "conformance")
    framework = namespace["framework"]
    framework.newest = newest(framework)
    return replace(bound, facts=bound.facts | {"newest": framework.newest}), framework
