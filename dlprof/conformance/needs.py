"""What a clause is about: a framework that does not offer it need not keep the clause.

Each need is a function that raises :class:`NotApplicable`. They run before a check, and are no part
of its script.
"""

from __future__ import annotations

from typing import Any

from dlprof.conformance.check import Function, NotApplicable, words
from dlprof.conformance.counterpart import LAZY, NEW, Old, Recorder, Source, attempt
from dlprof.probes.capsule import capsule_name


def importing(framework: Any) -> None:
    if framework.from_dlpack is None:
        raise NotApplicable("it takes no array by DLPack")


def objects(framework: Any) -> None:
    importing(framework)
    if not framework.takes_objects:
        raise NotApplicable("it takes capsules only, and asks nothing")


def taking(framework: Any) -> None:
    """A cause that concerns all checks is reported once."""
    importing(framework)
    if framework.takes_objects and attempt(framework.take, Source())[1] is not None:
        raise NotApplicable("it refuses every object, see takes-objects")


def versions(framework: Any) -> None:
    """Flags and versions are in versioned capsules only."""
    taking(framework)
    source = Recorder()
    attempt(framework.take, source)
    if not any(capsule_name(capsule).endswith(NEW) for capsule, *_ in source.given):
        raise NotApplicable("it asks for no versioned capsule")


def old_capsules(framework: Any) -> None:
    taking(framework)
    if attempt(framework.take, Old())[1] is not None:
        raise NotApplicable("it takes no old capsules")


def keyword(name: str) -> Function:
    """Of ``from_dlpack``."""

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


def newest(framework: Any) -> dict[str, tuple[int, int]]:
    """The keywords for a capsule of the newest version; none if they are not known."""
    how = {"max_version": (1, 3)}
    x, error = attempt(framework.make, "C")
    if error is None and hasattr(framework, "export"):
        error = attempt(framework.export, x, **how)[1]
    return {} if isinstance(error, TypeError) else how


def export_keyword(name: str) -> Function:
    """Of ``__dlpack__``."""

    def need(framework: Any) -> None:
        methods(framework)
        x = framework.make("C")
        if isinstance(attempt(x.__dlpack__, **{name: None})[1], TypeError):
            raise NotApplicable(f"it does not know the keyword {name}")

    return need


def versioned_exports(framework: Any, **how: Any) -> None:
    exports(framework)
    capsule, error = attempt(framework.export, framework.make("C"), max_version=(1, 3), **how)
    if error is not None or capsule_name(capsule) != NEW:
        raise NotApplicable("it gives no versioned capsule")


def versioned_copies(framework: Any) -> None:
    versioned_exports(framework, copy=True)
