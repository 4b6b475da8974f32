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


def answers_of(arrays: Sequence[Array]) -> tuple[Answer, ...]:
    """The fastest view and the fastest copy of one pair's arrays.

    If no view is safe on every stream, one for the default stream; if no copy is safe, one that is
    after a wait.
    """
    if len(arrays) > 1:
        return tuple(_of_several(arrays, kind) for kind in KINDS)
    (array,) = arrays
    view, copy = (_answer(array, kind) for kind in KINDS)
    default = None if view.code else _on_default_stream(array)
    late = None if copy.code else _after_a_wait(array)
    return tuple(filter(None, (view, default, late or copy)))


def fastest(array: Array, kind: str) -> list[Path]:
    """The fastest safe paths of a kind that take about the same time; else the fastest right ones.

    A path with a problem is offered only if all have one. So is one whose time is not its own: that
    of a copy which the framework keeps, or one that other programs disturbed.
    """
    for level in LEVELS:
        found = [one for one in array.paths if (one.safety.level, one.offered) == (level, kind)]
        if found:
            clean = [one for one in found if not _has_problem(one)] or found
            new = [one for one in clean if not _is_kept(one)] or clean
            own = [one for one in new if not _is_disturbed(one)] or new
            return lines_of(own)[0]
    return []


def best(array: Array, kind: str) -> Path | None:
    """The plainest of :func:`fastest`."""
    line = fastest(array, kind)
    return plainest(line) if line else None


def _has_problem(path: Path) -> bool:
    return path.worst in ("error", "warning")


def _is_disturbed(path: Path) -> bool:
    return path.case.ready is not None and path.case.ready.is_disturbed


def _is_kept(path: Path) -> bool:
    """Whether only the time of an array that was converted before is known."""
    return path.case.is_cached_copy and path.case.new_ns is None


def _of_several(arrays: Sequence[Array], kind: str) -> Answer:
    """The path that is the fastest for each array, if it is one."""
    found = [(array, path) for array in arrays if (path := best(array, kind)) is not None]
    if not found:
        return _answer(arrays[0], kind)
    paths = [path for _, path in found]
    label = _label(paths, kind)
    if len({path.case.path[:4] for path in paths}) > 1:
        return Answer(label, note="depends on the array: see the table")
    notes = [condition(path) for path in paths]
    if len(paths) < len(arrays):
        notes.insert(0, f"for {len(paths)} of {len(arrays)} arrays")
    costs = [path.cost_ns for path in paths]
    times = range_text(min(costs), max(costs)) if paths[0].is_timed else ""
    return Answer(label, paths[0].code, times, next(filter(None, notes), ""))


def _label(paths: Sequence[Path], kind: str) -> str:
    """``fastest safe view``; ``correct`` if something was not looked at."""
    levels = {path.safety.level for path in paths}
    word = levels.pop() if levels in ({"safe"}, {"unchecked"}) else "correct"
    fast = "" if any(path.case.result.untimed for path in paths) else "fastest "
    return f"{fast}{'' if any(map(_has_problem, paths)) else f'{word} '}{kind}"


def _answer(array: Array, kind: str) -> Answer:
    """The fastest path of a kind, or the rules that speak against all of them."""
    line = fastest(array, kind)
    if not line:
        untimed = any(path.case.result.untimed for path in array.paths)
        return Answer(f"{'' if untimed else 'fastest '}safe {kind}", note=_none(array, kind))
    found = plainest(line)
    others = len(line) - 1
    near = f"{counted(others, 'other')} about as fast" if others and found.is_timed else ""
    return _named(_label([found], kind), found, _condition(array, found) or near)


def _named(label: str, path: Path, note: str, code: str = "") -> Answer:
    return Answer(label, code or path.code, path.brief_time, note, path.case.index)


def waited(array: Array) -> Path | None:
    """The fastest copy that is whole if its result is waited for before its source is written."""
    late = [
        path
        for path in array.paths
        if array.cases.waiting_helps(path.case)
        and path.offered == "copy"
        and not path.case.is_wrong
    ]
    return plainest(lines_of(late)[0]) if late else None


def _on_default_stream(array: Array) -> Answer | None:
    """The fastest view that is a race on other streams, and nothing else."""
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
        return None
    path = plainest(lines_of(found)[0])
    return _named("default stream", path, f"a race if work on x is elsewhere: {RACE}")


def _after_a_wait(array: Array) -> Answer | None:
    found = waited(array)
    if found is None:
        return None
    recipe = found.case.result.recipe
    wait = recipe.result.get("wait", "") if recipe else ""
    code = wait.format(x=found.code) if "{x}" in wait and "\n" not in wait else found.code
    rules = ", ".join(found.safety.rules or found.safety.suspected)
    see = f" ({rules})" if rules else ""
    note = f"do not write {found.case.result.case.source} before it is ready{see}"
    return _named("copy and wait", found, note, code)


def _condition(array: Array, path: Path) -> str:
    """Return when the answer holds, and whether the path crashes for other arrays."""
    ended = any(
        one.is_lost_for_sure and one.surveyed and one.result.case.way == path.case.result.case.way
        for one in array.cases.cases
    )
    crash = f"crashes or hangs for other arrays: {CRASH}" if ended else ""
    return "; ".join(filter(None, (crash, condition(path))))


def condition(path: Path) -> str:
    """Return when the answer holds, in a few words; empty if it always does."""
    found, source = [], path.case.result.case.source
    if _has_problem(path):
        found.append(f"see {', '.join(path.rules)}")
    if path.case.kind == "view" and path.elsewhere & {"refused", "copy"}:
        does = "raises" if "refused" in path.elsewhere else "copies"
        # What it was a view of is enough. More than a cache line is an accident.
        enough = min([thresholds.ALIGNED_BYTES, *path.case.alignments])
        found.append(f"{does} unless {source} is {enough:.0f}-byte aligned")
    if path.case.waits_for is not None:
        found.append(f"waits for the work queued on {source}")
    if _is_kept(path):
        found.append("a new array takes longer")
    elif path.case.is_cached_copy and path.case.ready is not None:
        found.append(f"the same array again takes {plain_time(path.case.ready.median_ns)}")
    found += [f"{FAULTS[rule].condition} ({rule})" for rule in path.safety.conditions]
    return "; ".join(found)


def _none(array: Array, kind: str) -> str:
    """``none``, with the rules that speak against all paths of the kind."""
    paths = [one for one in array.paths if kind in (one.result, one.case.kind)]
    against = [{rule for rule, _ in path.safety.marked} for path in paths if path.is_measured]
    ids = sorted(set.intersection(*against) or set.union(*against))[:MOST_IDS] if against else []
    return f"none: see {', '.join(map(with_name, ids))}" if ids else "none"
