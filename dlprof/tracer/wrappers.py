"""The traced call: times around it, addresses after it.

The frame of a wrapper takes itself out of the traceback of what the call raises. This needs
Python 3.11: before, a bare ``raise`` keeps the traceback of the handler.
"""

from __future__ import annotations

import functools
import sys
import time
import types
from collections.abc import Callable
from dataclasses import replace
from threading import get_ident
from typing import Any

from dlprof.probes import capsule
from dlprof.tracer.arrays import (
    CONTAINERS,
    LOOSE,
    VIEW,
    Kind,
    Kinds,
    are_apart,
    first_of,
    leaves,
)
from dlprof.tracer.place import Places
from dlprof.tracer.rows import (
    BYTES,
    COPIES,
    IDLE,
    MOST_BUSY,
    TIME,
    UNKNOWN,
    VIEWS,
    Row,
    Rows,
    dtype_name,
)
from dlprof.tracer.targets import Target

CALL_NS = 2000
"""What tracing a conversion takes, about: benchmarks/trace.py measures it."""
MOST_SITES = 50_000
"""Places in code; more are met only if a program makes code without end."""
CONTAINER = Kind(
    "container",
    lambda _: None,
    lambda _: ("?", ()),
    lambda _: 0,
    lambda _: "?",
    is_special=True,
)
NAMED = replace(CONTAINER, framework="named")
"""An array that is given by the name of an argument."""
_getframe, _clock = sys._getframe, time.perf_counter_ns  # noqa: SLF001 - CPython's own way


class Tracer:
    """What all wrappers of a process share."""

    def __init__(self, places: Places, rows: Rows, most_percent: float | None = None) -> None:
        self.places, self.rows, self.kinds = places, rows, Kinds()
        self.inside: set[int] = set()
        """Threads that are in a traced call."""
        self.capsules: dict[int, Export] = {}
        self.dtypes: dict[tuple[Any, Any], str] = {}
        """By two dtypes: the name of the second if it differs, else an empty one."""
        self.is_active = True
        self.wanted: list[Wanted] = []
        self._most_percent = most_percent
        self._views: dict[Target, int] = {}
        self._looked_ns = rows.started_ns

    def tick(self, row: Row, began: int, took: int) -> None:
        self.rows.tick(row, began, took)
        if self._most_percent is not None:
            self._limit(self._most_percent)

    def _limit(self, most_percent: float) -> None:
        """Stop to trace the function with most of the calls, if it costs too much.

        Only one that makes nothing but views: its time is known, and there is nothing to find.
        """
        now, views = _clock(), dict[Target, int]()
        plain: dict[Target, bool] = {}
        for row in list(self.rows.rows.values()):
            views[row.target] = views.get(row.target, 0) + row.views
            plain[row.target] = plain.get(row.target, True) and row.is_plain
        new = {target: count - self._views.get(target, 0) for target, count in views.items()}
        span, self._views, self._looked_ns = now - self._looked_ns, views, now
        is_too_much = sum(new.values()) * CALL_NS > span * most_percent / 100
        candidates = [target for target in new if plain[target] and new[target]]
        if is_too_much and candidates:
            self._stop(max(candidates, key=new.__getitem__), now)

    def _stop(self, target: Target, now: int) -> None:
        for wanted in self.wanted:
            if wanted.target is target:
                wanted.is_off = True
                wanted.clear()
        for row in list(self.rows.rows.values()):
            if row.target is target:
                row.stopped_ns = row.stopped_ns or now - self.rows.started_ns

    def stop(self) -> None:
        """A wrapper that is still held somewhere records no more."""
        self.is_active = False
        for wanted in self.wanted:
            wanted.clear()

    def begin_again(self) -> None:
        """In the child of a fork: nothing of the parent's is counted again."""
        self.inside.clear()
        self.capsules.clear()
        self.rows.begin()

    def finish(self) -> None:
        for export in list(self.capsules.values()):
            export.flush()
        self.capsules.clear()
        self.rows.write(ended=True)


class Export:
    """A capsule that waits for its consumer."""

    __slots__ = ("address", "key", "kind", "pointer", "row", "size", "took")

    def __init__(self, row: Row, kind: Kind, source: Any, made: Any, took: int) -> None:
        self.row, self.kind, self.took = row, kind, took
        self.key, self.size, self.address = kind.key(source), kind.nbytes(source), None
        self.address = kind.address(source)
        self.pointer = _pointer(made)
        row.device = row.device or kind.device(source)

    def flush(self) -> None:
        """Count it alone: what took it in was not traced."""
        size = self.size
        _count(self.row.numbers(self.key, lambda: size), self.took, UNKNOWN, 0)
        self.row.consumer = "untraced"


