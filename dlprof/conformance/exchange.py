"""Checks of the C exchange API of DLPack 1.3: a table of functions on the type of the array."""

from __future__ import annotations

import ctypes
import struct
import types
from functools import partial
from typing import Any

from dlprof.conformance.check import HEADER, NotApplicable, Violated, arrays, check, objects
from dlprof.conformance.consumer import arrives, holds, released
from dlprof.conformance.counterpart import (
    NEW,
    USED,
    Source,
    attempt,
    elements,
    lengths,
    rename_capsule,
)
from dlprof.conformance.producer import delete
from dlprof.probes.capsule import ManagedVersioned, Tensor, capsule_pointer, new_capsule

gives, takes = (partial(check, role, "must") for role in ("producer", "consumer"))
TABLE = "major minor previous allocate from_object to_object borrow current_stream"
Out = ctypes.POINTER(ctypes.c_void_p)
SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)


def has_table(framework: Any) -> None:
    arrays("C")(framework)
    if not hasattr(type(framework.make("C")), "__dlpack_c_exchange_api__"):
        raise NotApplicable("it has no C exchange API, which is optional")


def provides(name: str) -> Any:
    """Need a function of the table. ``exchange-table`` is about those that may not be NULL."""

    def need(framework: Any) -> None:
        has_table(framework)
        if not getattr(functions(framework.make("C")), name):
            raise NotApplicable(f"the table has NULL for {name}")

    return need


def functions(x: Any) -> Any:
    """Return the functions of the type of an array, by name."""
    capsule = type(x).__dlpack_c_exchange_api__
    address, error = attempt(capsule_pointer, capsule, b"dlpack_exchange_api")
    if error is not None:
        raise Violated("it is no capsule dlpack_exchange_api") from error
    found = struct.unpack("IIPPPPPP", ctypes.string_at(address, 56))
    return types.SimpleNamespace(**dict(zip(TABLE.split(), found, strict=True)))


def called(function: Any, kinds: Any, *arguments: Any) -> None:
    """Call a function of the table, which holds the interpreter's lock."""
    code, error = attempt(ctypes.PYFUNCTYPE(ctypes.c_int, *kinds)(function), *arguments)
    if error is not None:
        raise Violated("it refuses") from error
    if code:
        raise Violated(f"it refuses by the code {code}")


@gives(f"{HEADER}, DLPackExchangeAPI", "The table is of version 1 and complete.", has_table)
def exchange_table(framework: Any) -> None:
    x = framework.make("C")
    table = functions(x)
    if table.major != 1:
        raise Violated(f"the table is of version {table.major}.{table.minor}")
    for name in ("allocate", "from_object", "to_object", "current_stream"):
        if not getattr(table, name):
            raise Violated(f"the table has NULL for {name}")


@gives(
    f"{HEADER}, DLPackManagedTensorFromPyObjectNoSync",
    "An array gives its tensor.",
    provides("from_object"),
)
def exchange_gives(framework: Any) -> None:
    x = framework.make("C")
    out = ctypes.c_void_p()
    called(functions(x).from_object, (ctypes.py_object, Out), x, ctypes.byref(out))
    if not out.value:
        raise Violated("it returns 0 and gives no tensor")
    managed = ManagedVersioned.from_address(out.value)
    if elements(managed) != framework.values(x):
        raise Violated(f"the tensor has the values {elements(managed)}")
    delete(managed)


@takes(
    f"{HEADER}, DLPackManagedTensorToPyObjectNoSync",
    "A tensor becomes an array.",
    provides("to_object"),
)
def exchange_takes(framework: Any) -> None:
    x = framework.make("C")
    out = ctypes.c_void_p()
    source = Source()
    capsule = source.capsule(NEW)
    address = capsule_pointer(capsule, NEW)
    rename_capsule(capsule, USED[NEW])
    called(functions(x).to_object, (ctypes.c_void_p, Out), address, ctypes.byref(out))
    if not out.value:
        raise Violated("it returns 0 and gives no array")
    y = ctypes.cast(out, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(y))  # the reference that we were given
    if not isinstance(y, type(x)):
        raise Violated(f"the result is a {type(y).__name__}")
    holds(framework, y)
    del y
    released(source)


@gives(
    f"{HEADER}, DLPackManagedTensorAllocator",
    "A tensor like a prototype is made.",
    provides("allocate"),
)
def exchange_allocates(framework: Any) -> None:
    x = framework.make("C")
    errors: list[str] = []
    out = ctypes.c_void_p()
    set_error = SetError(lambda _, kind, message: errors.append(f"{kind!r} {message!r}"))
    kinds = (ctypes.POINTER(Tensor), Out, ctypes.c_void_p, SetError)
    allocate = ctypes.PYFUNCTYPE(ctypes.c_int, *kinds)(functions(x).allocate)
    try:
        code = allocate(Source().tensor, ctypes.byref(out), None, set_error)
    except NotImplementedError as error:
        raise NotApplicable(f"it has no allocator: {error}") from None
    if code or errors or not out.value:
        raise Violated(f"it refuses: code {code}, {errors}")
    managed = ManagedVersioned.from_address(out.value)
    found = lengths(managed), managed.tensor.code, managed.tensor.bits, managed.tensor.lanes
    if found != ([2, 3], 2, 32, 1):
        raise Violated(f"shape, type code, bits and lanes are {found}")
    delete(managed)


@takes(f"{HEADER}, DLPackExchangeAPIHeader", "A newer major version is not used.", objects)
def exchange_major_2(framework: Any) -> None:
    # NULL for all functions: calling one ends the process.
    table = ctypes.create_string_buffer(struct.pack("II", 2, 0), 56)

    class Newer(Source):
        __dlpack_c_exchange_api__ = new_capsule(
            ctypes.addressof(table), b"dlpack_exchange_api", None
        )

    holds(framework, arrives(framework, Newer()))
