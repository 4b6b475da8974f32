"""Which path to write: the fastest safe view and the fastest safe copy of an array."""

from __future__ import annotations

from collections.abc import Sequence

from dlprof.judge import FAULTS, thresholds, with_name
from dlprof.judge.safety import Level, not_looked_at, unchecked
from dlprof.report.document import Answer
from dlprof.report.paths import KINDS, Array, Path, lines_of, plainest
from dlprof.runner.quantity import plain_time, range_text
from dlprof.text.clean import counted

LEVELS: tuple[Level, ...] = ("safe", "right", "unchecked")
"""Of what may be written, the best first."""
MOST_IDS = 3
RACE, CRASH = "DLP003", "DLP016"
DISTURBED = "other programs disturbed its time: it may be far less"


def answers_of(arrays: Sequence[Array]) -> tuple[Answer, ...]:
    """One for a view and one for a copy of one pair's arrays; where no copy is safe, one that is
    after a wait. One alone of a single path.
    """
    if len(arrays) > 1:
        return tuple(_of_several(arrays, kind) for kind in KINDS)
    paths = arrays[0].paths
    if len(paths) == 1 and (only := _answer(arrays[0], paths[0].case.kind or KINDS[0])).code:
        return (only,)
    view, copy = (best(arrays[0], kind) for kind in KINDS)
    default = [] if view else _on_default_stream(arrays[0])
    late = [] if copy else _after_a_wait(arrays[0])
    copies = late or [_answer(arrays[0], "copy")]
    return (_answer(arrays[0], "view"), *default, *copies)


def fastest(array: Array, kind: str) -> list[Path]:
    """The fastest safe paths of a kind, whose times are about the same; the fastest right ones
    where nothing is known to be safe.

    A copy is offered if it copies wherever the array begins, and nothing asks it not to. One whose
    time is that of what its framework keeps is offered where there is no other. So is a path whose
    time other programs disturbed.
    """
    for level in LEVELS:
        found = [
            path for path in array.paths if path.safety.level == level and path.offered == kind
        ]
        if found:
            known = [
                path
                for path in found
                if not path.case.is_cached_copy or path.case.new_ns is not None
            ]
            own = [path for path in known or found if not _is_disturbed(path)]
            return lines_of(own or known or found)[0]
    return []


def _is_disturbed(path: Path) -> bool:
    return path.case.ready is not None and path.case.ready.is_disturbed


def _may_be_faster(array: Array, found: Path, kind: str) -> int:
    """How many paths of the kind, as safe as ``found``, took less although disturbed."""
    return sum(
        path.safety.level == found.safety.level
        and path.offered == kind
        and _is_disturbed(path)
        and path.cost_ns < found.cost_ns
        for path in array.paths
    )


def best(array: Array, kind: str) -> Path | None:
    """The plainest of :func:`fastest`."""
    line = fastest(array, kind)
    return plainest(line) if line else None


def _of_several(arrays: Sequence[Array], kind: str) -> Answer:
    """The path that is the fastest for each array, if it is one."""
    found = [(array, path) for array in arrays if (path := best(array, kind)) is not None]
    if not found:
        return _answer(arrays[0], kind)
    paths = [path for _, path in found]
    is_fastest = not any(_may_be_faster(array, path, kind) for array, path in found)
    label = f"{_fastest(arrays) if is_fastest else ''}{_word(paths)} {kind}"
    if len({path.case.path[:4] for path in paths}) > 1:
        return Answer(label, "", "", "depends on the array: see the table")
    notes = [_condition(array, path) for array, path in found]
    if len(paths) < len(arrays):
        notes.insert(0, f"for {len(paths)} of {len(arrays)} arrays")
    ordered = sorted(paths, key=lambda path: path.cost_ns)
    low, high = ordered[0], ordered[-1]
    times = low.brief_time
    if high.brief_time != times:
        are_certain = low.is_certain and high.is_certain
        times = (
            range_text(low.cost_ns, high.cost_ns)
            if are_certain
            else f"{low.brief_time} to {high.brief_time}"
        )
    return Answer(label, paths[0].code, times, next(filter(None, notes), ""))


def _word(paths: Sequence[Path]) -> str:
    """``safe``, or ``correct`` where something was not looked at."""
    levels = {path.safety.level for path in paths}
    return levels.pop() if levels in ({"safe"}, {"unchecked"}) else "correct"


def _answer(array: Array, kind: str) -> Answer:
    """The fastest path of a kind; where there is none, why."""
    line = fastest(array, kind)
    if not line:
        return Answer(f"{_fastest([array])}safe {kind}", "", "", _why_none(array, kind))
    found = plainest(line)
    if _is_disturbed(found):  # nobody knows which is the fastest
        notes = filter(None, (_condition(array, found), DISTURBED))
        label = f"{_word([found])} {kind}"
        return _named(label, found, "; ".join(notes))
    if faster := _may_be_faster(array, found, kind):
        note = f"{counted(faster, 'path')} with a disturbed time may be faster"
        notes = filter(None, (_condition(array, found), note))
        return _named(f"{_word([found])} {kind}", found, "; ".join(notes))
    label = f"{_fastest([array])}{_word([found])} {kind}"
    others = len(line) - 1
    # The times of such paths are listed too, and one of them may be a little lower.
    near = f"{counted(others, 'other')} about as fast" if others and found.is_timed else ""
    return _named(label, found, _condition(array, found) or near)


