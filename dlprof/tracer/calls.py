"""The traced call: times around it, addresses after it.

The outermost traced call of a thread counts. A capsule counts where it is consumed. The frame of a
wrapper takes itself out of the traceback of an error. This needs Python 3.11: before, a bare
``raise`` keeps the traceback of the handler.
"""

from __future__ import annotations

import functools
import sys
import time
import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import attrgetter
from threading import get_ident
from typing import Any

from dlprof.probes import capsule
from dlprof.tracer.arrays import (
    CAPSULE,
    CONTAINERS,
    Kind,
    Kinds,
    are_apart,
    host_waits,
    leaves,
    no_array,
    queue_state,
    resolved,
)
from dlprof.tracer.place import CARRIED, Lines, Places
from dlprof.tracer.rows import COPIES, READS, TIME, UNKNOWN, VIEWS, Memory, Queue, Row, Rows
from dlprof.tracer.targets import Target

WORDS = (*functools.WRAPPER_ASSIGNMENTS, "__text_signature__")
VIEW, CONTAINER, OWN = map(no_array, ("memoryview", "container", "own"))
"""OWN is an array that its own framework takes in by a capsule: this converts nothing."""
NO_ARRAYS = (None, CAPSULE, VIEW, CONTAINER, OWN)
NUMBER_TYPES = (bool, int, float, complex)
LEAST_NUMBERS_BYTES, FEW_NUMBERS = 4096, 128
"""Fewer numbers are a program's constants."""
_clock = time.perf_counter
Call = tuple[Row, Kind, Any, Any, "Queue | None"]
"""A call that began: its row, the kind and the array, the copy on the host that the array kept
before, and the queue."""


@dataclass
class Export:
    """An array in a capsule."""

    row: Row
    address: int | None
    device: str = "?"
    key: Any = None
    """None if no traced call made the capsule."""
    nbytes: int = 0
    took_ns: float = 0.0
    is_busy: bool | None = None
    waits: bool = False
    """Whether the call that made the capsule waited on the host."""
    outcome: int = UNKNOWN

    def learn(self, kind: Kind | None, result: Any) -> None:
        """Take from its consumer what is not known of the source."""
        if self.key is None and kind is not None:
            self.key, self.nbytes = kind.key(result), kind.nbytes(result)

    def taken(self, row: Row) -> Export:
        """Return it for the row of its consumer. A wait counts on its own line."""
        if self.waits and self.row.line != row.line:
            self.flush(row.target.framework)
        return self

    def flush(self, consumer: str = "untraced") -> None:
        """Count the call that made it, without its consumer."""
        numbers = self.row.meet(self.key, self.nbytes, self.device, 0)
        numbers[TIME] += self.took_ns
        numbers[self.outcome] += 1
        self.row.recorded[False] += self.waits
        self.row.consumer, self.took_ns, self.waits = consumer, 0.0, False


PARTS: Any = map(attrgetter, ("address", "key", "nbytes", "device"))
EXPORT = Kind("export", *PARTS)


class Tracer:
    """The state that all wrappers of a process share."""

    def __init__(self, places: Places, rows: Rows) -> None:
        self.places, self.rows, self.kinds = places, rows, Kinds()
        self.lines = Lines(places, rows.line_times_s)
        self.exports: dict[int | None, Export] = {}
        """Capsules that wait for their consumers, by the pointers in them."""
        self.inner: dict[int, tuple[int | None, float]] = {}
        """By a thread that converts an object with an ``__array__`` of its own: the address of the
        last array that was converted inside, and the time of that."""
        self.is_active = True
        self.host_waits = host_waits()
        self.calls: list[Calls] = []

    def hold(self, pointer: int | None, export: Export) -> None:
        """Keep a capsule until its consumer is called."""
        if pointer in self.exports:
            self.exports[pointer].flush()
        self.exports[pointer] = export

    def stop(self) -> None:
        """Record no more, not even in a wrapper that is still held somewhere."""
        self.is_active = False
        self.lines.stop()
        for calls in self.calls:
            calls.clear()

    def begin_again(self) -> None:
        """Count from zero in the child of a fork."""
        self.exports.clear()
        self.rows.begin()
        self.lines.begin_again()
        for calls in self.calls:
            calls.rows.clear()

    def finish(self) -> None:
        for export in list(self.exports.values()):
            export.flush()
        self.exports.clear()
        self.rows.write(ended=True)


