"""Run the checks of one framework in workers: a crash or a hang costs one check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dlprof.conformance import CHECKS
from dlprof.conformance.check import Check
from dlprof.errors import Unmeasured
from dlprof.runner import worker_client
from dlprof.runner.catalog import Catalog, ProbeInfo
from dlprof.runner.worker_client import Outcome, WorkerClient
from dlprof.text.clean import first_line

LIMIT_S = 60.0
"""Time limit of one check, after the import."""
CRASHED = "crashed"


@dataclass(frozen=True)
class Found:
    """The verdict of one check, and its observation in one line."""

    check: Check
    verdict: str
    observation: str = ""


def conformance(
    catalog: Catalog, probe: ProbeInfo, device: str, step: Callable[[], None] = lambda: None
) -> Iterator[Found]:
    """Run all checks, one after the other. Raises :class:`Unmeasured` if none can be run.

    A check that ends a worker after other checks is run again alone.
    """
    if device not in probe.devices:
        raise Unmeasured(f"{probe.name} has no arrays on {device}: see --device")
    worker: WorkerClient | None = None
    try:
        for check in CHECKS.values():
            worker, is_fresh = (worker, False) if worker else (_start(catalog, probe), True)
            outcome = _ask(worker, probe, check, device)
            if not outcome.alive and not is_fresh:
                worker.close()
                worker = _start(catalog, probe)
                outcome = _ask(worker, probe, check, device)
            if not outcome.alive:
                worker.close()
                worker = None
            yield _result(check, outcome, probe)
            step()
    finally:
        if worker is not None:
            worker.close()


def script(catalog: Catalog, probe: ProbeInfo, check: Check, device: str) -> str:
    """Return the check as a script without dlprof. Raises :class:`Unmeasured` if not applicable."""
    with _start(catalog, probe) as worker:
        outcome = _ask(worker, probe, check, device, script=True, version=probe.version or "")
        if "script" not in outcome.parts:
            raise Unmeasured(f"{probe.name}: {first_line(outcome.reason)}")
        found = _result(check, _ask(worker, probe, check, device), probe)
    if found.verdict == "not applicable":
        raise Unmeasured(f"{check.name} is not applicable to {probe.name}: {found.observation}")
    return str(outcome.parts["script"])


def _start(catalog: Catalog, probe: ProbeInfo) -> WorkerClient:
    return worker_client.start(catalog.python, {**probe.variables, **catalog.variables})


def _ask(
    worker: WorkerClient, probe: ProbeInfo, check: Check, device: str, **fields: object
) -> Outcome:
    source, name = probe.reference
    request = {"do": "conformance", "source": source, "name": name, "check": check.name}
    return worker.ask({**request, "device": device, **fields}, LIMIT_S)


def _result(check: Check, outcome: Outcome, probe: ProbeInfo) -> Found:
    """Return the worker's answer. Only a whole answer is a verdict."""
    if outcome.stage != "check":
        raise Unmeasured(f"{probe.name}: {first_line(outcome.reason)}")
    if outcome.lost is not None:
        return Found(check, CRASHED, str(outcome.lost.how))
    if outcome.status != "ok":
        return Found(check, "unknown", first_line(outcome.reason))
    return Found(check, outcome.parts["verdict"], outcome.parts["observation"])
