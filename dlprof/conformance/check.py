"""What a check is: a clause of a standard, and a function that sees whether a framework keeps it.

A check returns if the framework conforms, and raises one of the answers below if not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

HEADER = "dlpack.h 1.3"
PYTHON = "DLPack Python specification"
EXPORT = "array API 2025.12, __dlpack__"
DEVICE = "array API 2025.12, __dlpack_device__"
IMPORT = "array API 2025.12, from_dlpack"
LONGEST = 300


class Answer(Exception):
    """An answer of a check besides "conforms"; the message says what was seen."""

    verdict = ""


class Deviates(Answer):
    verdict = "deviates"


class Refused(Answer):
    """The framework raises, and the standard lets it. The message is in its own words."""

    verdict = "refused"


class Unknown(Answer):
    verdict = "unknown"


class NotApplicable(Answer):
    """The framework does not offer what the clause is about, and need not."""

    verdict = "not applicable"


@dataclass(frozen=True)
class Check:
    """``role`` is "producer" or "consumer"; ``severity`` is the word of the standard."""

    name: str
    role: str
    severity: str
    source: str
    clause: str
    run: Callable[[Any], None]


CHECKS: dict[str, Check] = {}
"""By name, in the order of the modules :mod:`consumer`, :mod:`producer` and :mod:`exchange`."""

Decorated = Callable[[Callable[[Any], None]], Callable[[Any], None]]


def check(role: str, severity: str, source: str, clause: str) -> Decorated:
    """Declare a check; its name is the name of the function, with dashes."""

    def declare(run: Callable[[Any], None]) -> Callable[[Any], None]:
        name = run.__name__.replace("_", "-")
        CHECKS[name] = Check(name, role, severity, source, clause, run)
        return run

    return declare


def answer(run: Callable[[Any], None], framework: Any) -> tuple[str, str]:
    """The verdict and what was seen."""
    try:
        run(framework)
    except Answer as found:
        return found.verdict, str(found)
    except Exception as error:  # noqa: BLE001 - a framework raises anything, anywhere
        return "unknown", f"the check ended with {words(error)}"
    return "conforms", ""


def words(error: BaseException) -> str:
    """The first line of what a framework says; the last one of a traceback in it."""
    lines = str(error).strip().splitlines() or ["no message"]
    return f"{type(error).__name__}: {lines[-lines[0].startswith('Traceback')]}"[:LONGEST]
