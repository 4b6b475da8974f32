"""What the traced calls of one function do seldom: all but the views that are met again."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from dlprof.tracer.arrays import (
    CONTAINERS,
    LOOSE,
    VIEW,
    Kind,
    are_apart,
    busy_at_upload,
    first_of,
    leaves,
)
from dlprof.tracer.rows import (
    BYTES,
    COPIES,
    DTYPE,
    EACH,
    SIZE,
    TIME,
    UNKNOWN,
    VIEWS,
    Queue,
    Row,
    dtype_name,
    words,
)
from dlprof.tracer.state import (
    CONTAINER,
    KEPT,
    MADE,
    NAMED,
    OWN,
    ROW,
    Export,
    Missing,
    Site,
    Tracer,
    Way,
    count,
    pointer,
    site,
)
from dlprof.tracer.targets import Target

NUMPY_AND_TORCH = {"numpy", "torch"}
WRAPPERS = "dlprof.tracer.wrappers"
FIRST = "first"
"""Stands for the form of the first call."""


def _is_no_array(way: Way | None) -> bool:
    return way is None or way.is_special


class Calls:
    """The calls of one target."""

    def __init__(self, tracer: Tracer, target: Target) -> None:
        self.tracer, self.target = tracer, target
        self._was_called = False
        self.ways: dict[type, Way | None] = {}
        """By the type of the first argument; None for what passes through."""
        self._by_kind: dict[Kind, Way] = {}
        tracer.calls.append(self)

    def first_way(self, kind: type) -> Way | None:
        """Return the way of a type that is met for the first time; None if the tracer fails."""
        try:
            return self.learn(kind)
        except Exception as error:  # noqa: BLE001 - the tracer's own is not the program's
            self.missed(error)
            return None

    def learn(self, kind: type) -> Way | None:
        found = self.tracer.kinds[kind]
        if kind is Missing:
            way = NAMED
        elif not self.tracer.is_active:
            way = None
        elif kind in CONTAINERS and not self.target.is_method:
            way = CONTAINER
        else:
            way = self._of(found) if found is not None and self._converts(found) else None
            if way is None and self.target.takes_capsules and found is not None:
                way = OWN
        self.ways[kind] = way
        return way

    def forget(self) -> None:
        """Forget all places, because the rows began again."""
        self.ways.clear()
        self._by_kind.clear()

    def _of(self, kind: Kind) -> Way:
        if kind not in self._by_kind:
            way = self._by_kind[kind] = Way(kind)
            way.is_busy = self._is_busy(kind)
        return self._by_kind[kind]

    def _is_busy(self, kind: Kind) -> Callable[[Any], bool | None] | None:
        """Whether a call meets queued work: on its array, or on the device that it copies to."""
        probe = self.tracer.kinds.probes[self.target.framework]
        at_upload, of_array = busy_at_upload(probe) if self.target.uploads else None, kind.is_busy
        if at_upload is None:
            return of_array
        if of_array is None:
            return lambda _: at_upload()

        def of_either(array: Any) -> bool | None:
            found = of_array(array)
            return at_upload() if found is None else found

        return of_either

    def _stays_on_host(self, kind: Kind, source: Any, made: Kind, result: Any) -> bool:
        """Whether no work on a device concerns the call, although there was some."""
        is_of_array = kind.is_busy is not None and kind.is_busy(source) is not None
        return self.target.uploads and not is_of_array and made.device(result) == "cpu"

    def _converts(self, kind: Kind) -> bool:
        target = self.target
        if kind.is_buffer:
            return target.takes_buffers
        return target.gives if kind.framework == target.framework else target.takes

    def _way(self, source: Any) -> Way | None:
        kind = type(source)
        return self.ways[kind] if kind in self.ways else self.learn(kind)

    def site(self, frame: types.FrameType, way: Way) -> Site:
        """The site of a call from ``frame``."""
        if way is OWN:
            return way.last  # it has no row
        while frame.f_back is not None and frame.f_globals.get("__name__") == WRAPPERS:
            frame = frame.f_back  # C code, called by a wrapper, converts what that let through
        code, at = frame.f_code, frame.f_lasti
        found = way.sites.get(id(code) + at)
        if found is None or found[0] is not code or found[1] != at:
            line = self.tracer.places.line_frame(frame)
            if line is None:
                return self._from_no_line(way)
            if line is not frame:
                return self._distant(frame, line, way)
            row = self.tracer.rows.row(frame, self.target, way.kind)
            found = site(code, at, row)
            # Rows are one for a line in the text; code that is made again is not kept.
            if row.code is code:
                way.sites[id(code) + at] = found
        way.last = found
        return found

    def _distant(self, caller: types.FrameType, line: types.FrameType, way: Way) -> Site:
        """The site of a call that a framework or a package makes on behalf of a line."""
        key = id(caller.f_code), id(line.f_code), line.f_lasti
        found = way.distant.get(key)
        if found is None or found[0] is not line.f_code:
            via = f"{caller.f_globals.get('__name__')}.{caller.f_code.co_name}"
            row = self.tracer.rows.row(line, self.target, way.kind, via)
            found = way.distant[key] = site(line.f_code, line.f_lasti, row)
        return found

    def _from_no_line(self, way: Way) -> Site:
        """The site of what a thread of Python's calls: ``Thread(target=torch.from_numpy)``."""
        found = way.distant.get((0, 0, 0))
        if found is None:
            row = self.tracer.rows.row(None, self.target, way.kind)
            found = way.distant[0, 0, 0] = site(None, -1, row)
        return found

    def special(  # noqa: PLR0911 - one for each that is no array
        self, way: Way, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Way | None, Any, Callable[..., None] | None, bool | None]:
        """The way, the array and the record for what is no array itself, and whether work on it is
        queued.

        There is no record where the array was only given by its name.
        """
        source: Any = args[0] if args else self._named(kwargs)
        if way is NAMED:
            named = self._way(source)
            if named is None or not named.is_special:
                return named, source, None, None
            way = named
        if way is OWN:
            return way, source, None, None
        if way is CONTAINER:
            leaf = first_of(source)
            found = None if leaf is None else self._way(leaf)
            if _is_no_array(found):
                return None, source, None, None
            record = partial(self._container, [self._keeps(one) for one in leaves(source)])
            return found, source, record, self._is_any_busy(source)
        if way.kind is VIEW:
            found, record = self._way(source.obj), partial(self._view, source.obj)
            return (None if _is_no_array(found) else found), source, record, None
        export = self.tracer.capsules.pop(id(source), None)
        if export is not None and export.pointer == pointer(source):
            record = partial(self._consumed, export)
            return self._of(export.kind), source, record, export.is_busy
        return way, source, partial(self._loose, LOOSE.address(source)), None

    def _keeps(self, array: Any) -> bool:
        """Whether an array keeps a copy of itself on the host by now."""
        kind = self.tracer.kinds[type(array)]
        return kind is not None and kind.kept is not None and kind.kept(array) is not None

    def _is_any_busy(self, source: Any) -> bool | None:
        """Whether work on an array of a container is queued; None if no framework says."""
        kinds = ((one, self.tracer.kinds[type(one)]) for one in leaves(source))
        said = {kind.is_busy(one) for one, kind in kinds if kind and kind.is_busy}
        return True if True in said else False if False in said else None

    def _named(self, kwargs: Mapping[str, Any]) -> Any:
        """Return the first argument by name that converts."""
        return next((one for one in kwargs.values() if self._way(one) is not None), None)

    def met(
        self,
        way: Way,
        site: Site,
        source: Any,
        result: Any,
        took: float,
        queue: Queue | None,
        is_alone: bool = False,
    ) -> None:
        """Count a call whose array is not the last one at its site.

        ``is_alone`` is true if the array is the only argument: then no argument changes the dtype.
        """
        kind, row, made = way.kind, site[ROW], self.tracer.kinds[type(result)]
        if made is LOOSE:
            is_busy = None if queue is None else queue[0]
            self._exported(Export(row, kind, source, result, took, is_alone, is_busy), result)
            return
        if result is source:
            return  # it was there already
        if self.target.is_move and not (
            made and are_apart(kind.device(source), made.device(result))
        ):
            return  # it stays on its device, and in its framework
        if _is_on_meta(kind, source) or _is_on_meta(made, result):
            return
        key = kind.key(source)
        numbers = row.arrays.get(key)
        if numbers is None:
            numbers = row.numbers(key, lambda: kind.nbytes(source))
            row.first_ns = row.first_ns or took
            row.device = row.device or kind.device(source)
        if made is None or row.trouble:
            count(numbers, took, UNKNOWN, 0)
            return
        row.consumer = made.framework
        if kind.is_plain and key in row.arrays and numbers[SIZE] and not self.target.is_move:
            at_result = is_alone and made.in_head and not kind.in_head
            at_result = at_result and words(key) == words(made.key(result))
            known = made.key(result) if at_result else key
            address = None if made.in_head else made.address
            site[MADE:] = type(result), address, *known, numbers, at_result, made
        here, there = kind.address(source), made.address(result)
        self.settle(kind, row, numbers, source, here, made, result, there, took, queue)

    def settle(  # noqa: PLR0913, PLR0917 - both ends
        self,
        kind: Kind,
        row: Row,
        numbers: list[Any],
        source: Any,
        here: int | None,
        made: Kind,
        result: Any,
        there: int | None,
        took: float,
        queue: Queue | None,
    ) -> None:
        """Count a call by its ends: an array and its address, and a result and its address."""
        if row.trouble:
            count(numbers, took, UNKNOWN, 0)
            return
        if _is_on_meta(kind, source) or _is_on_meta(made, result):
            return
        found = None
        if queue is not None and queue[1] is KEPT:
            found = self._of_kept(row, kind, source, made, result, there)
        at, copied = found or _compared(row, kind, source, here, made, result, there)
        numbers[TIME] += took
        numbers[at] += 1
        if at == COPIES:
            numbers[BYTES] += copied
            dtype = made.dtype(result)
            if dtype is not numbers[DTYPE]:
                self._note_dtype(row, kind.dtype(source), dtype)
                numbers[DTYPE] = dtype
            numbers[EACH] = copied if _is_on_host(kind, source, made, result) else 0
        if queue is not None and not self._stays_on_host(kind, source, made, result):
            self._queued(row, kind.key(source), at, queue, took)

    def _of_kept(
        self, row: Row, kind: Kind, source: Any, made: Kind, result: Any, there: int | None
    ) -> tuple[int, int] | None:
        """View or copy of the copy on the host that an array keeps; None if not of that."""
        host = kind.kept(source) if kind.kept and made.device(result) == "cpu" else None
        own = None if host is None else self.tracer.kinds[type(host)]
        if own is None:
            return None
        found = _compared(row, own, host, own.address(host), made, result, there)
        return found if found[0] == VIEWS or kind.device(source) != "cpu" else None

    def _queued(self, row: Row, key: Any, outcome: int, queue: Queue, took: float) -> None:
        """Count a call by the queue that it met.

        The first one compares with no other: a framework loads code and sets up a device in it.
        """
        if not self._was_called:
            self._was_called, queue = True, (queue[0], FIRST)
        row.queued(key, outcome, queue, took)

    def _exported(self, export: Export, result: Any) -> None:
        stale = self.tracer.capsules.get(id(result))
        if stale is not None:
            stale.flush()
        self.tracer.capsules[id(result)] = export

    def _note_dtype(self, row: Row, source: Any, result: Any) -> None:
        """Note the dtype of a result that is not the source's."""
        names = dtype_name(source), dtype_name(result)
        if names[0] != names[1] and "?" not in names:
            row.retyped.add(names[1])

    def _view(
        self,
        array: Any,
        way: Way,
        site: Site,
        _: Any,
        result: Any,
        took: float,
        queue: Queue | None,
    ) -> None:
        self.met(way, site, array, result, took, queue)

    def _container(
        self,
        kept: list[bool],
        _: Way,
        site: Site,
        source: Any,
        result: Any,
        took: float,
        queue: Queue | None,
    ) -> None:
        row, found, made = site[ROW], list(leaves(source)), self.tracer.kinds[type(result)]
        if made is not None:  # one array of many: it cannot be a view of all
            if _is_on_meta(made, result):
                return
            copied = made.nbytes(result)
            outcome = (UNKNOWN, 0) if _is_empty(made, result) else (COPIES, copied)
            row.consumer = made.framework
        else:
            outcome = self._compared_leaves(row, found, list(leaves(result)), kept)
        kind = row.kind
        alike = (one for one in found if self.tracer.kinds[type(one)] is kind)
        first = next((one for one in alike if not _is_empty(kind, one)), found[0])
        row.first_ns = row.first_ns or took
        key = kind.key(first)
        count(row.numbers(key, lambda: kind.nbytes(first)), took, *outcome)
        if queue is not None:
            form = KEPT if any(kept) else queue[1]
            self._queued(row, key, outcome[0], (queue[0], form), took)

    def _compared_leaves(
        self, row: Row, found: list[Any], given: list[Any], kept: list[bool]
    ) -> tuple[int, int]:
        """One call: a copy if anything was copied, a view if all are views."""
        outcomes = []
        for one, other, keeps in zip(found, given, kept, strict=False):
            kind, made = self.tracer.kinds[type(one)], self.tracer.kinds[type(other)]
            if kind is not None and made is not None and one is not other:
                row.consumer = made.framework
                if _is_empty(made, other):
                    continue
                here, there = kind.address(one), made.address(other)
                outcomes.append(
                    (keeps and self._of_kept(row, kind, one, made, other, there))
                    or _compared(row, kind, one, here, made, other, there)
                )
        words = {at for at, _ in outcomes}
        if len(found) != len(given) or not words:
            return UNKNOWN, 0
        at = COPIES if COPIES in words else UNKNOWN if UNKNOWN in words else VIEWS
        return at, sum(copied for _, copied in outcomes)

    def _consumed(
        self,
        export: Export,
        _way: Way,
        site: Site,
        _: Any,
        result: Any,
        took: float,
        queue: Queue | None,
    ) -> None:
        row = site[ROW]
        outcome = self._ends(row, export.address, result)
        row.device = row.device or export.row.device
        took += export.took
        row.first_ns = row.first_ns or took
        count(row.numbers(export.key, lambda: export.size), took, *outcome)
        if queue is not None:
            self._queued(row, export.key, outcome[0], queue, took)

    def _loose(
        self,
        address: int | None,
        _way: Way,
        site: Site,
        _: Any,
        result: Any,
        took: float,
        _queue: Queue | None,
    ) -> None:
        row = site[ROW]
        made = self.tracer.kinds[type(result)]
        size = made.nbytes(result) if made is not None else 0
        key = made.key(result) if made is not None else ("?", ())
        outcome = self._ends(row, address, result)
        row.first_ns = row.first_ns or took
        count(row.numbers(key, lambda: size), took, *outcome)

    def _ends(self, row: Row, here: int | None, result: Any) -> tuple[int, int]:
        """View or copy of what a capsule held."""
        made = self.tracer.kinds[type(result)]
        if made is None:
            return UNKNOWN, 0
        row.consumer, there = made.framework, made.address(result)
        if _is_empty(made, result):
            return UNKNOWN, 0
        return _seen(here, 0, made, result, there)

    def failed(self, error: Exception, site: Site, took: float) -> None:
        """A failure of the tracer ends the look at addresses for this row; calls still count."""
        row, site[MADE] = site[ROW], None
        row.trouble = f"{type(error).__name__}: {error}"[:200]
        count(row.numbers("unknown", lambda: 0), took, UNKNOWN, 0)

    def missed(self, error: Exception) -> None:
        """A failure of the tracer before the call: it is not counted, and a line says so."""
        self.tracer.rows.trouble(self.target.conversion, error)


