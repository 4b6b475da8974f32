"""The interpreter before anything is measured: its catalog, and what each framework can do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dlprof.errors import BadInterpreter, UsageError
from dlprof.runner import worker_client
from dlprof.runner.catalog import Catalog, ProbeInfo, catalog_from
from dlprof.runner.worker_client import Outcome
from dlprof.simulated import environment
from dlprof.text.clean import first_line, sanitised

INSPECT_LIMIT_S = 20.0
UNMEASURED = "interrupted, nothing measured"
SYNTHETIC = "synthetic"
NOT_FILES = (SYNTHETIC, "code:", "step:")
"""Sources of probes that are no files."""


def inspect_interpreter(
    python: str, probe_files: tuple[str, ...] = (), simulated: int = 0
) -> Catalog:
    """Return the catalog of an interpreter, with so many ``simulated`` CUDA devices.

    ``probe_files`` are paths, :data:`SYNTHETIC` for the synthetic framework, or the source of a
    user's own conversion or of a step of inference. Foreign probes are loaded in a worker, never
    here. Raises :class:`UsageError` if the interpreter or a named probe file cannot be used.
    """
    sources = [
        path if path.startswith(NOT_FILES) else f"file:{Path(path).absolute()}"
        for path in probe_files
    ]
    named = {sanitised(source): source for source in sources}  # by what the worker calls them
    with nothing_measured():
        answer = _answer(python, named, simulated)
    for entry in answer["probes"]:
        entry["source"] = named.get(entry["source"], entry["source"])
    for source, fault in answer["faults"].items():
        if source in named:
            file, words = source.removeprefix("file:"), first_line(fault)
            raise UsageError(f"cannot use the probe file {file}: {words}")
    return catalog_from(python, answer, simulated)


def _answer(python: str, named: Mapping[str, str], simulated: int) -> dict[str, Any]:
    """Ask a worker for its catalog. A source that ends the worker is skipped by the next one."""
    faults: dict[str, str] = {}
    while True:
        skip = [named.get(source, source) for source in faults]
        with worker_client.start(python, environment.variables(simulated)) as worker:
            asked = {"do": "inspect", "sources": [*named.values()], "skip": skip}
            outcome = worker.ask(asked, INSPECT_LIMIT_S)
        found = outcome.parts.get("inspect")
        # A probe's file may write into the pipe.
        if outcome.status == "ok" and isinstance(found, dict):
            return {**found, "faults": found["faults"] | faults}
        source, why = outcome.stage, last_words(outcome)
        if source == "start" or source in faults:
            raise BadInterpreter(f"{python} cannot run dlprof's worker: {why}")
        faults[source] = why


@contextmanager
def nothing_measured() -> Iterator[None]:
    """Say after a Ctrl-C inside that nothing was measured."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(UNMEASURED) from None


def verify(catalog: Catalog, probe: ProbeInfo) -> dict[str, Any]:
    """Import one framework. Return what it can do, or the ``error`` that it ended with."""
    with worker_client.start(catalog.python, {**probe.variables, **catalog.variables}) as worker:
        outcome = worker.ask(
            {"do": "verify", "source": probe.source, "name": probe.name}, INSPECT_LIMIT_S
        )
    found: dict[str, Any] = outcome.parts.get("verify", {"error": outcome.reason})
    return found


def why_unusable(catalog: Catalog, probe: ProbeInfo, device: str) -> str | None:
    """Return why a framework cannot use ``device``, in its own words; None if it can."""
    found = verify(catalog, probe)
    if "devices" not in found:
        return str(found.get("error") or f"{probe.name} cannot be imported")
    answer = str(found["devices"].get(device, f"{probe.name} has no arrays on {device}"))
    return None if answer == "usable" else answer


def last_words(outcome: Outcome) -> str:
    """Return the last line that a worker wrote before it ended, or how it ended."""
    if outcome.status == "ok":
        return "its answer did not arrive: what was loaded may have written into the pipe"
    if outcome.lost is None:
        return outcome.reason or outcome.status
    lines = (outcome.output or "").splitlines()
    how = str(outcome.lost.how)
    if outcome.stage == "start":
        return lines[-1].strip() if lines else how
    return f"{how} while it was loaded"