def _pointer(thing: Any) -> int | None:
    name = capsule.capsule_name(thing)
    return capsule.capsule_pointer(thing, name) if name else None


class Missing:
    """Stands for the array where a call has no argument by its place."""


MISSING = Missing()


class Wanted(dict[type, "Kind | None"]):
    """The kinds that a target converts; None for what passes through."""

    def __init__(self, tracer: Tracer, target: Target) -> None:
        super().__init__()
        self._tracer, self.target, self.is_off = tracer, target, False
        tracer.wanted.append(self)

    def __missing__(self, kind: type) -> Kind | None:
        target, found = self.target, self._tracer.kinds[kind]
        if kind is Missing:
            found = NAMED
        elif kind in CONTAINERS and not target.is_method:
            found = CONTAINER
        elif found is not None and not self._converts(found):
            found = None
        if self.is_off or not self._tracer.is_active:
            found = None
        self[kind] = found
        return found

    def _converts(self, kind: Kind) -> bool:
        target = self.target
        if kind.is_buffer:
            return target.takes_buffers
        return target.gives if kind.framework == target.framework else target.takes


def make(  # noqa: C901, PLR0915 - one frame alone may stand between the program and the call
    original: Callable[..., Any], target: Target, tracer: Tracer
) -> Callable[..., Any]:
    """``original`` with a record of each conversion."""
    wanted, kinds, inside, rows = Wanted(tracer, target), tracer.kinds, tracer.inside, tracer.rows
    sites: dict[Any, Row] = {}
    watched = _Calls(tracer, target, wanted, sites)
    find, special, settle, failed = watched.row, watched.special, watched.settle, watched.failed
    with_events = rows.with_events

    def traced(source: Any = MISSING, /, *rest: Any, **kwargs: Any) -> Any:  # noqa: C901, PLR0912, PLR0915 - same
        kind = wanted[type(source)]
        if kind is None:
            try:
                return original(source, *rest, **kwargs) if rest or kwargs else original(source)
            except BaseException as error:
                error.__traceback__ = error.__traceback__.tb_next  # type: ignore[union-attr]
                raise
        me = get_ident()
        args = handed = None
        if me in inside:
            kind = None
        elif kind.is_special:
            args = (source, *rest) if source is not MISSING else ()
            source = source if args else next(iter(kwargs.values()), None)
            kind, handed = special(source)
        elif rest or kwargs:
            args = (source, *rest)
        if kind is None:
            args = args if args is not None else (source, *rest) if source is not MISSING else ()
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                error.__traceback__ = error.__traceback__.tb_next  # type: ignore[union-attr]
                raise
        frame = _getframe(1)
        row = sites.get((id(frame.f_code), frame.f_lasti))
        if row is None or row.kind is not kind:
            row = find(frame, kind)
        del frame
        busy = kind.is_busy(source) if kind.is_busy is not None and handed is None else None
        took = None
        inside.add(me)
        try:
            began = _clock()
            result = original(source) if args is None else original(*args, **kwargs)
            took = _clock() - began
            try:
                if handed is None:
                    made = kinds[type(result)]
                    key = kind.key(source)
                    last, numbers = row.recent
                    if key != last:
                        numbers = row.arrays.get(key)
                        if numbers is not None:
                            row.recent = key, numbers
                    if (
                        numbers is not None
                        and made is not None
                        and (here := kind.address(source))
                        and here == made.address(result)
                        and busy is None
                        and not row.trouble
                    ):
                        numbers[TIME] += took
                        numbers[VIEWS] += 1
                    else:
                        settle(row, kind, source, key, made, result, took, busy)
                else:
                    handed(row, kind, source, result, took)
                if with_events:
                    rows.event(row, began, took)
                if began > rows.next_ns:
                    tracer.tick(row, began, took)
            except Exception as error:  # noqa: BLE001 - the tracer's own is not the program's
                failed(error, row, took)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next  # type: ignore[union-attr]
            if took is None:
                row.raised += 1
            raise
        finally:
            inside.discard(me)
        return result

    return _dressed(traced, original, target)


