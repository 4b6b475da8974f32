"""The traced call: times around it, addresses after it.

The frames of a wrapper take themselves out of the traceback of what the call raises. This needs
Python 3.11: before, a bare ``raise`` keeps the traceback of the handler.
"""

from __future__ import annotations

import functools
import sys
import time
import types
from collections.abc import Callable, Mapping
from threading import get_ident
from typing import Any

from dlprof.tracer.arrays import HEADS, resolved
from dlprof.tracer.calls import Calls
from dlprof.tracer.rows import BYTES, COPIES, DTYPE, EACH, SIZE, TIME, VIEWS
from dlprof.tracer.state import KEPT, MISSING, Tracer
from dlprof.tracer.targets import Target

WORDS = (*functools.WRAPPER_ASSIGNMENTS, "__text_signature__")
_getframe, _clock = sys._getframe, time.perf_counter  # noqa: SLF001 - CPython's own way
"""Seconds: Python subtracts and compares floats faster than integers of that size."""


def make(original: Callable[..., Any], target: Target, tracer: Tracer) -> Callable[..., Any]:
    """``original`` with a record of each conversion."""
    calls = Calls(tracer, target)
    ways, inside, record = calls.ways, tracer.inside, _record(original, calls)

    def traced(source: Any = MISSING, /, *rest: Any, **kwargs: Any) -> Any:
        # Short, as most calls convert nothing: a frame with few names is made fast.
        try:
            try:
                way = ways[type(source)]
            except KeyError:
                way = calls.first_way(type(source))
            if way is None:
                if rest or kwargs:
                    return original(source, *rest, **kwargs)
                return original(source)
            if not (inside and get_ident() in inside):
                try:
                    frame = _getframe(1)
                except ValueError:  # at exit, or in a thread of C: no line of the program
                    pass
                else:
                    return record(frame, way, source, rest, kwargs)
            if rest or kwargs or source is MISSING:
                return original(*_given(source, rest), **kwargs)
            return original(source)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next  # type: ignore[union-attr]
            raise

    # torch.compile looks into the original instead of the wrapper.
    traced._torchdynamo_inline = original  # type: ignore[attr-defined]  # noqa: SLF001
    wrapper: Callable[..., Any] = _like(original, target, traced)
    return wrapper


def _like(original: Callable[..., Any], target: Target, traced: Any) -> Any:
    """Make ``traced`` look like ``original``."""
    is_plain = target.is_method or isinstance(original, types.FunctionType)
    wrapper: Any = functools.update_wrapper(
        traced if is_plain else Builtin(traced), original, WORDS
    )
    vars(wrapper)["autograph_info__"] = {}  # TensorFlow does not rewrite what has it
    if target.is_method:  # pickled by its name, where a method in C has no module
        owner = resolved(target.owner)
        wrapper.__module__ = getattr(owner, "__module__", wrapper.__module__)
        wrapper.__qualname__ = f"{getattr(owner, '__qualname__', '')}.{target.name}".lstrip(".")
    return wrapper


def _given(source: Any, rest: tuple[Any, ...]) -> tuple[Any, ...]:
    return rest if source is MISSING else (source, *rest)


def _record(  # noqa: C901, PLR0915 - one frame alone may stand between the wrapper and the call
    original: Callable[..., Any], calls: Calls
) -> Callable[..., Any]:
    """What calls ``original`` with an array, and counts it for the line that did."""
    rows, inside = calls.tracer.rows, calls.tracer.inside
    with_events = rows.with_events

    def record(  # noqa: C901, PLR0912, PLR0915 - same
        frame: types.FrameType,
        way: Any,
        source: Any,
        rest: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:
        row = args = handed = queue = took = busy = None
        try:
            try:
                if way.is_special:
                    args = _given(source, rest)
                    way, source, handed, busy = calls.special(way, args, kwargs)
                elif rest or kwargs:
                    args = source, *rest
                if way is not None:
                    site = way.last
                    code, at, row, made, address, dtype, shape, numbers, at_result, kind = site
                    if frame.f_code is not code or frame.f_lasti != at:
                        site = calls.site(frame, way)
                        _, _, row, made, address, dtype, shape, numbers, at_result, kind = site
                    if busy is None and way.is_busy is not None and handed is None:
                        busy = way.is_busy(source)
                    if busy is not None:
                        form: Any = None if args is None else (len(args), *kwargs)
                        if way.kept is not None and way.kept(source) is not None:
                            form = KEPT
                        queue = busy, form
            except Exception as error:  # noqa: BLE001 - the tracer's own is not the program's
                calls.missed(error)
                row = None
            del frame
            if way is None:
                return original(source) if args is None else original(*args, **kwargs)
            me = get_ident()
            inside.add(me)
            try:
                if row is None:  # not counted; nor are the calls inside it
                    return original(source) if args is None else original(*args, **kwargs)
                began = _clock()
                result = original(source) if args is None else original(*args, **kwargs)
                took = (_clock() - began) * 1e9
                try:
                    if handed is not None:
                        handed(way, site, source, result, took, queue)
                    elif (
                        type(result) is made
                        and not (at_result and args)
                        and (one := result if at_result else source).dtype is dtype
                        and one.shape == shape
                        and result is not source
                    ):
                        here = HEADS[id(source) >> 3] if way.in_head else way.address(source)
                        there = HEADS[id(result) >> 3] if address is None else address(result)
                        if here == there and here and queue is None:
                            numbers[TIME] += took
                            numbers[VIEWS] += 1
                        elif (
                            (copied := numbers[EACH])
                            and queue is None
                            and here
                            and there
                            and result.dtype is numbers[DTYPE]
                            and (result if way.in_head else source).is_cpu
                            and (there >= here + numbers[SIZE] or there + copied <= here)
                        ):
                            numbers[TIME] += took
                            numbers[COPIES] += 1
                            numbers[BYTES] += copied
                        else:
                            calls.settle(
                                way.kind,
                                row,
                                numbers,
                                source,
                                here,
                                kind,
                                result,
                                there,
                                took,
                                queue,
                            )
                    else:
                        calls.met(way, site, source, result, took, queue, args is None)
                except Exception as error:  # noqa: BLE001 - the tracer's own is not the program's
                    calls.failed(error, site, took)
                if with_events:
                    rows.event(row, began, took)
                if began > rows.next_s:
                    calls.tracer.tick(row, began, took)
            finally:
                inside.discard(me)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next  # type: ignore[union-attr]
            if took is None and row is not None:
                row.raised += 1
            raise
        return result

    return record


class Builtin(functools.partial):  # type: ignore[type-arg]
    """The wrapper of a function that is written in C.

    As an attribute of a class it stays a function, where one of Python would become a method. It
    is pickled by the name of the original, and equal to it: programs and frameworks keep tables of
    functions, and torch gives ``__torch_function__`` the original.
    """

    def __eq__(self, other: object) -> bool:
        mine, others = (getattr(one, "__wrapped__", one) for one in (self, other))
        return bool(mine == others)

    def __hash__(self) -> int:
        return hash(self.__wrapped__)  # type: ignore[attr-defined]

    def __get__(self, owner: Any, kind: Any = None) -> Builtin:
        return self

    def __repr__(self) -> str:
        return repr(self.__wrapped__)  # type: ignore[attr-defined]

    def __reduce__(self) -> str:
        return str(self.__name__)  # type: ignore[attr-defined]
