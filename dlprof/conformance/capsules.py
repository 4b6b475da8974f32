"""Checks of a producer: its capsules and their deleters."""

from __future__ import annotations

import ctypes
import gc
import os
from functools import partial
from pathlib import Path
from typing import Any

from dlprof.conformance.check import HEADER, PYTHON, SEVERITIES, Unknown, Violated, check
from dlprof.conformance.counterpart import (
    NEW,
    USED,
    floats_of,
    forever,
    held_by,
    in_thread,
    rename_capsule,
)
from dlprof.conformance.needs import exports
from dlprof.conformance.producer import Deleter, consumed, delete, exported

must, should, may = (partial(check, "producer", word) for word in SEVERITIES)
ROUNDS, LEAST_LEAK_BYTES = 64, 32 << 20


@must(f"{PYTHON}, Implementation", "A dropped capsule calls its deleter once.", exports)
def dropped_capsule(framework: Any) -> None:
    capsule, calls = watched(framework)
    del capsule
    gc.collect()
    if len(calls) > 1:
        raise Violated(f"the deleter is called {len(calls)} times")
    # The destructor may call the function itself, and not by the pointer in the tensor.
    if not calls and (leaked := leak_bytes(framework)) > LEAST_LEAK_BYTES:
        raise Violated(f"{ROUNDS} dropped capsules of 1 MiB leave {leaked >> 20} MiB behind")


def leak_bytes(framework: Any) -> int:
    """How much more memory the process has after many dropped capsules of 1 MiB each."""
    for at in range(2 * ROUNDS):
        framework.export(framework.make("large"))
        if at == ROUNDS - 1:
            before = resident_bytes()
    gc.collect()
    return resident_bytes() - before


def resident_bytes() -> int:
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except OSError as error:
        raise Unknown("the memory of the process cannot be read") from error
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


@must(f"{PYTHON}, Implementation", "A consumed capsule calls no deleter.", exports)
def dropped_used_capsule(framework: Any) -> None:
    capsule, calls = watched(framework)
    rename_capsule(capsule, USED[held_by(capsule).name])
    del capsule
    gc.collect()
    if calls:
        raise Violated("the capsule calls the deleter of a tensor that we own")


def watched(framework: Any) -> tuple[Any, list[int]]:
    """A capsule whose deleter notes its calls, and passes them on."""
    x = framework.make("C")
    capsule = exported(framework, x)
    held = held_by(capsule)
    calls: list[int] = []

    def note(address: int) -> None:
        calls.append(address)
        if held.deleter:
            Deleter(held.deleter)(address)

    deleter = Deleter(note)
    forever(deleter)
    place = ctypes.c_void_p.from_address(held.address + (16 if held.name == NEW else 56))
    place.value = ctypes.cast(deleter, ctypes.c_void_p).value
    return capsule, calls


@must(f"{HEADER}, deleter", "The memory lives until the deleter is called.", exports)
def keeps_memory(framework: Any) -> None:
    x = framework.make("C")
    values = framework.values(x)
    held = consumed(framework, x)
    del x
    gc.collect()
    others = [framework.make("C") for _ in range(64)]
    del others
    if floats_of(held) != values:
        raise Violated(f"after the array is gone, the values are {floats_of(held)}")


@must(f"{PYTHON}, Implementation", "The deleter takes the lock that it needs.", exports)
def deleter_in_thread(framework: Any) -> None:
    x = framework.make("C")
    held = consumed(framework, x)
    in_thread(lambda: delete(held))


@must(f"{HEADER}, deleter", "Two capsules of one array are independent.", exports)
def two_capsules(framework: Any) -> None:
    x = framework.make("C")
    values = framework.values(x)
    first, second = consumed(framework, x), consumed(framework, x)
    delete(first)
    del x
    gc.collect()
    if floats_of(second) != values:
        raise Violated(f"after the first is released, the second has {floats_of(second)}")
