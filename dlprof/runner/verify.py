"""What each framework can do, found by importing it: each in a worker of its own."""

from __future__ import annotations

from typing import Any

from dlprof.plan.catalog import Catalog, ProbeInfo
from dlprof.runner.inspecting import INSPECT_LIMIT_S
from dlprof.runner.interpreter import Worker


def verify_all(catalog: Catalog) -> dict[str, dict[str, Any]]:
    """Import every framework that was found, each in its own worker; say what it can do."""
    return {probe.name: verify(catalog, probe) for probe in catalog.probes if probe.found}


def verify(catalog: Catalog, probe: ProbeInfo) -> dict[str, Any]:
    """Import one framework; what it can do, or the ``error`` that it ended with."""
    with Worker(catalog.python, probe.variables) as worker:
        outcome = worker.ask(
            {"do": "verify", "source": probe.source, "name": probe.name}, INSPECT_LIMIT_S
        )
    found: dict[str, Any] = outcome.parts.get("verify", {"error": outcome.reason})
    return found


def why_unusable(catalog: Catalog, probe: ProbeInfo, device: str) -> str | None:
    """Why a framework cannot use ``device``, in its own words; None if it can."""
    found = verify(catalog, probe)
    if "devices" not in found:
        return str(found.get("error") or f"{probe.name} cannot be imported")
    said = str(found["devices"].get(device, f"{probe.name} has no arrays on {device}"))
    return None if said == "usable" else said
