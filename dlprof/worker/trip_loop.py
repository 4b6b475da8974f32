"""The loops that make trips there and back, as source text with no call around the conversions."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from dlprof.probes.base import written
from dlprof.worker import timer
from dlprof.worker.subject import Subject


class Arrays(NamedTuple):
    """What one trip held: the array that went, what it became, and what came back."""

    x: Any
    y: Any
    z: Any


class Marks(NamedTuple):
    """The clock of one trip in ns; ``released`` is after the arrays of the trip before are gone."""

    begin: int
    there_called: int
    there_ready: int
    back_called: int
    back_ready: int
    looked: int
    released: int


@dataclass(frozen=True)
class Trips:
    """``run(x, n)`` makes n trips from ``x`` and reads the clock before the first, after each half,
    and when the last array is there. ``total(x, n)`` gives the ns of all, with no clock between,
    and the arrays of the last. ``halves(x, n, look)`` waits for the result of each half and calls
    ``look(x, y, z)`` in each trip, outside of what is timed. ``idle_waits_ns(x, budget_ns)`` is
    what waiting for a result that is there costs, there and back.
    """

    run: Callable[[Any, int], list[int]]
    total: Callable[[Any, int], tuple[int, Arrays]]
    halves: Callable[[Any, int, Callable[[Any, Any, Any], None]], list[Marks]]
    idle_waits_ns: Callable[[Any, int], tuple[float, float]]


def compile_trips(there: Subject, back: Subject, chained: bool) -> Trips:
    """Loops over the way there and the way back; what comes back goes again if ``chained``."""
    dtype, shape = there.spec.dtype, there.spec.shape
    texts = {
        "go": _text(there, "_x", dtype, shape),
        "come": _text(back, "_y", dtype, shape),
        "come_apart": _text(back, "_b", dtype, shape),
        "wait": back.wait.format(x="_z") or "pass",
        "wait_there": there.wait.format(x="_b") or "pass",
        "wait_back": back.wait.format(x="_c") or "pass",
        "again": "_x = _z" if chained else "pass",
    }
    namespace = {
        **back.namespace,
        **there.namespace,
        "_clock": time.perf_counter_ns,
        "_Arrays": Arrays,
        "_Marks": Marks,
    }
    scope: dict[str, Any] = {}
    text = _LOOPS.format(**texts)
    exec(compile(text, "<round trip>", "exec"), namespace, scope)  # noqa: S102 - the probes' own text

    def idle_waits_ns(source: Any, budget_ns: int) -> tuple[float, float]:
        held = scope["total"](source, 1)[1]._asdict()
        names = {**namespace, **{f"_{name}": array for name, array in held.items()}}
        waits = (there.wait.format(x="_y"), back.wait.format(x="_z"))
        go, come = (_idle_ns(wait, names, budget_ns // 8) if wait else 0.0 for wait in waits)
        return go, come

    return Trips(scope["run"], scope["total"], scope["halves"], idle_waits_ns)


def _text(way: Subject, name: str, dtype: str, shape: object) -> str:
    return written(way.import_.code, written(way.export.code, name, dtype, shape), dtype, shape)


def _idle_ns(wait: str, namespace: dict[str, Any], budget_ns: int) -> float:
    """What a wait costs for a result that is there: the first call of the loop waits for it."""
    return max(timer.sample(timer.compile_loop(wait, namespace), budget_ns).median_ns, 0.0)


# In ``halves`` what a trip made replaces what the one before made only after the last clock of its
# way back: else the release of the old arrays, which may take longer than a view, would be in it.
_LOOPS = """\
def run(_x, _n):
    _times = [_clock()]
    for _ in range(_n):
        _y = {go}
        _times.append(_clock())
        _z = {come}
        _times.append(_clock())
        {again}
    {wait}
    _times.append(_clock())
    return _times


def total(_x, _n):
    _z = _x
    _begin = _clock()
    for _ in range(_n):
        {again}
        _y = {go}
        _z = {come}
    {wait}
    return _clock() - _begin, _Arrays(_x, _y, _z)


def halves(_x, _n, _look):
    _marks = []
    _y = _z = None
    for _ in range(_n):
        _begin = _clock()
        _b = {go}
        _gone = _clock()
        {wait_there}
        _there = _clock()
        _c = {come_apart}
        _come = _clock()
        {wait_back}
        _back = _clock()
        _look(_x, _b, _c)
        _looked = _clock()
        _y = _b
        _z = _c
        {again}
        del _b, _c
        _marks.append(_Marks(_begin, _gone, _there, _come, _back, _looked, _clock()))
    return _marks
"""