class _Calls:
    """What the traced calls of one target do seldom."""

    def __init__(
        self, tracer: Tracer, target: Target, wanted: Wanted, sites: dict[Any, Row]
    ) -> None:
        self.tracer, self.target, self.wanted, self.sites = tracer, target, wanted, sites
        self._distant: dict[Any, Row] = {}

    def row(self, frame: types.FrameType, kind: Kind) -> Row:
        """The row for a call from ``frame``."""
        own = self.tracer.places.own_frame(frame)
        if own is frame:
            key: Any = (id(frame.f_code), frame.f_lasti)
            if len(self.sites) > MOST_SITES:
                self.sites.clear()
            row = self.tracer.rows.row(frame, self.target, kind, "", True)
            # Rows are one for a line in the text; a code object made again needs its id kept.
            if row.code is frame.f_code:
                self.sites[key] = row
            return row
        caller, line = frame, own or frame
        key = (id(caller.f_code), id(line.f_code), line.f_lasti, kind.framework)
        found = self._distant.get(key)
        if found is not None and found.code is line.f_code:
            return found
        if len(self._distant) > MOST_SITES:
            self._distant.clear()
        module = str(caller.f_globals.get("__name__"))
        via = f"{module}.{caller.f_code.co_name}"
        row = self.tracer.rows.row(line, self.target, kind, via, own is not None)
        self._distant[key] = row
        return row

    def special(self, source: Any) -> tuple[Kind | None, Callable[..., None] | None]:
        """The kind and the record for what is no array itself: containers, capsules, views."""
        kind = self.wanted[type(source)]
        if kind is CONTAINER:
            leaf = first_of(source)
            found = None if leaf is None else self.wanted[type(leaf)]
            return (found, self._container) if found not in (None, LOOSE, VIEW) else (None, None)
        if kind is VIEW:
            found = self.wanted[type(source.obj)]
            if found is None or found is CONTAINER:
                return None, None
            return found, functools.partial(self._view, source.obj)
        if kind is LOOSE:
            export = self.tracer.capsules.pop(id(source), None)
            if export is not None and export.pointer == _pointer(source):
                return export.kind, functools.partial(self._consumed, export)
            address = kind.address(source)
            return kind, functools.partial(self._loose, address)
        return kind, None  # given by its name

    def settle(  # noqa: PLR0913, PLR0917 - what the call knows, without a record in between
        self,
        row: Row,
        kind: Kind,
        source: Any,
        key: Any,
        made: Kind | None,
        result: Any,
        took: int,
        busy: bool | None,
    ) -> None:
        """Count what is no plain view of a known array."""
        if made is LOOSE:
            export = Export(row, kind, source, result, took)
            stale = self.tracer.capsules.get(id(result))
            if stale is not None:
                stale.flush()
            self.tracer.capsules[id(result)] = export
            return
        if made is kind and result is source:
            return  # it was there already
        outcome = UNKNOWN, 0
        if made is not None and not row.trouble:
            outcome = _compared(row, kind, source, made, result)
        numbers = row.numbers(key, lambda: kind.nbytes(source))
        row.first_ns = row.first_ns or took
        _count(numbers, took, *outcome)
        row.device = row.device or kind.device(source)
        if made is not None:
            row.consumer = made.framework
            if outcome[0] == COPIES:
                self._note_dtype(row, key[0], made.key(result)[0])
        if busy:
            if len(row.busy) < MOST_BUSY:
                row.busy.append((key, took))
        elif busy is not None:
            numbers[IDLE] = took if numbers[IDLE] is None else min(took, numbers[IDLE])

    def _note_dtype(self, row: Row, source: Any, result: Any) -> None:
        """Note the dtype of a result that is not the source's."""
        changed = self.tracer.dtypes.get((source, result))
        if changed is None:
            names = dtype_name(source), dtype_name(result)
            changed = "" if names[0] == names[1] or "?" in names else names[1]
            self.tracer.dtypes[source, result] = changed
        if changed:
            row.retyped.add(changed)

    def _view(self, source: Any, row: Row, kind: Kind, _: Any, result: Any, took: int) -> None:
        made = self.tracer.kinds[type(result)]
        self.settle(row, kind, source, kind.key(source), made, result, took, None)

    def _container(self, row: Row, kind: Kind, source: Any, result: Any, took: int) -> None:
        found, made = list(leaves(source)), self.tracer.kinds[type(result)]
        if made is not None:  # one array of many: it cannot be a view of all
            row.consumer, outcome = made.framework, (COPIES, made.nbytes(result))
        else:
            outcome = self._compared_leaves(row, found, list(leaves(result)))
        first = found[0]
        row.first_ns = row.first_ns or took
        _count(row.numbers(kind.key(first), lambda: kind.nbytes(first)), took, *outcome)

    def _compared_leaves(self, row: Row, found: list[Any], given: list[Any]) -> tuple[int, int]:
        """One call: a copy if anything was copied, a view if all are views."""
        outcomes = []
        for one, other in zip(found, given, strict=False):
            kind, made = self.tracer.kinds[type(one)], self.tracer.kinds[type(other)]
            if kind is not None and made is not None and one is not other:
                row.consumer = made.framework
                outcomes.append(_compared(row, kind, one, made, other))
        words = {at for at, _ in outcomes}
        if len(found) != len(given) or not words:
            return UNKNOWN, 0
        at = COPIES if COPIES in words else UNKNOWN if UNKNOWN in words else VIEWS
        return at, sum(copied for _, copied in outcomes)

    def _consumed(
        self, export: Export, row: Row, _kind: Kind, _: Any, result: Any, took: int
    ) -> None:
        outcome = self._ends(row, export.address, export.size, result)
        row.device = row.device or export.row.device
        row.first_ns = row.first_ns or took + export.took
        _count(row.numbers(export.key, lambda: export.size), took + export.took, *outcome)

    def _loose(
        self, address: int | None, row: Row, _kind: Kind, _: Any, result: Any, took: int
    ) -> None:
        made = self.tracer.kinds[type(result)]
        size = made.nbytes(result) if made is not None else 0
        key = made.key(result) if made is not None else ("?", ())
        outcome = self._ends(row, address, size, result)
        _count(row.numbers(key, lambda: size), took, *outcome)

    def _ends(self, row: Row, here: int | None, size: int, result: Any) -> tuple[int, int]:
        """View or copy of what a capsule held."""
        made = self.tracer.kinds[type(result)]
        if made is None:
            return UNKNOWN, 0
        row.consumer = made.framework
        return _seen(here, size, made, result)

    def failed(self, error: Exception, row: Row, took: int) -> None:
        """A failure of the tracer ends the look at addresses for this row; calls still count.

        Raises it again if the user's code is in it, as that of a signal's handler is.
        """
        trace = error.__traceback__
        while trace is not None:
            if self.tracer.places.is_own(trace.tb_frame):
                raise error
            trace = trace.tb_next
        row.trouble = f"{type(error).__name__}: {error}"[:200]
        _count(row.numbers("unknown", lambda: 0), took, UNKNOWN, 0)


