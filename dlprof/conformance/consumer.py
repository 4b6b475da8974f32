"""Checks of a consumer: its requests to a producer, versions and flags."""

from __future__ import annotations

import gc
import struct
import time
from functools import partial
from typing import Any

from dlprof.conformance.check import (
    EXPORT,
    HEADER,
    PYTHON,
    READ_ONLY_FLAG,
    SEVERITIES,
    NotApplicable,
    Refused,
    Violated,
    check,
    importing,
    objects,
    on_host,
    taking,
    versions,
)
from dlprof.conformance.counterpart import (
    NEW,
    OLD,
    READ_ONLY,
    USED,
    VALUES,
    Source,
    capsule_destructor,
    deletions,
    write,
)
from dlprof.probes.capsule import capsule_name

must, should, may = (partial(check, "consumer", word) for word in SEVERITIES)
PATIENCE_S = 2.0


def arrives(framework: Any, source: Any, refusal: Any = Violated, **keywords: Any) -> Any:
    """Return the framework's array of our source; ``refusal`` is the answer if it refuses.

    A clause that says what a field means allows a refusal. A clause that says that an array is
    taken does not.
    """
    try:
        return framework.take(source, **keywords)
    except Exception as error:
        raise refusal("it refuses") from error


def holds(framework: Any, x: Any, values: Any = VALUES, shape: tuple[int, ...] = (2, 3)) -> None:
    """See that an array has these values and this shape."""
    if framework.shape(x) != shape:
        raise Violated(f"the shape {shape} becomes {framework.shape(x)}")
    if framework.values(x) != list(values):
        raise Violated(f"the values {list(values)} become {framework.values(x)}")


def refuses(framework: Any, source: Any) -> None:
    """See that the framework does not take our source."""
    try:
        x = framework.take(source)
    except Exception:  # noqa: BLE001, S110 - the clauses name no type
        pass
    else:
        raise Violated(f"it makes an array of shape {framework.shape(x)} of it")


def shares(framework: Any, x: Any, source: Source) -> bool:
    """Whether a change of our memory shows in the array."""
    write(source.data, struct.pack("f", 99))
    is_shared: bool = framework.values(x)[0] == 99  # noqa: PLR2004
    return is_shared


def released(source: Source) -> None:
    """See that the deleter was called once for each capsule; a framework may need a moment.

    An unconsumed capsule calls it when it is dropped.
    """
    unused = sum(
        capsule_name(capsule) not in USED.values() and capsule_destructor(capsule) is not None
        for capsule, *_ in source.capsules
    )
    end = time.monotonic() + PATIENCE_S
    while unused + deletions(source) < len(source.capsules) and time.monotonic() < end:
        gc.collect()
        time.sleep(0.01)
    if unused + deletions(source) != len(source.capsules):
        count = unused + deletions(source)
        raise Violated(f"{len(source.capsules)} capsules, and {count} calls of the deleter")


# Requests to the producer


@should(f"{PYTHON}, Syntax", "from_dlpack takes any object with both methods.", importing)
def takes_objects(framework: Any) -> None:
    try:
        framework.from_dlpack(Source())
    except Exception as error:
        raise Violated("it refuses an object") from error


@should(f"{PYTHON}, Implementation", "DLManagedTensorVersioned is taken.", taking)
def takes_versioned(framework: Any) -> None:
    holds(framework, arrives(framework, Source(only=NEW)))


@should(f"{PYTHON}, Implementation", "The old DLManagedTensor is taken, too.", taking)
def takes_legacy(framework: Any) -> None:
    holds(framework, arrives(framework, Source(only=OLD)))


@may(f"{EXPORT}, Notes", "A producer that knows no keyword is asked again.", objects)
def asks_again_bare(framework: Any) -> None:
    arrives(framework, Source(keywords=(), only=OLD), Refused)


@should(f"{EXPORT}, Notes", "A producer that knows only stream is asked again.", objects)
def asks_again_with_stream(framework: Any) -> None:
    holds(framework, arrives(framework, Source(keywords=("stream",), only=OLD)))


def requests(framework: Any) -> list[tuple[Any, dict[str, Any]]]:
    """Return the arguments of each call of ``__dlpack__``."""
    source = Source()
    arrives(framework, source)
    return [call for call in source.calls if call[0] != "__dlpack_device__"]


@must(f"{EXPORT}, stream", "The stream is None on the CPU.", on_host, objects)
def asks_for_no_stream(framework: Any) -> None:
    for positional, keywords in requests(framework):
        if positional or keywords.get("stream") is not None:
            raise Violated(f"it calls __dlpack__ with {positional} {keywords}")


@should(f"{EXPORT}, max_version", "The consumer says its newest version.", objects)
def asks_with_max_version(framework: Any) -> None:
    values = [keywords.get("max_version") for _, keywords in requests(framework)]
    if not any(isinstance(item, tuple) and list(map(type, item)) == [int, int] for item in values):
        raise Violated(f"it calls __dlpack__ with max_version {values}")


@should(f"{PYTHON}, Syntax", "The consumer asks for the device of the array.", objects)
def asks_for_device(framework: Any) -> None:
    source = Source()
    arrives(framework, source)
    if ("__dlpack_device__", {}) not in source.calls:
        raise Violated("it never calls __dlpack_device__")


# Versions and flags


@must(f"{HEADER}, DLPackVersion", "A newer major version is not used.", versions)
def major_version_2(framework: Any) -> None:
    refuses(framework, Source(version=(2, 0)))


@must(READ_ONLY_FLAG, "A read-only tensor stays read-only.", versions)
def read_only_stays(framework: Any) -> None:
    source = Source(flags=READ_ONLY)
    try:
        x = framework.take(source)
    except Exception as error:
        raise NotApplicable("it refuses read-only tensors") from error
    if shares(framework, x, source) and framework.writable(x):
        raise Violated("its array says that it is writable")


@should(f"{EXPORT}, Notes", "A read-only tensor is taken, not refused.", versions)
def read_only_taken(framework: Any) -> None:
    holds(framework, arrives(framework, Source(flags=READ_ONLY)))
