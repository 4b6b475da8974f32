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

from dlprof.tracer.arrays import HEADS
from dlprof.tracer.calls import Calls
from dlprof.tracer.rows import TIME, VIEWS
from dlprof.tracer.state import Tracer
from dlprof.tracer.targets import Target
from dlprof.tracer.ways import MISSING

WORDS = (*functools.WRAPPER_ASSIGNMENTS, "__text_signature__")
_getframe, _clock = sys._getframe, time.perf_counter_ns  # noqa: SLF001 - CPython's own way


def make(original: Callable[..., Any], target: Target, tracer: Tracer) -> Callable[..., Any]:
    """``original`` with a record of each conversion."""
    calls = Calls(tracer, target)
    ways, learn, inside, record = calls.ways, calls.learn, tracer.inside, _record(original, calls)

    def traced(source: Any = MISSING, /, *rest: Any, **kwargs: Any) -> Any:
        # Short, as most calls convert nothing: a frame with few names is made fast.
        try:
            try:
                way = ways[type(source)]
            except KeyError:
                way = learn(type(source))
            if way is None or (inside and get_ident() in inside):
                if rest or kwargs or source is MISSING:
                    return original(*_given(source, rest), **kwargs)
                return original(source)
            return record(_getframe(1), way, source, rest, kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next  # type: ignore[union-attr]
            raise

    # torch.compile looks into the original instead of the wrapper.
    traced._torchdynamo_inline = original  # type: ignore[attr-defined]  # noqa: SLF001
    is_plain = target.is_method or isinstance(original, types.FunctionType)
    return functools.update_wrapper(traced if is_plain else Builtin(traced), original, WORDS)


def _given(source: Any, rest: tuple[Any, ...]) -> tuple[Any, ...]:
    return rest if source is MISSING else (source, *rest)


def _record(  # noqa: C901, PLR0915 - one frame alone may stand between the wrapper and the call
    original: Callable[..., Any], calls: Calls
) -> Callable[..., Any]:
    """What calls ``original`` with an array, and counts it for the line that did."""
    tracer, rows = calls.tracer, calls.tracer.rows
    inside, words, with_events = tracer.inside, HEADS, rows.with_events
    special, find, met, settle = calls.special, calls.site, calls.met, calls.settle
    missed, failed = calls.missed, calls.failed

    def record(  # noqa: C901, PLR0912, PLR0915 - same
        frame: types.FrameType,
        way: Any,
        source: Any,
        rest: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:
        row = args = handed = busy = took = None
        try:
            try:
                if way.is_special:
                    args = _given(source, rest)
                    way, source, handed = special(way, args, kwargs)
                elif rest or kwargs:
                    args = source, *rest
                if way is not None:
                    site = way.last
                    code, at, row, made, address, dtype, shape, numbers = site
                    if frame.f_code is not code or frame.f_lasti != at:
                        site = find(frame, way)
                        _, _, row, made, address, dtype, shape, numbers = site
                    if way.is_busy is not None and handed is None:
                        busy = way.is_busy(source)
            except Exception as error:  # noqa: BLE001 - the tracer's own is not the program's
                row = missed(error)
            del frame
            if row is None:
                return original(source) if args is None else original(*args, **kwargs)
            me = get_ident()
            try:
                inside.add(me)
                began = _clock()
                result = original(source) if args is None else original(*args, **kwargs)
                took = _clock() - began
                try:
                    if handed is not None:
                        handed(way, site, source, result, took)
                    elif (
                        type(result) is made
                        and source.dtype is dtype
                        and source.shape == shape
                        and result is not source
                    ):
                        here = words[id(source) >> 3] if way.in_head else way.address(source)
                        there = words[id(result) >> 3] if address is None else address(result)
                        if here == there and here and busy is None:
                            numbers[TIME] += took
                            numbers[VIEWS] += 1
                        else:
                            settle(way, row, numbers, (source, here), (result, there), took, busy)
                    else:
                        met(way, site, source, result, took, busy)
                    if with_events:
                        rows.event(row, began, took)
                    if began > rows.next_ns:
                        tracer.tick(row, began, took)
                except Exception as error:  # noqa: BLE001 - the tracer's own is not the program's
                    failed(error, site, took)
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
    is pickled by the name of the original.
    """

    def __get__(self, owner: Any, kind: Any = None) -> Builtin:
        return self

    def __repr__(self) -> str:
        return repr(self.__wrapped__)  # type: ignore[attr-defined]

    def __reduce__(self) -> str:
        return str(self.__name__)  # type: ignore[attr-defined]