def _count(numbers: list[Any], took: int, at: int, copied: int) -> None:
    numbers[TIME] += took
    numbers[at] += 1
    numbers[BYTES] += copied


def _compared(row: Row, kind: Kind, source: Any, made: Kind, result: Any) -> tuple[int, int]:
    """View or copy, by the addresses and sizes of both ends; and the bytes that were copied."""
    places = kind.device(source), made.device(result)
    if are_apart(*places):
        copied = made.nbytes(result)
        row.crossings[places] = row.crossings.get(places, 0) + 1
        return COPIES, copied
    return _seen(kind.address(source), kind.nbytes(source), made, result)


def _seen(here: int | None, size: int, made: Kind, result: Any) -> tuple[int, int]:
    there = made.address(result)
    if here is not None and there is not None:
        if size == 0 or here <= there < here + size or there <= here < there + made.nbytes(result):
            return VIEWS, 0
        return COPIES, made.nbytes(result)
    if made.owns is not None and made.owns(result):
        return COPIES, made.nbytes(result)
    return UNKNOWN, 0


class Builtin(functools.partial):  # type: ignore[type-arg]
    """The wrapper of a function that is written in C.

    As an attribute of a class it stays a function, where one of Python would become a method. It
    is pickled by the name of the original.
    """

    def __get__(self, owner: Any, kind: Any = None) -> Builtin:
        return self

    def __repr__(self) -> str:
        return repr(self.__wrapped__)  # type: ignore[attr-defined]

    def __reduce__(self) -> str:
        return str(self.__name__)  # type: ignore[attr-defined]


def _dressed(
    traced: Callable[..., Any], original: Callable[..., Any], target: Target
) -> Callable[..., Any]:
    """The wrapper with the name and the words of the original."""
    is_plain = target.is_method or isinstance(original, types.FunctionType)
    return functools.update_wrapper(traced if is_plain else Builtin(traced), original)
