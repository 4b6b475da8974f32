"""What a check is: a clause of a standard, and a function that sees whether a framework keeps it.

A check returns if the clause holds, and raises one of the answers below if not. Its text is
the script that shows the answer without dlprof, see :mod:`dlprof.conformance.script`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

STANDARDS = "DLPack 1.3, array API 2025.12"
HEADER = "dlpack.h"
PYTHON = "DLPack for Python"
ARRAY_API = "array API"
EXPORT = f"{ARRAY_API}, __dlpack__"
DEVICE = f"{ARRAY_API}, __dlpack_device__"
IMPORT = f"{ARRAY_API}, from_dlpack"
INTERCHANGE = f"{ARRAY_API}, Data interchange"
_STANDARD = "https://data-apis.org/array-api/2025.12"
_FUNCTIONS = f"{_STANDARD}/API_specification/generated/array_api"
_DLPACK = "https://dmlc.github.io/dlpack/latest"
PAGES = {
    HEADER: f"{_DLPACK}/c_api.html#c.",
    f"{PYTHON}, Syntax": f"{_DLPACK}/python_spec.html#syntax-for-data-interchange-with-dlpack",
    f"{PYTHON}, Semantics": f"{_DLPACK}/python_spec.html#semantics",
    f"{PYTHON}, Implementation": f"{_DLPACK}/python_spec.html#implementation",
    EXPORT: f"{_FUNCTIONS}.array.__dlpack__.html",
    DEVICE: f"{_FUNCTIONS}.array.__dlpack_device__.html",
    IMPORT: f"{_FUNCTIONS}.from_dlpack.html",
    INTERCHANGE: f"{_STANDARD}/design_topics/data_interchange.html",
}
"""Addresses by how a source begins. In that of the header, the place is a name of C."""
NAMES = {
    "READ_ONLY": "DLPACK_FLAG_BITMASK_READ_ONLY",
    "IS_COPIED": "DLPACK_FLAG_BITMASK_IS_COPIED",
    "SUBBYTE_TYPE_PADDED": "DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED",
    "deleter": "DLManagedTensorVersioned.deleter",
    "ManagedTensorAllocator": "DLPackManagedTensorAllocator",
    "ManagedTensorFromPyObject": "DLPackManagedTensorFromPyObjectNoSync",
    "ManagedTensorToPyObject": "DLPackManagedTensorToPyObjectNoSync",
    "DLTensorFromPyObject": "DLPackDLTensorFromPyObjectNoSync",
}
"""Names of C whose short form stands in a source."""
SEVERITIES = ("must", "should", "may")
"""From the strictest word of a standard to the mildest."""
LONGEST = 300


class Answer(Exception):
    """An answer of a check besides "holds"; the message says what was seen.

    What a framework raised is the cause: ``raise Violated("it refuses") from error``.
    """

    verdict = ""


class Violated(Answer):
    verdict = "violated"


class Refused(Answer):
    """The framework raises, and the standard lets it. The message is in its own words."""

    verdict = "refused"


class Unknown(Answer):
    verdict = "unknown"


class NotApplicable(Answer):
    """The framework does not offer what the clause is about, and need not."""

    verdict = "not applicable"


Function = Callable[[Any], None]
"""Of a framework."""


@dataclass(frozen=True)
class Check:
    """``role`` is "producer" or "consumer"; ``severity`` is the word of the standard. Each of
    ``needs`` raises :class:`NotApplicable` for a framework that the clause is not about.
    """

    name: str
    role: str
    severity: str
    source: str
    clause: str
    run: Function
    needs: tuple[Function, ...] = ()

    @property
    def link(self) -> str:
        """Address of the source, and of the place in it."""
        begin = max(filter(self.source.startswith, PAGES), key=len)
        name = self.source.removeprefix(f"{HEADER}, ")
        return PAGES[begin] + (NAMES.get(name, name) if begin == HEADER else "")


CHECKS: dict[str, Check] = {}
"""By name; :mod:`dlprof.conformance.every` has all."""


def check(
    role: str, severity: str, source: str, clause: str, *needs: Function
) -> Callable[[Function], Function]:
    """Declare a check; its name is the name of the function, with dashes."""

    def declare(run: Function) -> Function:
        name = run.__name__.replace("_", "-")
        CHECKS[name] = Check(name, role, severity, source, clause, run, needs)
        return run

    return declare


def answer(check: Check, framework: Any) -> tuple[str, str]:
    """The verdict and what was seen."""
    try:
        for need in check.needs:
            need(framework)
        check.run(framework)
    except Answer as found:
        cause = found.__cause__
        return found.verdict, f"{found}{between(str(found))}{words(cause)}" if cause else str(found)
    except Exception as error:  # noqa: BLE001 - a framework raises anything, anywhere
        return "unknown", f"the check ended with {words(error)}"
    return "holds", ""


def between(seen: str) -> str:
    """What stands between what was seen and what the framework raised."""
    return " " if seen.endswith(("raises", "becomes")) else ": "


def words(error: BaseException) -> str:
    """The first line of what a framework says; the last one of a traceback in it."""
    lines = str(error).strip().splitlines() or ["no message"]
    return f"{type(error).__name__}: {lines[-lines[0].startswith('Traceback')]}"[:LONGEST]
