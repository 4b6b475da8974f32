"""The interpreter before anything is measured: its catalog, and what each framework can do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlprof.errors import BadInterpreter, UsageError
from dlprof.runner import worker_client
from dlprof.runner.catalog import Catalog, ProbeInfo, catalog_from
from dlprof.runner.worker_client import Outcome, WorkerClient
from dlprof.simulated import environment
from dlprof.text.clean import first_line, sanitised

if TYPE_CHECKING:
    from typing_extensions import Self

INSPECT_LIMIT_S = 20.0
UNMEASURED = "interrupted, nothing measured"
SYNTHETIC = "synthetic"
NOT_FILES = (SYNTHETIC, "code:", "step:")
"""Sources of probes that are no files."""


class Inspection:
    """An inspection that runs while the caller does something else.

    ``probe_files`` are paths, :data:`SYNTHETIC` for the synthetic framework, or the source of a
    user's own conversion or of a step of inference. Foreign probes are loaded in the worker, never
    here. The interpreter gets so many ``simulated`` CUDA devices, or the machine's own driver.
    Raises :class:`UsageError` if the interpreter or a named probe file cannot be used.
    """

    def __init__(self, python: str, probe_files: tuple[str, ...] = (), simulated: int = 0) -> None:
        self.python = python
        self._simulated = simulated
        self._named = [
            path if path.startswith(NOT_FILES) else f"file:{Path(path).absolute()}"
            for path in probe_files
        ]
        self._sources = {sanitised(source): source for source in self._named}
        """By what the worker calls them: its words are made harmless."""
        self._skip: dict[str, str] = {}
        with nothing_measured():
            self._worker = self._asked()

    def catalog(self) -> Catalog:
        """Wait for the answer."""
        answer = self._answer()
        faults = {self._source(name): fault for name, fault in answer["faults"].items()}
        answer["faults"] = {**faults, **self._skip}
        for entry in answer["probes"]:
            entry["source"] = self._source(entry["source"])
        for source, fault in answer["faults"].items():
            if source in self._named:
                file, words = source.removeprefix("file:"), first_line(fault)
                raise UsageError(f"cannot use the probe file {file}: {words}")
        return catalog_from(self.python, answer, self._simulated)

    def close(self) -> None:
        self._worker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with nothing_measured():
            self.close()
        if kind is KeyboardInterrupt:
            raise KeyboardInterrupt(UNMEASURED) from None

    def _asked(self) -> WorkerClient:
        worker = worker_client.start(self.python, environment.variables(self._simulated))
        worker.send({"do": "inspect", "sources": self._named, "skip": list(self._skip)})
        return worker

    def _source(self, name: str) -> str:
        """The source that a worker named: the next worker is asked for it."""
        return self._sources.get(name, name)

    def _answer(self) -> dict[str, Any]:
        """A source that ended a worker is skipped by the next one."""
        while True:
            outcome = self._worker.wait(INSPECT_LIMIT_S)
            self._worker.close()
            # A probe's file may write into the pipe.
            if outcome.status == "ok" and isinstance(found := outcome.parts.get("inspect"), dict):
                return found
            source = self._source(outcome.stage)
            if source == "start" or source in self._skip:
                why = last_words(outcome)
                raise BadInterpreter(f"{self.python} cannot run dlprof's worker: {why}")
            self._skip[source] = last_words(outcome)
            self._worker = self._asked()


@contextmanager
def nothing_measured() -> Iterator[None]:
    """A Ctrl-C inside says that nothing was measured."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(UNMEASURED) from None


def inspect_interpreter(
    python: str, probe_files: tuple[str, ...] = (), simulated: int = 0
) -> Catalog:
    with Inspection(python, probe_files, simulated) as inspection:
        return inspection.catalog()


def verify(catalog: Catalog, probe: ProbeInfo) -> dict[str, Any]:
    """Import one framework: what it can do, or the ``error`` that it ended with."""
    with worker_client.start(catalog.python, {**probe.variables, **catalog.variables}) as worker:
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
    answer = str(found["devices"].get(device, f"{probe.name} has no arrays on {device}"))
    return None if answer == "usable" else answer


def last_words(outcome: Outcome) -> str:
    """The last line that a worker wrote before it ended, or how it ended."""
    if outcome.status == "ok":
        return "its answer did not arrive: what was loaded may have written into the pipe"
    if outcome.lost is None:
        return outcome.reason or outcome.status
    lines = (outcome.output or "").splitlines()
    how = str(outcome.lost.how)
    if outcome.stage == "start":
        return lines[-1].strip() if lines else how
    return f"{how} while it was loaded"
