"""What each framework can do, found by importing it: each in a worker of its own."""

from __future__ import annotations

from typing import Any

from dlprof.catalog import Catalog
from dlprof.inspecting import INSPECT_LIMIT_S
from dlprof.interpreter import Worker


def verify_all(catalog: Catalog) -> dict[str, dict[str, Any]]:
    """Import every framework that was found, each in its own worker; say what it can do."""
    found = {}
    for probe in catalog.probes:
        if not probe.found:
            continue
        with Worker(catalog.python, probe.variables) as worker:
            outcome = worker.ask(
                {"do": "verify", "source": probe.source, "name": probe.name}, INSPECT_LIMIT_S
            )
        found[probe.name] = outcome.parts.get("verify", {"error": outcome.reason})
    return found