def _named(label: str, path: Path, note: str, code: str = "") -> Answer:
    return Answer(label, code or path.code, path.brief_time, note, path.case.index)


def _fastest(arrays: Sequence[Array]) -> str:
    """``fastest ``; nothing where no path was timed on purpose."""
    untimed = any(path.case.result.untimed for array in arrays for path in array.paths)
    return "" if untimed else "fastest "


def waited(array: Array) -> Path | None:
    """The fastest copy that is whole if its result is waited for before its source is written."""
    late = [
        path
        for path in array.paths
        if array.cases.waiting_helps(path.case) and path.is_copy and not path.case.is_wrong
    ]
    return plainest(lines_of(late)[0]) if late else None


def _on_default_stream(array: Array) -> list[Answer]:
    """The fastest view of which all was looked at, and that is a race on other streams only."""
    found = [
        path
        for path in array.paths
        if path.result == "view"
        and path.safety.rules == (RACE,)
        and not path.safety.suspected
        and path.case.is_ordered_by_default
        and not (unchecked(path.case) or not_looked_at(path.case))
    ]
    if not found:
        return []
    path = plainest(lines_of(found)[0])
    return [_named("default stream", path, f"a race if work on x is elsewhere: {RACE}")]


def _after_a_wait(array: Array) -> list[Answer]:
    found = waited(array)
    if found is None:
        return []
    recipe = found.case.result.recipe
    wait = recipe.result.get("wait", "") if recipe else ""
    code = wait.format(x=found.code) if "{x}" in wait and "\n" not in wait else found.code
    rules = ", ".join(found.safety.rules or found.safety.suspected)
    see = f" ({rules})" if rules else ""
    note = f"do not write to {found.source} before the result is ready{see}"
    return [_named("copy and wait", found, note, code)]


def _condition(array: Array, path: Path) -> str:
    """When the answer holds; and that the path ends the process for other arrays."""
    ended = any(
        one.is_lost_for_sure and one.surveyed and one.result.case.way == path.case.result.case.way
        for one in array.cases.cases
    )
    crash = f"crashes or hangs for other arrays: {CRASH}" if ended else ""
    return "; ".join(filter(None, (crash, condition(path))))


def condition(path: Path) -> str:
    """When the answer holds, in a few words; empty where it always does."""
    found = []
    if path.case.kind == "view" and path.elsewhere & {"refused", "copy"}:
        does = "raises" if "refused" in path.elsewhere else "copies"
        # What it was a view of is enough. More than a cache line is an accident.
        enough = min([thresholds.ALIGNED_BYTES, *path.case.alignments])
        found.append(f"{does} unless {path.source} is {enough:.0f}-byte aligned")
    if path.case.waits_for is not None:
        found.append(f"waits for the work queued on {path.source}")
    if path.case.is_cached_copy:
        ready, unknown = path.case.ready, path.case.new_ns is None
        again = f"the same array again takes {plain_time(ready.median_ns)}" if ready else ""
        found.append("a new array takes longer" if unknown else again)
    found += [f"{FAULTS[rule].condition} ({rule})" for rule in path.safety.conditions]
    if path.safety.unknown and not path.is_undiagnosed:
        found.append(path.safety.unknown)
    return "; ".join(found)


def _why_not(paths: Sequence[Path], kind: str) -> str:
    """Why none of the paths of a kind is offered."""
    against = [{rule for rule, _ in path.safety.marked} for path in paths]
    ids = sorted(set.intersection(*against) or set.union(*against))[:MOST_IDS]
    if ids:
        return f"see {', '.join(map(with_name, ids))}"
    if all(path.is_part for path in paths):
        return "no copy of all bytes"
    # The same path was something else: of another array, at another address, or later.
    return f"no path is always a {kind}"


def _why_none(array: Array, kind: str) -> str:
    timed = [path for path in array.paths if path.is_measured]
    # The result of a path that gives wrong values is "wrong", whatever its kind.
    of_kind = [path for path in timed if kind in (path.result, path.case.kind)]
    if of_kind:
        return f"none: {_why_not(of_kind, kind)}"
    if timed:
        unknown = [path for path in timed if path.case.kind in (None, "unknown")]
        no_path = f"no path is {'known to be ' if unknown else ''}a {kind}"
        return f"none: {no_path if len(unknown) < len(timed) else 'view or copy is not known'}"
    ended_at = {path.case.result.refused_at for path in array.paths}
    if ended_at == {"import"}:
        return "unknown: a framework cannot be imported"
    if ended_at == {"create"}:
        return f"unknown: {array.pair[0]} cannot make the array"
    if {path.result for path in array.paths} == {"refused"}:
        return "none: every path is refused"
    return "none: no path could be measured"
