"""Turn the command of an external program into a request."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dlprof.errors import UsageError
from dlprof.protocol.statement import ProgramSource
from dlprof.runner.axes import NO_TIMES, simulated_in
from dlprof.runner.catalog import Catalog, inspect_interpreter
from dlprof.runner.request import Request, make_request


def program_source(command: str, folder: Path, values: Mapping[str, Any]) -> str:
    """Return the source of a program's probes. The program starts in ``folder``."""
    if simulated_in(values["devices"]):
        raise UsageError(f"a program needs {NO_TIMES}")
    return ProgramSource(command, str(folder.absolute()), values["timeout"]).reference()


def program_pair(catalog: Catalog, source: str) -> tuple[str, str]:
    """Return the names of the program's language and of its library."""
    names = [probe.name for probe in catalog.probes if probe.source == source]
    return names[0], names[-1]


def request_for_program(command: str, values: Mapping[str, Any]) -> tuple[Request, Catalog]:
    """Return the request for all paths of a program that starts here.

    Raises :class:`UsageError` if the program does not say hello.
    """
    source = program_source(command, Path.cwd(), values)
    probes = (*values["probes"], source)
    catalog = inspect_interpreter(values["python"], probes)
    pair = program_pair(catalog, source)
    return make_request({**values, "probes": probes}, (pair,), ("time",)), catalog
