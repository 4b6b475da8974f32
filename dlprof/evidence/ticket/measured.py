"""Numbers with their intervals, and what proves the claim, in words."""

from __future__ import annotations

from collections.abc import Sequence

from dlprof.analysis.known import number
from dlprof.analysis.owner_times import owner_times_text
from dlprof.analysis.quantity import plain_time, size_text
from dlprof.evidence.ticket.expected import retold
from dlprof.evidence.ticket.markdown import code, prose, public
from dlprof.plan.axes import shape_text
from dlprof.reports.cell_text import told_speed, told_time
from dlprof.reports.result_row import row_of
from dlprof.reports.row import Row
from dlprof.rules.pages import section
from dlprof.rules.witness import witnesses
from dlprof.session.model import FindingRecord, Result, Session
from dlprof.text.clean import first_line

MOST_CASES = 8
UNITS = {"ns": plain_time, "bytes": lambda value: size_text(round(value))}
WORDS = {
    "cost_ns": "what it costs per call",
    "idle_ns": "the call with an empty queue",
    "loaded_ns": "the call behind queued work",
    "queued_ns": "length of the queued work",
    "wrong_values": "wrong values were read",
    "slope": "slope of the call's time over that of the queue",
    "streams": "on which streams",
    "waits": "what it waits for besides",
    "slow_ns": "the slow path, per call",
    "slow_fastest_mode_ns": "the slow path, per call in its fastest mode",
    "fast_ns": "the fastest path that gives the same, per call",
    "fast_slowest_mode_ns": "the fastest path that gives the same, per call in its slowest mode",
    "copy_ns": "the copy, per call",
    "copy_fastest_mode_ns": "the copy, per call in its fastest mode",
    "view_ns": "the view, per call",
    "view_slowest_mode_ns": "the view, per call in its slowest mode",
    "there_ns": "there, by the best path",
    "there_fastest_mode_ns": "there, by the best path in its fastest mode",
    "back_ns": "back, by the best path",
    "back_slowest_mode_ns": "back, by the best path in its slowest mode",
    "host_ns": "until the call returns",
    "ready_ns": "until the values are there",
    "documented": "the documentation says",
    "processes": "processes that looked",
    "broken": "processes in which it was not so",
    "peak_arrays": "memory at the peak, in arrays",
    "refused_ns": "time of the refused request",
    "size_bytes": "size at which it was seen",
    "bytes_per_conversion": "memory left by each conversion",
    "references_per_conversion": "references to the source left by each conversion",
    "objects_per_conversion": "blocks of Python's memory left by each conversion",
    "conversions": "conversions that were counted",
    "copy_alignment_bytes": "copies began at multiples of at most",
    "view_alignment_bytes": "views began at multiples of at least",
    "source_writable": "the source can be written",
    "result_writable": "the result can be written",
}
"""What the names in the evidence of a finding mean."""
FORMS = {
    "±": "After ± stands the larger half of the 95 % interval of the median of the processes.",
    "-": "Two times with a dash between are those of the fastest and of the slowest process.",
    "|": "Times with a bar between are modes into which the processes fall.",
    "~": "After ~ stands the time of one process: no interval is known.",
}
"""What the forms of a time mean, by the mark that they have."""


def measured(results: Sequence[Result], other: Result | None, session: Session) -> str:
    """One line for each case of the finding, and one for the case it is compared with."""
    several = len({result.case.producer for result in results}) > 1
    lines = [_line(result, several) for result in _distinct(results)[:MOST_CASES]]
    more = len(_distinct(results)) - MOST_CASES
    lines += [f"- … and {more:,} more"] if more > 0 else []
    if other is not None:
        lines.append(f"- for comparison: {_line(other).removeprefix('- ')}")
    if not lines:
        return "Nothing was measured to the end."
    return "\n".join([*lines, "", _foot([*results, *([other] if other else [])], session)])


def _foot(results: Sequence[Result], session: Session) -> str:
    """What the times are; of intervals, ranges and modes only where there are some."""
    shown = [text for result in results if (text := _cost(row_of(result)))]
    most = "" if session.complete else "up to "
    rounds = f"{most}{session.rounds} fresh process{'es' if session.rounds != 1 else ''}"
    told = [f"Times are per call, until the result's values are there, from {rounds}."]
    told += [meaning for mark, meaning in FORMS.items() if any(mark in text for text in shown)]
    return " ".join(told) if shown else f"No time was measured; {rounds}."


def _distinct(results: Sequence[Result]) -> list[Result]:
    found: dict[tuple[object, ...], Result] = {}
    for result in results:
        case = result.case
        array = case.producer, case.shape, case.dtype, case.layout
        found.setdefault((case.code, *array), result)
    return list(found.values())


def _line(result: Result, several: bool = False) -> str:
    """``several``: the producer is named, since the arrays are those of more than one."""
    row = row_of(result)
    facts = [
        _cost(row),
        {"-": "", "?": "view or copy: cannot tell"}.get(row.owner, f"result: {row.owner}"),
        owner_times_text(result),
        told_speed(row),
        f"behind queued work: {row.loaded}" if row.loaded else "",
        f"changed: {', '.join(row.changed)}" if row.changed else "",
        "" if row.status == "ok" else f"{row.status}: {first_line(public(result.reason or ''))}",
    ]
    of = f"{result.case.producer} " if several else ""
    array = f"{of}{row.dtype} {shape_text(result.case.shape)} {row.layout}"
    told = prose("; ".join(fact for fact in facts if fact), 600)
    return f"- {code(result.case.code)} of {prose(array, 150)}: {told}"


def _cost(row: Row) -> str:
    return told_time(row) if row.ready is not None else ""


def how_sure(finding: FindingRecord, results: Sequence[Result], session: Session) -> str:
    """Evidence in numbers, how such a finding is proved, and what casts doubt on it."""
    facts = [f"- {prose(_fact(name, value), 300)}" for name, value in _facts(finding)]
    facts += [f"- {prose(fact, 300)}" for fact in witnesses(finding, results)]
    doubts = _doubts(session)
    parts = ["\n".join(facts), section(finding.rule, "How dlprof knows"), doubts]
    return "\n\n".join(part for part in parts if part)


def _facts(finding: FindingRecord) -> list[tuple[str, object]]:
    return list(retold(finding.evidence).items())[:12]


def _fact(name: str, value: object) -> str:
    """``queued: 45 ms`` of ``queued_ns``."""
    if name in WORDS and isinstance(value, bool | str):
        return f"{WORDS[name]}: {public(str(value)).lower()}"
    word, _, unit = name.rpartition("_")
    unit = "bytes" if name == "bytes_per_conversion" else unit
    amount = number(value)
    if amount is not None and unit in UNITS and amount >= 0:
        return f"{WORDS.get(name, word.replace('_', ' '))}: {UNITS[unit](amount)}"
    shown = f"{amount:.3g}" if isinstance(value, float) and amount is not None else str(value)
    return f"{WORDS.get(name, name.replace('_', ' '))}: {shown}"


def _doubts(session: Session) -> str:
    doubts = []
    if session.rounds == 1:
        doubts.append("One process only: no interval is known.")
    if session.foreign_cores is not None and session.foreign_cores > 0.5:  # noqa: PLR2004 - half a core
        doubts.append(
            f"Other programs kept {session.foreign_cores:.1f} cores busy meanwhile: times may be"
            " too high."
        )
    if not session.complete:
        doubts.append("The run was stopped before its end.")
    return " ".join(doubts)
