"""A user's own conversion, without a probe: from its text to a request like any other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dlprof.errors import Unmeasured, UsageError
from dlprof.probes.base import ANY_DEVICE
from dlprof.protocol.statement import (
    FaultyStatement,
    Side,
    UserCode,
    check_setup,
    check_source,
    normal,
    parse,
)
from dlprof.runner import worker_client
from dlprof.runner.axes import simulated_in
from dlprof.runner.catalog import Catalog, inspect_interpreter
from dlprof.runner.request import Axes, Request, Settings, settings_of
from dlprof.runner.worker_client import Outcome

WHERE = {"start": "the start", "import": "the setup", "statement": "the statement"}
NO_CONSUMER = {"name": "unknown", "module": "builtins", "probe": None}
"""The consumer of a statement that failed: the measurement says why."""


@dataclass(frozen=True)
class Statement:
    """What the user typed. ``source`` is the name of the array, None if dlprof is to find it."""

    statement: str
    setup: str = ""
    source: str | None = None

    @property
    def name(self) -> str | None:
        """Return the source as Python reads it."""
        return None if self.source is None else normal(self.source)

    def check(self) -> None:
        """Raise :class:`UsageError` for text that makes no sense."""
        try:
            check_setup(self.setup)
            tree = parse(self.statement)
            if self.name is not None:
                check_source(tree, self.name)
        except FaultyStatement as fault:
            raise UsageError(str(fault)) from None


def request_for(asked: Statement, values: Mapping[str, Any]) -> tuple[Request, Catalog]:
    """Return what to measure for a conversion with these options, and the catalog with its probes.

    Raises :class:`UsageError` for text that makes no sense, and :class:`Unmeasured` if the setup
    fails.
    """
    asked.check()
    python, probe_files = values["python"], values["probes"]
    simulated = simulated_in(values["devices"])
    settings = replace(settings_of(values), setup="")  # it makes the array, and is no more
    known = inspect_interpreter(python, probe_files, simulated)
    found = _recognize(asked, settings, known, probe_files)
    own = _own_code(asked, found)
    array = found["source"]
    request = Request(
        pairs=((own.producer.name, own.consumer.name),),
        axes=Axes(
            (tuple(array["shape"]),), (array["dtype"],), (array["layout"],), (array["device"],)
        ),
        settings=settings,
        python=python,
        probe_files=(*probe_files, own.reference()),
        command=("time", asked.statement),
        simulated=simulated,
    )
    return request, inspect_interpreter(python, request.probe_files, simulated)


def _recognize(
    asked: Statement, settings: Settings, catalog: Catalog, probe_files: tuple[str, ...]
) -> dict[str, Any]:
    variables: dict[str, str] = {}
    for probe in catalog.probes:
        variables |= probe.variables
    variables |= catalog.variables
    request = {
        "do": "recognize",
        "statement": asked.statement,
        "setup": asked.setup,
        "source": asked.name,
        "sources": [f"file:{Path(path).absolute()}" for path in probe_files],
    }
    with worker_client.start(catalog.python, variables) as worker:
        outcome = worker.ask(request, settings.limit_s)
    _check(outcome)
    return outcome.parts


def _check(outcome: Outcome) -> None:
    fault = outcome.parts.get("fault")
    if isinstance(fault, dict):
        reason = " ".join(str(fault["reason"]).split())
        kind = UsageError if fault["exit"] == UsageError.exit_code else Unmeasured
        raise kind(reason if kind is UsageError else f"nothing could be measured: {reason}")
    if "source" not in outcome.parts or "cut" not in outcome.parts:
        reason = outcome.reason or outcome.status
        if outcome.lost is not None:
            reason = f"{outcome.lost.how} during {WHERE.get(outcome.stage, outcome.stage)}"
        raise Unmeasured(f"nothing could be measured: {reason}")
    seen = outcome.parts["source"]
    if seen["device"] not in ANY_DEVICE:
        raise Unmeasured(
            f"{seen['name']} is on the device {seen['device']!r}, and dlprof knows cpu and cuda"
        )


def _own_code(asked: Statement, found: dict[str, Any]) -> UserCode:
    result = found.get("result") or {"side": NO_CONSUMER, "array": False, "device": ""}
    device = result["device"] if result["device"] in ANY_DEVICE else ""
    return UserCode(
        setup=asked.setup,
        source=found["source"]["name"],
        export=found["cut"]["export"],
        import_=found["cut"]["import_"],
        protocol=found.get("protocol", "native"),
        producer=Side(**found["source"]["side"]),
        consumer=Side(**result["side"]),
        result_device=device,
        returns_array=result["array"],
    )
