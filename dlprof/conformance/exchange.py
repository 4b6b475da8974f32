"""Checks of the C exchange API of DLPack 1.3: a table of functions on the type of the array."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

from dlprof.conformance.check import HEADER, Deviates, NotApplicable, check, words
from dlprof.conformance.consumer import arrives, needs_objects, released
from dlprof.conformance.counterpart import (
    CPU,
    FLOAT,
    NEW,
    VALUES,
    VERSION,
    Source,
    attempt,
    values_of,
)
from dlprof.conformance.producer import array_of
from dlprof.probes.capsule import ManagedVersioned, Tensor, capsule_pointer, new_capsule

EXCHANGE = b"dlpack_exchange_api"
REQUIRED = ("allocate", "from_object", "to_object", "current_stream")
SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)


class Exchange(ctypes.Structure):
    """``DLPackExchangeAPI``, its header included."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("from_object", ctypes.c_void_p),
        ("to_object", ctypes.c_void_p),
        ("borrow", ctypes.c_void_p),
        ("current_stream", ctypes.c_void_p),
    )


def table_of(framework: Any) -> tuple[Any, Exchange]:
    """An array, and the functions of its type."""
    array = array_of(framework, "C")
    capsule = getattr(type(array), "__dlpack_c_exchange_api__", None)
    if capsule is None:
        raise NotApplicable("it has no C exchange API, which is optional")
    pointer, error = attempt(capsule_pointer, capsule, EXCHANGE)
    if error is not None:
        raise Deviates(
            f"{type(capsule).__name__} is no capsule {EXCHANGE.decode()}: {words(error)}"
        )
    return array, Exchange.from_address(pointer)


def managed_of(address: int | None) -> Any:
    if not address:
        raise Deviates("it returns 0 and gives no tensor")
    return ManagedVersioned.from_address(address)


def delete(managed: Any) -> None:
    if managed.deleter:
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        kind(managed.deleter)(ctypes.addressof(managed))


@check(
    "producer", "must", f"{HEADER}, DLPackExchangeAPI", "The table is of version 1 and complete."
)
def exchange_table(framework: Any) -> None:
    _, table = table_of(framework)
    if table.major != VERSION[0]:
        raise Deviates(f"the table is of version {table.major}.{table.minor}")
    missing = [name for name in REQUIRED if not getattr(table, name)]
    if missing:
        raise Deviates(f"the table has NULL for {', '.join(missing)}")


@check("producer", "must", f"{HEADER}, ManagedTensorFromPyObject", "An array gives its tensor.")
def exchange_gives(framework: Any) -> None:
    array, table = table_of(framework)
    kind = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
    out = ctypes.c_void_p()
    code, error = attempt(kind(table.from_object), array, ctypes.byref(out))
    if error is not None or code:
        raise Deviates(f"it refuses: {words(error) if error else f'code {code}'}")
    managed = managed_of(out.value)
    if (found := values_of(managed.tensor)) != framework.values(array):
        raise Deviates(f"the tensor has the values {found}")
    delete(managed)


@check("producer", "must", f"{HEADER}, DLTensorFromPyObject", "A borrowed tensor has the values.")
def exchange_lends(framework: Any) -> None:
    array, table = table_of(framework)
    if not table.borrow:
        raise NotApplicable("it lends no tensors, and need not")
    kind = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
    tensor = Tensor()
    code, error = attempt(kind(table.borrow), array, ctypes.byref(tensor))
    if error is not None or code:
        raise Deviates(f"it refuses: {words(error) if error else f'code {code}'}")
    if (found := values_of(tensor)) != framework.values(array):
        raise Deviates(f"the tensor has the values {found}")


@check(
    "producer", "must", f"{HEADER}, DLPackCurrentWorkStream", "The stream of the CPU is answered."
)
def exchange_stream(framework: Any) -> None:
    _, table = table_of(framework)
    out = ctypes.c_void_p(1)
    parameters = (ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
    kind = ctypes.PYFUNCTYPE(ctypes.c_int, *parameters)
    code, error = attempt(kind(table.current_stream), *CPU, ctypes.byref(out))
    if error is not None or code:
        raise Deviates(f"it refuses: {words(error) if error else f'code {code}'}")


@check("consumer", "must", f"{HEADER}, ManagedTensorToPyObject", "A tensor becomes an array.")
def exchange_takes(framework: Any) -> None:
    array, table = table_of(framework)
    source = Source()
    out = ctypes.c_void_p()
    kind = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
    code, error = attempt(kind(table.to_object), source.managed(NEW), ctypes.byref(out))
    if error is not None or code or not out.value:
        raise Deviates(f"it refuses: {words(error) if error else f'code {code}'}")
    result = ctypes.cast(out, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(result))  # the reference that we were given
    if not isinstance(result, type(array)):
        raise Deviates(f"the result is a {type(result).__name__}")
    if (found := framework.values(result)) != source.values:
        raise Deviates(f"the values {source.values} become {found}")
    del result, array
    released(source)


def allocated(table: Exchange, source: Source) -> tuple[int, Any, list[str]]:
    """The code, the tensor's address and the errors of an allocation like our source."""
    errors: list[str] = []
    set_error = SetError(lambda _, kind, message: errors.append(f"{kind!r} {message!r}"))
    out = ctypes.c_void_p()
    kind = ctypes.PYFUNCTYPE(
        ctypes.c_int,
        ctypes.POINTER(Tensor),
        ctypes.POINTER(ctypes.c_void_p),
        ctypes.c_void_p,
        SetError,
    )
    code = kind(table.allocate)(ctypes.byref(source.tensor), ctypes.byref(out), None, set_error)
    return code, out.value, errors


@check(
    "producer", "must", f"{HEADER}, ManagedTensorAllocator", "A tensor like a prototype is made."
)
def exchange_allocates(framework: Any) -> None:
    _, table = table_of(framework)
    code, address, errors = allocated(table, Source())
    if code or errors:
        raise Deviates(f"it refuses: code {code}, {errors}")
    tensor = managed_of(address).tensor
    found = tuple(tensor.shape[: tensor.ndim]), (tensor.code, tensor.bits, tensor.lanes)
    if found != ((2, 3), FLOAT):
        raise Deviates(f"shape and dtype are {found}")
    delete(managed_of(address))


@check("producer", "must", f"{HEADER}, ManagedTensorAllocator", "A failure sets an error.")
def exchange_allocation_fails(framework: Any) -> None:
    _, table = table_of(framework)
    code, _, errors = allocated(table, Source(dtype=(250, 32, 1)))
    if not code:
        raise Deviates("it makes a tensor of an unknown type")
    if not errors:
        raise Deviates(f"it returns {code} and sets no error")


@check(
    "consumer", "must", f"{HEADER}, DLPackExchangeAPIHeader", "A newer major version is not used."
)
def exchange_major_2(framework: Any) -> None:
    needs_objects(framework)
    table = Exchange(2, 0)  # NULL for all functions: calling one ends the process
    members = {"__dlpack_c_exchange_api__": new_capsule(ctypes.addressof(table), EXCHANGE, None)}
    newer = type("Newer", (Source,), members)
    arrives(framework, newer(VALUES))
    gc.collect()
