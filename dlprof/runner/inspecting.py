"""An interpreter before anything is measured: its catalog."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlprof.errors import BadInterpreter, UsageError
from dlprof.plan.catalog import Catalog, catalog_from
from dlprof.runner.interpreter import Outcome, Worker, is_python
from dlprof.text.clean import first_line

if TYPE_CHECKING:  # an inspection begins before what takes long to import
    from typing_extensions import Self

INSPECT_LIMIT_S = 20.0
START_LIMIT_S = 60.0
"""For an interpreter to start, also from a slow disk."""
UNMEASURED = "interrupted, nothing measured"
SYNTHETIC = "synthetic"
NOT_FILES = (SYNTHETIC, "code:", "step:")
"""Sources of probes that stand as they are among the probe files of a request."""


class Inspection:
    """An interpreter that says what it has, while whoever asked does something else.

    ``probe_files`` are paths, :data:`SYNTHETIC` for the probes of the synthetic framework, or
    what is written of a user's own conversion or of a step of inference.
    Foreign probes are loaded there, never here. Raises :class:`UsageError` where the interpreter
    or a named probe file cannot be used, or does not answer within :data:`START_LIMIT_S`.
    """

    def __init__(self, python: str, probe_files: tuple[str, ...] = ()) -> None:
        self.python = python
        self._named = [
            path if path.startswith(NOT_FILES) else f"file:{Path(path).absolute()}"
            for path in probe_files
        ]
        self._skip: dict[str, str] = {}
        with nothing_measured():  # who enters the inspection comes here first
            self._worker = self._asked()

    def catalog(self) -> Catalog:
        """What it has; waits for the answer."""
        answer = self._answer()
        answer["faults"] = {**answer["faults"], **self._skip}
        for source, fault in answer["faults"].items():
            if source in self._named:
                file, words = source.removeprefix("file:"), first_line(fault)
                raise UsageError(f"cannot use the probe file {file}: {words}")
        return catalog_from(self.python, answer)

    def close(self) -> None:
        self._worker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with nothing_measured():
            self.close()
        if kind is KeyboardInterrupt:
            raise KeyboardInterrupt(UNMEASURED) from None

    def _asked(self) -> Worker:
        worker = Worker(self.python, {})
        worker.send({"do": "inspect", "sources": self._named, "skip": list(self._skip)})
        return worker

    def _answer(self) -> dict[str, Any]:
        """A source that a worker died of is skipped by the next one."""
        while True:
            outcome = self._worker.wait(INSPECT_LIMIT_S, import_limit_s=START_LIMIT_S)
            self._worker.close()
            if outcome.status == "ok":
                found: dict[str, Any] = outcome.parts["inspect"]
                return found
            if outcome.stage == "start" or outcome.stage in self._skip:
                is_none = outcome.status == "crashed" and not is_python(self.python)
                what = f"{self.python} is not a Python: it" if is_none else self.python
                raise BadInterpreter(f"{what} cannot run dlprof's worker: {last_words(outcome)}")
            self._skip[outcome.stage] = last_words(outcome)
            self._worker = self._asked()


@contextmanager
def nothing_measured() -> Iterator[None]:
    """Have a Ctrl-C say so."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(UNMEASURED) from None


def inspect_interpreter(python: str, probe_files: tuple[str, ...] = ()) -> Catalog:
    """The catalog of an interpreter; see :class:`Inspection`."""
    with Inspection(python, probe_files) as inspection:
        return inspection.catalog()


def last_words(outcome: Outcome) -> str:
    """What a worker said before it ended, else how it ended."""
    lines = (outcome.output or "").splitlines()
    last = lines[-1].strip() if lines else ""
    reason = outcome.reason or outcome.status
    if outcome.stage == "start":
        return last or reason.removesuffix(" during start")
    return reason.replace(f" during {outcome.stage}", " while it was loaded")
