"""``--resume``: take up the journal of a run that was stopped or killed."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dlprof.errors import SessionError, UsageError
from dlprof.runner import session as sessions
from dlprof.runner.catalog import Catalog, catalog_from, environment
from dlprof.runner.header import Environment, on_one_machine
from dlprof.runner.journal import Journal
from dlprof.runner.pairing import Case
from dlprof.runner.request import Request, request_from
from dlprof.runner.state import journal_of
from dlprof.text import json_text

SAME = ("machine", "cpu", "cores", "platform", "gpus", "cuda_devices", "implementation", "python",
        "dlprof")  # fmt: skip
"""What all rounds of a result must share, besides the versions of its frameworks."""


def header_of(
    request: Request, catalog: Catalog, cases: Sequence[Case], created: str
) -> dict[str, Any]:
    """The first line of a journal: what is measured, and where."""
    probes = [asdict(probe) for probe in catalog.probes]
    return {
        "created": created,
        "command": list(request.command),
        "request": request.as_dict(),
        "catalog": {"interpreter": catalog.interpreter, "probes": probes, "faults": catalog.faults},
        "cases": [case.record() for case in cases],
    }


def reopen(session: Path, into: Path | None = None) -> Journal:
    """The journal of a session to be finished; with ``into`` a copy, beside that session.

    Raises :class:`UsageError` if there is none.
    """
    path = journal_of(session)
    if not path.is_file():
        raise UsageError(_why_without(session, path))
    return Journal.resume(path, None if into is None else journal_of(into))


def _why_without(session: Path, journal: Path) -> str:
    try:
        found = sessions.load(session)
    except SessionError as error:
        return str(error)
    if found.complete:
        return f"{session} is complete: there is nothing to finish"
    return f"{session} cannot be finished without its journal, {journal}, which is not there"


def request_of(journal: Journal, command: tuple[str, ...]) -> Request:
    """The request of a journal. Raises :class:`UsageError` if this dlprof cannot read it."""
    try:
        return request_from(journal.header["request"], command)
    except (LookupError, TypeError, ValueError, UsageError):
        raise UsageError(f"{journal.path} was written by another dlprof") from None


def check_same(journal: Journal, catalog: Catalog, cases: Sequence[Case]) -> None:
    """Raise :class:`UsageError` if what is here is not what the first part was measured with."""
    used = {probe.name for case in cases for probe in (case.producer, case.consumer)}
    try:
        before = catalog_from(catalog.python, journal.header["catalog"], catalog.simulated)
        then = _surroundings(before, used)
    except (LookupError, TypeError, ValueError, AttributeError):
        raise UsageError(f"{journal.path} does not say what it was measured with") from None
    here = _surroundings(catalog, used)
    changed = [
        f"{name} was {then.get(name)} and is {here.get(name)}"
        for name in {**then, **here}
        if then.get(name) != here.get(name)
    ]
    old, new = (Environment.model_validate(environment(one, {})) for one in (before, catalog))
    if not changed and on_one_machine(old, new) is False:
        changed = [f"machine_id was {old.machine_id} and is {new.machine_id}"]
    planned = json.loads(json_text.dump([case.record() for case in cases]))
    if not changed and planned != journal.header["cases"]:
        changed = ["its cases are others now"]
    if changed:
        raise UsageError(f"the session cannot be finished here: {', '.join(changed)}")


def _surroundings(catalog: Catalog, frameworks: Collection[str]) -> dict[str, Any]:
    """What all rounds of one result must share."""
    found = environment(catalog, {})
    gpus = found["gpus"]  # or why they cannot be named
    found["gpus"] = [gpu.get("name") for gpu in gpus] if isinstance(gpus, list) else gpus
    same = {name: found.get(name) for name in SAME}
    for probe in catalog.probes:
        if probe.name in frameworks:
            same |= {probe.distribution or probe.name: probe.version, **probe.also}
    return same