class Calls(dict[type, "Kind | None"]):
    """The calls of one target.

    By the type of the first argument, the kind that a call converts; None if it passes through.
    """

    def __init__(self, tracer: Tracer, target: Target) -> None:
        super().__init__()
        self.tracer, self.target = tracer, target
        self.rows: dict[Any, Row] = {}
        """By the place of a call, its framework, and the package that calls."""
        self._was_called = False
        probe = tracer.kinds.probes[target.framework]
        self._upload_state = queue_state(probe) if target.uploads else None
        tracer.calls.append(self)

    def __missing__(self, kind: type) -> Kind | None:
        found = self[kind] = self._learned(kind) if self.tracer.is_active else None
        return found

    def _learned(self, kind: type) -> Kind | None:
        if kind in CONTAINERS and (self.target.is_launch or not self.target.is_method):
            return CONTAINER
        if kind is memoryview:
            return VIEW
        found = self.tracer.kinds[kind]
        if found is None:
            return None
        if found.is_buffer:
            converts = self.target.takes_buffers
        elif found.framework == self.target.framework:
            converts = self.target.gives
        else:
            converts = self.target.takes
        return found if converts else OWN if self.target.takes_capsules else None

    def source(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return what a call converts: of a kernel all arrays, else the first named one."""
        if self.target.is_launch:
            return [x for x in args[1:] if self[type(x)] not in NO_ARRAYS] or None
        return next((value for value in kwargs.values() if self[type(value)] is not None), None)

    def begin(
        self, kind: Kind | None, source: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Call | None:
        """Look at a call before it is made; return None if it converts nothing."""
        if kind is VIEW:
            source = source.obj
            kind = self[type(source)]
        if kind in NO_ARRAYS:
            return self._special(kind, source, (len(args), *kwargs))
        try:
            frame = sys._getframe(2)  # noqa: SLF001 - CPython's own way
        except ValueError:  # C calls the function in a thread without frames
            frame = None
        host = kind.host_copy(source) if kind.host_copy else None
        queue = None
        if kind.is_busy or self._upload_state:
            is_busy = kind.is_busy(source) if kind.is_busy else None
            state = self._upload_state if is_busy is None else None
            queue = self._queue(state() if state else is_busy, (len(args), *kwargs), bool(state))
        place = (id(frame.f_code), frame.f_lasti, kind.framework, "") if frame else None
        row = self.rows.get(place) or self.row(kind.framework)
        if kind.is_wrapper:
            self.tracer.inner[get_ident()] = None, 0.0
        return row, kind, source, host, queue

    def _queue(self, is_busy: bool | None, form: Any, is_upload: bool = False) -> Queue | None:
        # A simulated device records waits, and the time of a call tells none.
        is_known = is_busy is not None and self.tracer.host_waits is None
        return (bool(is_busy), form, is_upload) if is_known else None

    def _special(self, kind: Kind | None, source: Any, form: Any) -> Call | None:
        """Look at a call with a capsule, a container, or an array that converts nothing."""
        host = is_busy = None
        if kind is CAPSULE:
            export = self.tracer.exports.pop(_pointer(source), None)
            row = self.row(export.row.producer if export else kind.framework)
            source = export.taken(row) if export else Export(row, kind.address(source))
            kind, is_busy = EXPORT, source.is_busy
        elif kind is not CONTAINER:
            return None if kind is None else self.uncounted()
        elif type(first := next(leaves(source), None)) in NUMBER_TYPES:
            is_flat = first is next(iter(source))
            if len(source) <= FEW_NUMBERS and is_flat and "device" not in form:
                return None
            source, row = [], self.row("numbers")
        elif (first_kind := self[type(first)]) in NO_ARRAYS:
            return None
        else:
            row = self.row(first_kind.framework)
            source = list(leaves(source))
            kinds = [(x, self.tracer.kinds[type(x)]) for x in source]
            host = [kind.host_copy(x) if kind and kind.host_copy else None for x, kind in kinds]
            states = {kind.is_busy(x) for x, kind in kinds if kind and kind.is_busy} - {None}
            is_busy = True in states if states else None
        return row, kind, source, host, self._queue(is_busy, form)

    def uncounted(self) -> Call:
        """Return a call that is not counted, nor are the calls inside it."""
        return Row(self.target, ""), OWN, None, None, None

    def row(self, producer: str) -> Row:
        """Return the row of the user's line that calls, directly or further out."""
        frame: types.FrameType | None = sys._getframe()  # noqa: SLF001 - CPython's own way
        while frame is not None and frame.f_globals is globals():
            frame = frame.f_back  # C code, called by a wrapper, converts what that let through
        if frame is not None and frame.f_code is CARRIED:
            frame = frame.f_locals["_caller"]
        line, via = self.tracer.places.line_frame(frame), ""
        if frame is not None and line is not None and line is not frame:
            via = f"{frame.f_globals.get('__name__')}.{frame.f_code.co_name}"
        code, instruction = (line.f_code, line.f_lasti) if line is not None else (None, 0)
        key = id(code), instruction, producer, via
        found = self.rows.get(key)
        if found is None:
            found = self.tracer.rows.row(line, self.target, producer, via)
            # Code that is compiled again has the same row. Its id may pass to other code.
            if found.code is code:
                self.rows[key] = found
        return found

    def end(self, call: Call, result: Any, began_s: float, took_ns: float, waits: bool) -> None:
        """Count a call that was made, if it converted anything.

        ``waits`` is whether a simulated device's record says that it waited on the host.
        """
        row, kind, source, host, queue = call
        if kind is CONTAINER:
            self._container(call, result, began_s, took_ns, waits)
            return
        result_kind = self.tracer.kinds[type(result)]
        if self.tracer.inner:
            kind, took_ns = self._inner(kind, result_kind, result, took_ns)
        if result is source or kind is OWN:
            return
        if result_kind is CAPSULE:
            address = kind.address(source) or CAPSULE.address(result)
            facts = address, kind.device(source), kind.key(source), kind.nbytes(source)
            made = VIEWS if waits and address == CAPSULE.address(result) else UNKNOWN
            export = Export(row, *facts, took_ns, queue[0] if queue else None, waits, made)
            self.tracer.hold(_pointer(result), export)
            return
        if kind is EXPORT:
            took_ns += source.took_ns
            began_s -= source.took_ns / 1e9
            waits |= source.waits
            row.waits_in = source.row.target.conversion if source.waits else row.waits_in
            source.learn(result_kind, result)
        outcome = self._outcome(row, kind, source, host, result_kind, result)
        if outcome is None:
            return
        index = outcome[0]
        key = kind.key(source)
        numbers = row.arrays.get(key)
        if numbers is None:
            numbers = row.meet(key, kind.nbytes(source), kind.device(source), took_ns)
            self._note_origin(row, kind, source)
            row.last = self._memory(row, index, result_kind, result)
        self.tracer.rows.count(row, numbers, outcome, began_s, took_ns)
        if index == COPIES and numbers[COPIES] == 1 and result_kind is not None:
            row.note_dtypes(key[0], result_kind.key(result)[0])
        if queue is not None or self.tracer.host_waits is not None:
            self._count_wait(call, key, index, took_ns, waits, result)

    def _note_origin(self, row: Row, kind: Kind, source: Any) -> None:
        """Note the conversion whose result goes back in this call, if that result lives."""
        memory = kind.address(source) or -1, kind.nbytes(source)
        for other in list(self.tracer.rows.rows.values()):
            is_way = (other.producer, other.consumer) == (row.consumer, row.producer)
            if is_way and other.gave(memory):
                row.origin = other.file, other.line

    def _memory(self, row: Row, index: int, kind: Kind | None, result: Any) -> Memory | None:
        """Return the memory of a result that may go back to its producer."""
        # NumPy resizes no array of its own that has a weak reference.
        is_own = row.producer == row.consumer or (row.consumer == "numpy" and index != VIEWS)
        with suppress(Exception):  # a tensor without storage, or an array without weak references
            if kind and not is_own and (address := kind.address(result)):
                return Memory(address, kind.nbytes(result), kind.life(result))
        return None

    def _inner(
        self, kind: Kind, result_kind: Kind | None, result: Any, took_ns: float
    ) -> tuple[Kind, float]:
        """Return the kind and the time of a call without the conversions inside it."""
        thread = get_ident()
        if thread not in self.tracer.inner or result_kind is None:
            return kind, took_ns
        address = result_kind.address(result)
        inner, inner_ns = self.tracer.inner.pop(thread)
        if not kind.is_wrapper:
            self.tracer.inner[thread] = address, inner_ns + took_ns
            return kind, took_ns
        if inner is not None and address == inner:
            return OWN, took_ns
        return replace(kind, address=lambda _: inner), took_ns - inner_ns

    def _count_wait(
        self, call: Call, key: Any, index: int, took_ns: float, waits: bool, result: Any
    ) -> None:
        """Count a wait that a simulated device recorded, or a call by the queue that it met."""
        row, source_kind, source, host, queue = call
        kind = self.tracer.kinds[type(result)]
        to_host = self.target.reads if kind is None else kind.device(result) == "cpu"
        if queue is None:
            # JAX waits for its device in threads of its own, which the record does not name.
            is_jax = source_kind.framework == "jax" and kind is not source_kind
            waits |= is_jax and to_host and host is None and source_kind.device(source) != "cpu"
            row.recorded[not (self._was_called or to_host)] += waits
        elif source_kind is not CONTAINER and (queue[2] and to_host if kind else not to_host):
            return  # it copied from host to host, or gave nothing
        else:
            # The first call proves no wait: frameworks load code in it.
            form = queue if self._was_called else (queue[0], "first call", False)
            row.queued(key, index, form, took_ns)
        self._was_called = True

    def _container(
        self, call: Call, result: Any, began_s: float, took_ns: float, waits: bool
    ) -> None:
        """Count a call for many arrays: a copy if it copied any of them.

        Without arrays it is a call for numbers, which count by the result.
        """
        row, _, arrays, hosts, queue = call
        kinds, results = self.tracer.kinds, list(leaves(result))
        outcomes: list[tuple[int, int] | None] = []
        copied = 0
        result_kind = kinds[type(result)]
        if not arrays:
            is_small = result_kind and result_kind.nbytes(result) < LEAST_NUMBERS_BYTES
            if result_kind is None or (is_small and result_kind.device(result) == "cpu"):
                return
        if self.target.is_launch:  # Numba copies NumPy's arrays to the device and back
            on_host = [
                array for array in arrays if getattr(kinds[type(array)], "framework", "") == "numpy"
            ]
            copied = 2 * sum(array.nbytes for array in on_host)
            outcomes = [(COPIES, copied) if on_host else (VIEWS, 0)]
        elif len(results) == len(arrays):
            outcomes = [
                self._outcome(row, kind, array, host, kinds[type(output)], output)
                for array, host, output in zip(arrays, hosts, results, strict=True)
                if (kind := kinds[type(array)]) and array is not output and kind.nbytes(array)
            ]
        elif result_kind is not None:  # one array of many: it cannot be a view of all
            row.consumer, copied = result_kind.framework, result_kind.nbytes(result)
            is_on_meta = result_kind.device(result) == "meta"
            outcomes = [None if is_on_meta else (COPIES if copied else UNKNOWN, copied)]
        if None in outcomes:
            return
        known = [outcome for outcome in outcomes if outcome is not None]
        indices = {index for index, _ in known}
        index = COPIES if COPIES in indices else VIEWS if indices == {VIEWS} else UNKNOWN
        first = arrays[0] if arrays else result
        kind = kinds[type(first)] or CAPSULE
        key, size_bytes = kind.key(first), kind.nbytes(first)
        if arrays and result_kind is not None and kind.framework == "numpy":
            row.producer, size_bytes = "list", copied  # as its probe makes them
            key = key[0], tuple(result_kind.key(result)[1])
        numbers = row.meet(key, size_bytes, kind.device(first), took_ns)
        outcome = index, sum(copied for _, copied in known)
        self.tracer.rows.count(row, numbers, outcome, began_s, took_ns)
        if queue is not None or self.tracer.host_waits is not None:
            self._count_wait(call, key, index, took_ns, waits, result)

    def _outcome(  # noqa: PLR0911 - one for each answer
        self, row: Row, kind: Kind, source: Any, host: Any, result_kind: Kind | None, result: Any
    ) -> tuple[int, int] | None:
        """Return view or copy, by addresses and devices; None if nothing was converted."""
        if result_kind is None and self.target.reads:
            row.consumer = "python"
            return None if kind.device(source) == "meta" else (READS, 0)
        if result_kind is None:
            return None if self.target.is_move else (UNKNOWN, 0)
        row.consumer = result_kind.framework
        address, result_address = kind.address(source), result_kind.address(result)
        if address == result_address and address and host is None:  # also if devices share memory
            return VIEWS, 0
        device, result_device = kind.device(source), result_kind.device(result)
        host_kind = None if host is None else self.tracer.kinds[type(host)]
        if host_kind is not None and result_device == "cpu":
            address, device = host_kind.address(host), "cpu"
        is_apart = device != result_device and are_apart(device, result_device)
        if "meta" in (device, result_device) or (self.target.is_move and not is_apart):
            return None  # it stands for no data, or is where it was
        copied = result_kind.nbytes(result)
        if not copied and 0 in (result_kind.key(result)[1] or ()):
            return UNKNOWN, 0  # an array without elements has no memory
        if is_apart:
            row.crossings[device, result_device] += 1
            return COPIES, copied
        if address and result_address:
            length = kind.nbytes(source) if kind.is_buffer else 1
            return (VIEWS, 0) if address <= result_address < address + length else (COPIES, copied)
        is_own = result_kind.owns is not None and result_kind.owns(result) and not kind.may_keep
        return (COPIES, copied) if is_own else (UNKNOWN, 0)


def _pointer(thing: Any) -> int | None:
    name = capsule.capsule_name(thing)
    return capsule.capsule_pointer(thing, name) if name else None


def make(original: Callable[..., Any], target: Target, tracer: Tracer) -> Callable[..., Any]:
    """Return a wrapper of ``original`` that records each conversion."""
    calls, rows = Calls(tracer, target), tracer.rows
    host_waits = tracer.host_waits
    position = sys.maxsize if target.is_launch else target.position

    def traced(*args: Any, **kwargs: Any) -> Any:
        row = None
        try:
            source = args[position] if len(args) > position else calls.source(args, kwargs)
            kind = calls[type(source)]
            if kind is None or rows.open_calls[slot := rows.slots[get_ident()]]:
                return original(*args, **kwargs)
            try:
                call = calls.begin(kind, source, args, kwargs)
            except Exception as error:  # noqa: BLE001 - the tracer's own is not the program's
                rows.trouble(target.conversion, error)
                call = calls.uncounted()
            if call is None:
                return original(*args, **kwargs)
            row = call[0]
            rows.open_calls[slot] = 0 if kind.is_wrapper else row.number
            try:
                waits = host_waits() if host_waits else 0
                began_s = _clock()
                result = original(*args, **kwargs)
                took_ns = (_clock() - began_s) * 1e9
                does_wait = host_waits is not None and host_waits() > waits
                try:
                    # When the file is written, a thread may go on: all counts end at once.
                    if not rows.has_ended:
                        calls.end(call, result, began_s, took_ns, does_wait)
                except Exception as error:  # noqa: BLE001 - same
                    rows.trouble(target.conversion, error)
                    numbers = row.meet("unknown", 0, "", took_ns)
                    rows.count(row, numbers, (UNKNOWN, 0), began_s, took_ns)
            finally:
                rows.open_calls[slot] = 0
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next  # type: ignore[union-attr]
            if row is not None:
                row.raised += 1
            raise
        return result

    traced.__annotations__ = {}
    # torch.compile looks into the original instead of the wrapper.
    traced._torchdynamo_inline = original  # type: ignore[attr-defined]  # noqa: SLF001
    is_plain = target.is_method or isinstance(original, types.FunctionType)
    wrapper: Any = functools.update_wrapper(
        traced if is_plain else Builtin(traced), original, WORDS
    )
    vars(wrapper)["autograph_info__"] = {}  # TensorFlow does not rewrite what has it
    if target.is_method:  # pickled by its name, where a method in C has no module
        owner = resolved(target.owner)
        wrapper.__module__ = getattr(owner, "__module__", wrapper.__module__)
        wrapper.__qualname__ = f"{getattr(owner, '__qualname__', '')}.{target.name}".lstrip(".")
    found: Callable[..., Any] = wrapper
    return found


class Builtin(functools.partial):  # type: ignore[type-arg]
    """The wrapper of a function that is written in C.

    As an attribute of a class it stays a function, where one of Python would become a method. It
    is pickled by the name of the original, and equal to it: programs and frameworks keep tables of
    functions, and torch gives ``__torch_function__`` the original.
    """

    __annotations__ = {}

    def __eq__(self, other: object) -> bool:
        mine, theirs = (getattr(value, "__wrapped__", value) for value in (self, other))
        return bool(mine == theirs)

    def __hash__(self) -> int:
        return hash(self.__wrapped__)  # type: ignore[attr-defined]

    def __get__(self, owner: Any, kind: Any = None) -> Builtin:
        return self

    def __repr__(self) -> str:
        return repr(self.__wrapped__)  # type: ignore[attr-defined]

    def __reduce__(self) -> str:
        return str(self.__name__)  # type: ignore[attr-defined]
