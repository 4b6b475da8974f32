"""Stale: does a result behind queued work have the values that the queue ends with?

A wrong value proves a race, whatever the times say; a right one does not disprove it.
"""

from __future__ import annotations

from typing import Any

from dlprof.worker.load import Load


def look(load: Load, work: int) -> tuple[bool | None, str | None]:
    """Whether a result behind ``work`` units is right; and why nothing could be read, if so.

    The first is None where values cannot be compared, or where an idle queue does not lead to
    them either: then it is the conversion that changes them.
    """
    try:
        return _is_right(load, work), None
    except Exception as error:  # noqa: BLE001 - whatever a framework raises; times have their say
        return None, f"{type(error).__name__}: {error}"


def _is_right(load: Load, work: int) -> bool | None:
    if not _is_right_behind(load, 1, finished=True):
        return None
    right = _is_right_behind(load, work, finished=False)
    if right is False and not _is_right_behind(load, 1, finished=True):
        return None  # it gives old values of a memory or an id that it has seen before
    return right


def _is_right_behind(load: Load, work: int, finished: bool) -> bool | None:
    """Of an array that nobody knows afterwards: the next one is likely to get its memory, with
    values that are wrong for certain.
    """
    array = load.enqueue(work)
    if finished:
        load.finish(array)
    seen = _read(load, array)
    load.finish(array)
    right = load.is_right(seen, array)
    load.spoil(array)
    return right


def _read(load: Load, array: Any) -> Any:
    """The values of a result as soon as it is called ready, which may be before the queue ends."""
    result = load.convert(array)
    if load.ready is not None:
        load.ready(result)
    return load.look(result)
