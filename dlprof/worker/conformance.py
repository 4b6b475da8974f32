"""Run one check of :mod:`dlprof.conformance` here, or write it as a script."""

from __future__ import annotations

import gc
from typing import Any

from dlprof.conformance import CHECKS, counterpart
from dlprof.conformance.check import answer
from dlprof.conformance.script import Binding, binding, script
from dlprof.probes.base import Probe, Unsupported
from dlprof.worker import loading
from dlprof.worker.channel import Reply
from dlprof.worker.simulated import OnSimulatedDevice, adapt, computed, simulated_gpu
from dlprof.worker.source_text import execute

_frameworks: dict[tuple[str, str], tuple[Probe, Binding, Any]] = {}


def run(request: dict[str, Any], reply: Reply) -> None:
    """Reply with the parts ``verdict`` and ``observation``, or with ``script``."""
    check = CHECKS[request["check"]]
    reference = request["source"], request["name"]
    reply.stage("import")
    if reference not in _frameworks:
        probe = adapt(loading.find(*reference))
        bound = binding(probe, request["device"])
        counterpart.KIND = getattr(counterpart, bound.device.upper())
        _frameworks[reference] = probe, bound, loaded(bound, probe)
    probe, bound, framework = _frameworks[reference]
    if request.get("script"):
        reply.part("script", script(check, bound, request["version"]))
        return
    reply.stage("check")
    try:
        verdict, observation = computed(simulated_gpu(probe), lambda: answer(check, framework))
    except Unsupported as error:
        verdict, observation = "unknown", str(error)
    gc.collect()  # a double free ends the process here, and not in the next check
    reply.part("verdict", verdict)
    reply.part("observation", observation)


def loaded(bound: Binding, probe: Probe | None = None) -> Any:
    """Return the framework that a binding defines; on a simulated device its arrays are filled."""
    namespace: dict[str, Any] = {}
    execute(bound.text(), namespace, "conformance")
    framework = namespace["framework"]
    if isinstance(probe, OnSimulatedDevice):
        make = framework.make

        def filled(kind: str) -> Any:
            array = make(kind)
            probe.fill(array)
            return array

        framework.make = filled
    return framework
