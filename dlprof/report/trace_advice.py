"""What to write instead on a line of a traced program: only from what a session measured.

A session fits a line if it measured the frameworks in the same versions, with an array of the same
shape, dtype and device. It measured an array in C order; a line may convert others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import product

from dlprof.errors import DlprofError
from dlprof.measuring.measure import load
from dlprof.report.answers import best, condition
from dlprof.report.paths import KINDS, Array, Path, arrays_of
from dlprof.report.trace_document import may_be_advised
from dlprof.runner import session_file, state
from dlprof.runner.quantity import plain_time
from dlprof.runner.session import Session
from dlprof.runner.trace_file import Row, Trace

WORTH = 0.9
"""What is advised takes at most this share of a call of the line, in the program and alone."""


def advice(trace: Trace) -> Mapping[int, str]:
    """By the place of a row: what takes its place, and how long one call of both took alone.

    In a program it takes longer as a rule: caches are cold, and other threads compute.
    """
    wanted = {at: row for at, row in enumerate(trace.rows) if row.arrays and may_be_advised(row)}
    found: dict[int, str] = {}
    for session in _sessions(wanted.values()):
        arrays = arrays_of(session) if _is_alike(session, trace) else []
        for at in [*wanted]:
            array = next((one for one in arrays if _fits(one, wanted[at])), None)
            if array is not None:
                found[at] = _sentence(wanted.pop(at), array)
        if not wanted:
            break
    return {at: text for at, text in found.items() if text}


def _sessions(rows: Iterable[Row]) -> Iterator[Session]:
    """The kept sessions that measured one of the rows, the newest first."""
    arrays = {((row.producer, row.consumer), tuple(row.arrays[0][1])) for row in rows}
    with suppress(DlprofError):
        for path in state.kept_sessions():
            asked = session_file.request(path)
            if any(pair in arrays for pair in product(asked.pairs, asked.axes.shapes)):
                with suppress(DlprofError):
                    yield load(path)


def _is_alike(session: Session, trace: Trace) -> bool:
    """Whether a session measured the program's Python and versions, and took real times."""
    environment = session.environment
    known = {*(environment.packages or {}).values()}
    if trace.simulated:
        return False
    same = environment.python == trace.python and {*trace.versions.values()} <= known
    return same and not session.simulated


def _fits(array: Array, row: Row) -> bool:
    case = array.paths[0].case.result.case
    dtype, shape, *_ = row.arrays[0]
    return (
        case.pair == (row.producer, row.consumer)
        and (case.dtype, [*case.shape], case.layout) == (dtype, shape, "C")
        and case.device == row.device.partition(":")[0]
    )


def _sentence(row: Row, array: Array) -> str:
    if row.waits:
        offered = _offered(array)
        ordered = [
            path
            for path in offered
            if path.case.order == "stream-ordered" and path.code != row.conversion
        ]
        return f"{ordered[0].code} does not wait" if ordered else ""
    own = next((one for one in array.paths if one.code == row.conversion and one.is_timed), None)
    most_ns = (
        row.total_ns / row.calls if own is None else min(own.cost_ns, row.total_ns / row.calls)
    )
    for path in _offered(array):
        fits = path.case.kind == "view" or len(row.arrays) == 1
        if path is not own and path.cost_ns <= WORTH * most_ns and fits:
            when = f", but {condition(path)}" if condition(path) else ""
            instead = f"{path.code} {path.brief_time} ({path.case.kind}{when})"
            as_now = f"{own.code} {own.brief_time}, " if own is not None else ""
            here = plain_time(row.total_ns / row.calls)
            return f"a call takes {here} here; alone: {as_now}{instead}"
    return ""


def _offered(array: Array) -> Iterator[Path]:
    for kind in KINDS:
        path = best(array, kind)
        if path is not None and path.is_timed and path.safety.level in ("safe", "right"):
            yield path