def _is_on_host(kind: Kind, source: Any, made: Kind, result: Any) -> bool:
    """Whether one end is an array of NumPy, and the other a tensor on the host."""
    tensor = result if kind.in_head else source
    is_pair = kind.in_head != made.in_head and {kind.framework, made.framework} == NUMPY_AND_TORCH
    return is_pair and bool(tensor.is_cpu)


def _compared(
    row: Row,
    kind: Kind,
    source: Any,
    here: int | None,
    made: Kind,
    result: Any,
    there: int | None,
) -> tuple[int, int]:
    """View or copy, by the devices and addresses of both ends; and the bytes copied."""
    if _is_empty(made, result):
        return UNKNOWN, 0
    one = "cpu" if kind.is_host else kind.device(source)
    other = "cpu" if made.is_host else made.device(result)
    is_same = here and here == there  # of memory that two devices share
    if one != other and not is_same and are_apart(one, other):
        row.crossings[one, other] = row.crossings.get((one, other), 0) + 1
        return COPIES, made.nbytes(result)
    found = _seen(here, kind.nbytes(source) if kind.is_buffer else 0, made, result, there)
    return (UNKNOWN, 0) if kind.may_keep and found[0] == COPIES else found


def _is_empty(kind: Kind, array: Any) -> bool:
    """Whether an array has no elements: it has no memory, and is neither view nor copy."""
    return not kind.nbytes(array) and 0 in (kind.key(array)[1] or ())


def _is_on_meta(kind: Kind | None, array: Any) -> bool:
    """Whether it is a tensor of PyTorch that stands for no data: nothing is converted."""
    return kind is not None and kind.framework == "torch" and bool(array.is_meta)


def _seen(
    here: int | None, size: int, made: Kind, result: Any, there: int | None
) -> tuple[int, int]:
    """View or copy, by the addresses. A view of a buffer of ``size`` bytes may begin inside it."""
    copied = made.nbytes(result)
    if here and there:
        return (VIEWS, 0) if here == there or here < there < here + size else (COPIES, copied)
    if made.owns is not None and made.owns(result):
        return COPIES, copied
    return UNKNOWN, 0
