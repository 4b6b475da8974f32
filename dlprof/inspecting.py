"""An interpreter before anything is measured: its catalog, and whether a setup runs in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dlprof.catalog import Catalog, catalog_from
from dlprof.clean import first_line
from dlprof.errors import BadInterpreter, Unmeasured, UsageError
from dlprof.interpreter import Outcome, Worker, is_python
from dlprof.plan import Case
from dlprof.request import Request
from dlprof.runner import Interpreter, way
from dlprof.settings import Settings

INSPECT_LIMIT_S = 20.0
START_LIMIT_S = 60.0
"""For an interpreter to start, also from a slow disk."""
UNMEASURED = "interrupted, nothing measured"
SYNTHETIC = "synthetic"
NOT_FILES = (SYNTHETIC, "code:", "step:")
"""Sources of probes that stand as they are among the probe files of a request."""


def inspect_interpreter(python: str, probe_files: tuple[str, ...] = ()) -> Catalog:
    """The catalog of an interpreter; foreign probes are loaded there, never here.

    ``probe_files`` are paths, :data:`SYNTHETIC` for the probes of the synthetic framework, or
    what :mod:`dlprof.own_code` writes of a user's own conversion or :mod:`dlprof.steps` of a step.
    Raises :class:`UsageError` where the interpreter or a named probe file cannot be used, or does
    not answer within :data:`START_LIMIT_S`.
    """
    try:
        return _inspected(python, probe_files)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(UNMEASURED) from None


def _inspected(python: str, probe_files: tuple[str, ...]) -> Catalog:
    named = [
        path if path.startswith(NOT_FILES) else f"file:{Path(path).absolute()}"
        for path in probe_files
    ]
    skip: dict[str, str] = {}
    while True:
        with Worker(python, {}) as worker:
            request = {"do": "inspect", "sources": named, "skip": list(skip)}
            outcome = worker.ask(request, INSPECT_LIMIT_S, import_limit_s=START_LIMIT_S)
        if outcome.status == "ok":
            break
        if outcome.stage == "start" or outcome.stage in skip:
            is_none = outcome.status == "crashed" and not is_python(python)
            what = f"{python} is not a Python: it" if is_none else python
            raise BadInterpreter(f"{what} cannot run dlprof's worker: {_last_words(outcome)}")
        skip[outcome.stage] = _last_words(outcome)
    answer = outcome.parts["inspect"]
    answer["faults"] = {**answer["faults"], **skip}
    for source, fault in answer["faults"].items():
        if source in named:
            file, words = source.removeprefix("file:"), first_line(fault)
            raise UsageError(f"cannot use the probe file {file}: {words}")
    return catalog_from(python, answer)


def inspect_all(request: Request) -> dict[str, Catalog]:
    """The catalog of each interpreter of a request, by the name of its environment.

    Raises :class:`UsageError` as :func:`inspect_interpreter`.
    """
    return {
        name: inspect_interpreter(python, request.probe_files)
        for name, python in request.pythons.items()
    }


def _last_words(outcome: Outcome) -> str:
    lines = (outcome.output or "").splitlines()
    last = lines[-1].strip() if lines else ""
    reason = outcome.reason or outcome.status
    if outcome.stage == "start":
        return last or reason.removesuffix(" during start")
    return reason.replace(f" during {outcome.stage}", " while it was loaded")


def check_setup(firsts: Mapping[str, tuple[Interpreter, Case]], settings: Settings) -> None:
    """Raise :class:`Unmeasured` where the user's setup fails, in the first case of each place."""
    for name, (interpreter, case) in firsts.items() if settings.setup else ():
        with Worker(interpreter.python, interpreter.variables) as worker:
            asked = {"do": "setup", **way(case), "setup": settings.setup}
            outcome = worker.ask(asked, settings.limit_s)
        if outcome.status == "skipped" or not outcome.alive:
            where = f" in {name}" if name else ""
            ended = "" if outcome.alive else "the setup, or an import before it, ended: "
            raise Unmeasured(f"{ended}{_last_words(outcome)}{where}")
