"""Checks: a clause of a standard, and a function that tests whether a framework keeps it.

A check returns if the clause holds, and raises one of the answers below if not. Its text is
the script that shows the answer without dlprof, see :mod:`dlprof.conformance.script`.

A need is a function that raises :class:`NotApplicable` if the clause is not about the framework.
Needs run before a check, and are no part of its script.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dlprof.conformance.counterpart import (
    CPU,
    HALVES,
    LAZY,
    NEW,
    OLD,
    Source,
    array_device,
    attempt,
    available_dtypes,
)
from dlprof.probes.capsule import capsule_name

STANDARDS = "DLPack 1.3, array API 2025.12"
HEADER = "dlpack.h"
DELETER = f"{HEADER}, DLManagedTensorVersioned.deleter"
READ_ONLY_FLAG = f"{HEADER}, DLPACK_FLAG_BITMASK_READ_ONLY"
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
"""Addresses by the beginning of a source. The header's end with a name of C."""
SEVERITIES = ("must", "should", "may")
"""From the strictest word of a standard to the mildest."""
LONGEST = 300


class CheckAnswer(Exception):
    """An answer of a check other than "holds", with the observation as its message.

    The cause is the error of the framework: ``raise Violated("it refuses") from error``.
    """

    verdict = ""


class Violated(CheckAnswer):
    verdict = "violated"


class Refused(CheckAnswer):
    """The framework raises, and the standard lets it. The message is in its own words."""

    verdict = "refused"


class Unknown(CheckAnswer):
    verdict = "unknown"


class NotApplicable(CheckAnswer):
    """The clause is about an optional feature that the framework lacks."""

    verdict = "not applicable"


Function = Callable[[Any], None]
"""Takes a framework."""


@dataclass(frozen=True)
class Check:
    """``role`` is "producer" or "consumer"; ``severity`` is the word of the standard."""

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
        return PAGES[begin] + (self.source.removeprefix(f"{HEADER}, ") if begin == HEADER else "")


CHECKS: dict[str, Check] = {}
"""All checks by name. The import of :mod:`dlprof.conformance` declares them."""


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
    """Return the verdict and the observation."""
    try:
        for need in check.needs:
            need(framework)
        check.run(framework)
    except CheckAnswer as found:
        cause = found.__cause__
        return found.verdict, f"{found}: {words(cause)}" if cause else str(found)
    except Exception as error:  # noqa: BLE001 - a framework raises anything, anywhere
        return "unknown", f"the check ended with {words(error)}"
    return "holds", ""


def words(error: BaseException) -> str:
    """Return the first line of a framework's message, or the last one of a traceback in it."""
    lines = str(error).strip().splitlines() or ["no message"]
    return f"{type(error).__name__}: {lines[-lines[0].startswith('Traceback')]}"[:LONGEST]


def raises(kind: type[Exception], call: Any, *arguments: Any, **keywords: Any) -> None:
    """See that a call ends with this error."""
    try:
        call(*arguments, **keywords)
    except kind:
        return
    except Exception as error:
        raise Violated("it raises") from error
    raise Violated("it raises nothing")


# Needs


def on_host(_: Any) -> None:
    if array_device()[0] != CPU:
        raise NotApplicable("its arrays are on a CUDA device")


def importing(framework: Any) -> None:
    if framework.from_dlpack is None:
        raise NotApplicable("it takes no array by DLPack")


def taking(framework: Any) -> None:
    """Let one check report a cause that concerns all."""
    importing(framework)
    if framework.takes_objects and attempt(framework.take, Source())[1] is not None:
        raise NotApplicable("it refuses every object, see takes-objects")


def objects(framework: Any) -> None:
    taking(framework)
    if not framework.takes_objects:
        raise NotApplicable("it takes capsules only, and asks nothing")


def versions(framework: Any) -> None:
    """Flags and versions are in versioned capsules only."""
    taking(framework)
    source = Source()
    attempt(framework.take, source)
    if not any(capsule_name(capsule).endswith(NEW) for capsule, *_ in source.capsules):
        raise NotApplicable("it asks for no versioned capsule")


def old_capsules(framework: Any) -> None:
    taking(framework)
    if attempt(framework.take, Source(only=OLD))[1] is not None:
        raise NotApplicable("it takes no old capsules")


def import_keyword(name: str) -> Function:
    """Need a keyword of ``from_dlpack``."""

    def need(framework: Any) -> None:
        taking(framework)
        if isinstance(attempt(framework.take, Source(), **{name: None})[1], TypeError):
            raise NotApplicable(f"it does not know the keyword {name}")

    return need


def arrays(kind: str) -> Function:
    def need(framework: Any) -> None:
        error = attempt(framework.make, kind)[1]
        if error is not None:  # a probe without a text for that raises a KeyError
            why = "" if isinstance(error, KeyError) else f": {words(error)}"
            raise NotApplicable(f"it makes no {kind} array{why}")

    return need


def halves(framework: Any) -> None:
    if not available_dtypes(framework, HALVES):
        raise NotApplicable(f"it has neither {' nor '.join(HALVES)}")


def lazy_arrays(framework: Any) -> None:
    exports(framework)
    if all(attempt(framework.make, kind)[1] for kind in LAZY):
        raise NotApplicable("its arrays always hold their values")


def immutable(framework: Any) -> None:
    if not framework.is_immutable:
        raise NotApplicable("its arrays can be written")


def methods(framework: Any) -> None:
    arrays("C")(framework)
    if not hasattr(framework.make("C"), "__dlpack__"):
        raise NotApplicable("its array has no __dlpack__")


def exports(framework: Any) -> None:
    if not hasattr(framework, "export"):
        raise NotApplicable("it gives no array by DLPack")
    (methods if framework.gives_objects else arrays("C"))(framework)


def keyword(name: str) -> Function:
    """Need a keyword of ``__dlpack__``."""

    def need(framework: Any) -> None:
        methods(framework)
        x = framework.make("C")
        if isinstance(attempt(x.__dlpack__, **{name: None})[1], TypeError):
            raise NotApplicable(f"it does not know the keyword {name}")

    return need


def versioned_exports(framework: Any, **keywords: Any) -> None:
    exports(framework)
    capsule, error = attempt(framework.export, framework.make("C"), max_version=(1, 3), **keywords)
    if error is not None or capsule_name(capsule) != NEW:
        raise NotApplicable("it gives no versioned capsule")


def versioned_copies(framework: Any) -> None:
    versioned_exports(framework, copy=True)
