"""The paths to write, and the tables of paths: of one array, of several arrays, and of pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from dlprof.judge import FAULTS, thresholds, with_name
from dlprof.judge.case_view import is_known, is_too_fast_to_copy
from dlprof.judge.safety import Level
from dlprof.protocol.statement import others
from dlprof.report.document import Answer, Cell, Column, Lines, Section, Table, Tone
from dlprof.report.paths import AT_LEAST, BY, KINDS, Array, JudgedPath, path_lines, queued_work
from dlprof.runner.quantity import (
    MARK,
    is_wide,
    legend,
    plain_time,
    significant,
    time_text,
)
from dlprof.text.clean import counted, first_words

LEVELS: tuple[Level, ...] = ("safe", "right", "unchecked")
"""The levels of a path that may be written, best first."""
MOST_IDS, MOST_WORDS = 3, 20
CRASH = "DLP016"
FIRST_TIMED, FIRST_OTHERS = 4, 2
"""Lines of the first screen: of measured paths, or of others if none was measured."""
CONDITION = "!"
"""Behind a result that is safe under a condition."""
UNCERTAIN = 1.5
"""Times of single processes differ by this ratio without a cause."""
LEAST_BYTES = 64 * 2**10
"""A bandwidth of fewer bytes says more about the call than about the copy."""

Line = Sequence[JudgedPath]
"""Paths that share a line of the first screen."""


# Answers


def array_answers(array: Array) -> tuple[Answer, ...]:
    """Return the fastest view, and the fastest copy; if none is safe, one that needs a wait."""
    view, copy = (_answer(array, kind) for kind in KINDS)
    late = None if copy.code else _wait_answer(array)
    return view, late or copy


def fastest(array: Array, kind: str) -> list[JudgedPath]:
    """Return the fastest safe paths of a kind with about the same time; else right ones.

    A path that leaves the device, has a problem, the time of a cached copy or a disturbed time is
    offered only if no other path is left.
    """
    for level in LEVELS:
        paths = [path for path in array.paths if (path.safety.level, path.offered) == (level, kind)]
        for is_worse in (_leaves_device, _has_problem, _is_kept, _is_disturbed):
            paths = [path for path in paths if not is_worse(path)] or paths
        if paths:
            return path_lines(paths)[0]
    return []


def best(array: Array, kind: str) -> JudgedPath | None:
    """Return the first of :func:`fastest`."""
    line = fastest(array, kind)
    return line[0] if line else None


def _leaves_device(path: JudgedPath) -> bool:
    return (path.case.result.case.device, path.case.result_device) == ("cuda", "cpu")


def _has_problem(path: JudgedPath) -> bool:
    """Whether a finding is worse than an info. The answer tells of a wait by itself."""
    return path.worst in ("error", "warning") and path.rules != ("DLP001",)


def _is_disturbed(path: JudgedPath) -> bool:
    return path.case.ready is not None and path.case.ready.is_disturbed


def _is_kept(path: JudgedPath) -> bool:
    """Whether only the time of an array that was converted before is known."""
    return path.case.is_cached_copy and path.case.new_ns is None


def _label(path: JudgedPath, kind: str) -> str:
    """Return ``fastest safe view``; ``correct`` if part of the diagnosis is missing."""
    word = {"safe": "safe", "unchecked": "unchecked"}.get(path.safety.level, "correct")
    parts = ("" if path.case.result.untimed else "fastest", "" if _has_problem(path) else word)
    return " ".join(filter(None, (*parts, kind)))


def _answer(array: Array, kind: str) -> Answer:
    """Return the fastest path of a kind, or the rules that speak against all of them."""
    line = fastest(array, kind)
    if not line:
        untimed = any(path.case.result.untimed for path in array.paths)
        return Answer(f"{'' if untimed else 'fastest '}safe {kind}", note=_none_text(array, kind))
    path = line[0]
    count = len(line) - 1
    near = f"{counted(count, 'other')} about as fast" if count and path.is_timed else ""
    note = _condition(array, path) or near
    return Answer(_label(path, kind), path.code, path.brief_time, note)


def late_copy(array: Array) -> JudgedPath | None:
    """Return the fastest copy that is whole after a wait for its result."""
    late = [
        path
        for path in array.paths
        if array.cases.waiting_helps(path.case)
        and path.offered == "copy"
        and not path.case.is_wrong
    ]
    return path_lines(late)[0][0] if late else None


def _wait_answer(array: Array) -> Answer | None:
    path = late_copy(array)
    if path is None:
        return None
    recipe = path.case.result.recipe
    wait = recipe.result.get("wait", "") if recipe else ""
    code = wait.format(x=path.code) if "{x}" in wait and "\n" not in wait else path.code
    rules = ", ".join(path.safety.rules or (f"{rule}?" for rule in path.safety.suspected))
    note = f"do not write {path.case.result.case.source} before it is ready"
    return Answer("copy and wait", code, path.brief_time, f"{note} ({rules})" if rules else note)


def _condition(array: Array, path: JudgedPath) -> str:
    """Return the condition of the answer, and whether the path crashes for other arrays."""
    ended = any(
        case.is_lost_for_sure
        and case.surveyed
        and case.result.case.way == path.case.result.case.way
        for case in array.cases.cases
    )
    crash = f"crashes or hangs for other arrays: {CRASH}" if ended else ""
    return "; ".join(filter(None, (crash, condition(path))))


def condition(path: JudgedPath) -> str:
    """Return the condition of the answer in a few words; empty if it always holds."""
    texts, source = [], path.case.result.case.source
    waits, conditions = path.case.waits_for is not None, path.safety.conditions
    named = {*conditions, *(("DLP001",) if waits else ())}  # below, each with its own words
    if _has_problem(path) and (rules := [rule for rule in path.rules if rule not in named]):
        texts.append(f"see {', '.join(rules)}")
    if path.case.kind == "view" and path.other_results & {"refused", "copy"}:
        does = "raises" if "refused" in path.other_results else "copies"
        # The alignment of a known view is enough. More than a cache line is an accident.
        enough = min([thresholds.ALIGNED_BYTES, *path.case.alignments])
        texts.append(f"{does} unless {source} is {enough:.0f}-byte aligned")
    if path.case.bounces:
        texts.append("goes through the host")
    if _leaves_device(path) and path.case.pair[1] != "numpy":  # NumPy has no other memory
        texts.append("the result is on the host")
    if waits:
        wait = "DLP001" in path.rules and _has_problem(path)
        texts.append(f"waits for the work queued on {source}{' (DLP001)' * wait}")
    if _is_kept(path):
        texts.append("a new array takes longer")
    elif path.case.is_cached_copy and path.case.ready is not None:
        texts.append(f"the same array again takes {plain_time(path.case.ready.median_ns)}")
    texts += [f"{FAULTS[rule].condition} ({rule})" for rule in conditions]
    return "; ".join(texts)


def _none_text(array: Array, kind: str) -> str:
    """Return ``none`` with the rules that speak against all paths of the kind."""
    paths = [path for path in array.paths if kind in (path.result, path.case.kind)]
    against = [{*path.safety.rules, *path.safety.suspected} for path in paths if path.is_measured]
    ids = sorted(set.intersection(*against) or set.union(*against))[:MOST_IDS] if against else []
    none = "none of the paths that --path names" if array.is_part else "none"
    return f"{none}: see {', '.join(map(with_name, ids))}" if ids else none


# The first screen


def short_table(array: Array) -> tuple[Table, tuple[str, ...]]:
    """Return the first screen's table, and the meaning of its marks.

    Paths with the same result and problems, and about the same time, share a line. If no path was
    measured, the first ones stand with their reasons.
    """
    measured = [path for path in array.paths if path.is_measured]
    if measured:
        lines = _first_lines(array, path_lines(measured))
        rows = [_row(line, array.problems(line[0]) or line[0].unknown_reason) for line in lines]
    else:
        lines = [[path] for path in array.paths[:FIRST_OTHERS]]
        rows = [_row(line, first_words(line[0].reason, MOST_WORDS), "dim") for line in lines]
    shown = [path for line in lines for path in line]
    columns = _columns(shown)
    hidden = len(array.paths) - len(shown)
    more = f"… {counted(hidden, 'more path')}" if hidden else ""
    filled = tuple(row[-len(columns) :] for row in rows)
    above = array.shared_lines
    return Table(columns, filled, more, is_summary=True, above=above), path_marks(shown)


def _columns(paths: Sequence[JudgedPath]) -> tuple[Column, ...]:
    """Return the columns of :func:`_row`, without the first one if no path has a value in it."""
    is_timed = any(path.is_timed for path in paths)
    first = Column("time", right=True) if is_timed else Column("queued work")
    return (*[first] * any(map(_cost, paths)), *map(Column, ("result", "path", "problem")))


def _cost(path: JudgedPath) -> str:
    return path.brief_time if path.is_timed else queued_work(path)


def _row(line: Line, problem: str, tone: Tone = "") -> tuple[Cell, ...]:
    path = line[0]
    alike = f"and {len(line) - 1} equivalent" if len(line) > 1 else ""
    code = Cell(path.code, code=True, note=alike)
    return Cell(_cost(path)), path.result_cell, code, Cell(problem, tone)


def _first_lines(array: Array, lines: list[list[JudgedPath]]) -> list[list[JudgedPath]]:
    """Return the fastest lines; those of the answers are always among them."""
    answers = [best(array, kind) for kind in KINDS]
    answers += [] if answers[1] else [late_copy(array)]
    answering = [line for line in lines if any(path in line for path in answers if path)]
    alternatives = [line for line in lines if line not in answering]
    shown = [*answering, *alternatives[: FIRST_TIMED - len(answering)]]
    return [line for line in lines if line in shown]


def path_marks(paths: Sequence[JudgedPath]) -> tuple[str, ...]:
    """Explain the marks of these paths in one line."""
    times = [path.brief_time[:1] for path in paths]
    cases = [path.case.result.case for path in paths]
    many = {case.arrays: case.source for case in cases if case.arrays > 1}
    meanings = {
        f"{AT_LEAST} until the call returns": AT_LEAST in times,
        f"{MARK} not certain": MARK in times,
        "* depends on the address of the array": any(
            "*" in path.result_cell.text for path in paths
        ),
        "? seen only in similar paths": any(path.safety.suspected for path in paths),
        **{f"{others(n)}: {n - 1} copies of {source}": True for n, source in many.items()},
    }
    text = " · ".join(mark for mark, is_shown in meanings.items() if is_shown)
    return (text,) if text else ()


# Statements of a user


def statement_answer(array: Array) -> Answer:
    """Return the fastest statement, or the one with the least time per array."""
    timed = [path for path in array.paths if path.is_timed]
    right = [path for path in timed if not path.case.is_wrong] or timed
    if not right:
        return Answer("fastest", note="no statement has a time")
    if array.takes_many:
        best = min(right, key=_array_ns)
        return Answer("least per array", best.code, each_text(best))
    return Answer("fastest", right[0].code, right[0].brief_time, condition(right[0]))


def statement_table(array: Array) -> Table:
    """Compare ways to write one conversion, the fastest first; or calls that take several arrays.

    Times that cannot be told apart from the fastest are ``equal``.
    """
    first, rows = array.paths[0], []
    many = array.takes_many
    for path in sorted(array.paths, key=lambda path: path.case.index) if many else array.paths:
        mark = MARK if MARK in first.brief_time + path.brief_time else ""
        ratio = f"{mark}{significant(path.cost_ns / first.cost_ns)}{BY}" if path.is_timed else ""
        slower = "" if path is first else "equal" if _is_equal(first, path) else ratio
        each = each_text(path) if path.is_timed else ""
        count = path.case.result.case.arrays
        numbers = (str(count), path.brief_time, each) if many else (path.brief_time, slower)
        code, problem = Cell(path.code, code=True), array.problems(path) or path.unknown_reason
        rows.append((*map(Cell, numbers), path.result_cell, code, Cell(problem)))
    titles = ("arrays", "time", "per array") if many else ("time", "slower")
    right = (Column(title, right=True) for title in titles)
    columns = (*right, Column("result"), Column("statement"), Column("problem"))
    return Table(columns, tuple(rows), is_summary=True)


def _array_ns(path: JudgedPath) -> float:
    return path.cost_ns / path.case.result.case.arrays


def each_text(path: JudgedPath) -> str:
    """Return the time of one of the arrays that a call takes."""
    return plain_time(_array_ns(path))


def _is_equal(first: JudgedPath, path: JudgedPath) -> bool:
    """Whether the difference from the fastest is noise: their intervals overlap.

    Times of one process have no interval. They are equal within half of the time.
    """
    if not (first.is_timed and path.is_timed):
        return False
    if first.is_certain and path.is_certain:
        return path.interval_ns[0] <= first.interval_ns[1]
    return path.cost_ns <= UNCERTAIN * first.cost_ns


# All paths of an array


def _full_time(path: JudgedPath) -> str:
    """Return the time with its interval, its modes or its range."""
    return "" if path.case.result.untimed else time_text(path.ready, not path.is_certain)


def _device_time(path: JudgedPath) -> str:
    device_time = path.case.result.device_time
    if device_time is None or device_time.warm is None:
        return ""
    if device_time.warm.median_ns < (device_time.resolution_ns or 0.0):
        return f"<{plain_time(device_time.resolution_ns or 0.0)}"
    return plain_time(device_time.warm.median_ns, 3)


def _speed(path: JudgedPath) -> str:
    """Return the bandwidth, if one number stands for the time of a whole copy."""
    cost, case = path.case.result.copy_cost, path.case
    if cost is None or case.ready is None or case.kind != "copy" or is_too_fast_to_copy(case):
        return ""
    fits = is_known(case.ready) and not is_wide(case.ready) and case.size_bytes >= LEAST_BYTES
    return significant(cost.gb_per_s) if fits and cost.gb_per_s else ""


def _host_time(path: JudgedPath) -> str:
    host = path.case.result.host_time if path.is_timed else None
    return "" if host is None else plain_time(host.median_ns)


def _peak(path: JudgedPath) -> str:
    """Return the peak memory beyond the source, in arrays of its size."""
    arrays = path.case.peak_arrays
    return "" if arrays is None else f"{max(arrays, 0.0):.2f}"


COLUMNS: tuple[tuple[str, Callable[[JudgedPath], str]], ...] = (
    ("time", _full_time),
    ("call returns", _host_time),
    ("on device", _device_time),
    ("behind queued work", queued_work),
    ("GB/s", _speed),
    ("peak arrays", _peak),
)


def full_section(array: Array, heading: str) -> Section:
    """List all measured paths, without empty columns, then the reasons of the others."""
    paths = [path for path in array.paths if path.is_measured]
    blocks: list[Table | Lines] = []
    if paths:
        known = [(title, show) for title, show in COLUMNS if any(map(show, paths))]
        numbers = (Column(title, right=True) for title, _ in known)
        titles = (Column("path"), Column("result"), *numbers, Column("problem"))
        rows = (
            (
                *(Cell(path.code, code=True), path.result_cell),
                *(Cell(show(path) or "-") for _, show in known),
                Cell(array.problems(path) or path.unknown_reason),
            )
            for path in paths
        )
        more = legend(map(_full_time, paths))
        blocks.append(Table(titles, tuple(rows), more, above=array.shared_lines))
    unmeasured = [path for path in array.paths if not path.is_measured]
    reasons = [f"{path.result}: {path.code}: {path.reason}" for path in unmeasured]
    blocks += [Lines(text) for text in (path_marks(paths), tuple(reasons)) if text]
    return Section(heading, tuple(blocks))


# Several arrays


def shapes_table(arrays: Sequence[Array]) -> Table:
    """Return a line for each array: the fastest view and the fastest copy that may be written."""
    names = ("pair", "shape", "dtype", "layout", "device")
    axes = zip(*(array.name for array in arrays), strict=True)
    varying = [index for index, values in enumerate(axes) if len(set(values)) > 1]
    rows = []
    for array in arrays:
        cells = [Cell(array.name[index]) for index in varying]
        for kind in KINDS:
            cells += _kind_cells(array, kind)
        rows.append(tuple(cells))
    titles = [Column(names[index], right=names[index] == "shape") for index in varying]
    for kind in KINDS:
        titles += [Column(kind, right=True), Column("path")]
    return Table(tuple(titles), tuple(rows))


def _kind_cells(array: Array, kind: str) -> tuple[Cell, Cell]:
    """Return time and code of the fastest path of a kind, or of an unsafe one with its rules."""
    if path := best(array, kind):
        return Cell(path.brief_time or "yes"), Cell(path.code, code=True)
    for path in array.paths:
        if (path.offered, path.safety.level) == (kind, "unsafe"):
            rules = map(with_name, path.safety.rules or path.safety.suspected)
            return Cell("unsafe", "bad"), Cell(path.code, code=True, note=", ".join(rules))
    return Cell("-"), Cell("none", "bad")


# Several pairs


def representative(array: Array) -> JudgedPath | None:
    """Return the fastest safe path of an array, else one that is not wrong."""
    fit = [path for kind in KINDS if (path := best(array, kind)) is not None]
    if fit:
        return min(fit, key=lambda path: (LEVELS.index(path.safety.level), path.place))
    known = (path for path in array.paths if path.is_measured and not path.case.is_wrong)
    return next(known, None)


def condition_marks(chosen: Iterable[JudgedPath]) -> tuple[str, ...]:
    """Explain the conditions of these paths, if one has any."""
    rules = {rule for path in chosen for rule in path.safety.conditions}
    texts = [f"{FAULTS[rule].condition} ({rule})" for rule in sorted(rules)]
    return (f"{CONDITION} Safe only if you {' or '.join(texts)}.",) if texts else ()


def pair_answers(arrays: Sequence[Array]) -> tuple[Answer, ...]:
    """Count the pairs and arrays that share memory, copy, or have no path."""
    counts = Counter(_pair_cell(array)[0] for array in arrays)
    has_pairs, has_arrays = len({a.pair for a in arrays}) > 1, len({a.name[1:] for a in arrays}) > 1
    unit = " and ".join(["pairs"] * has_pairs + ["arrays"] * has_arrays)
    answers = (Answer("share memory", note=f"{counts.pop('view', 0)} of {len(arrays)} {unit}"),)
    text = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    return (*answers, Answer("others", note=text)) if text else answers


def pair_table(arrays: Sequence[Array]) -> Table:
    """List producers down and consumers across, for pairs that convert the same array."""
    grid = {array.pair: array for array in arrays}
    producers, consumers = (dict.fromkeys(pair[side] for pair in grid) for side in (0, 1))
    rows = tuple(
        (Cell(producer), *(_pair_cell(grid.get((producer, name)))[1] for name in consumers))
        for producer in producers
    )
    return Table((Column("from \\ to"), *map(Column, consumers)), rows)


def code_table(arrays: Sequence[Array]) -> Table:
    """Return the code in each cell of :func:`pair_table`."""
    chosen = [(array, path) for array in arrays if (path := representative(array))]
    columns = _columns([path for _, path in chosen])[:-1]
    rows = (
        (Cell(array.pair_text), *_row([path], "")[3 - len(columns) : 3]) for array, path in chosen
    )
    return Table((Column("pair"), *columns), tuple(rows))


def _pair_cell(array: Array | None) -> tuple[str, Cell]:
    """Return the result of the fastest path, or the most common result if there is none."""
    if array is None:
        return "", Cell("-", "dim")
    path = representative(array)
    if path is None:
        word = Counter(path.result for path in array.paths).most_common(1)[0][0]
        return word, Cell(word, "dim" if word == "refused" else "bad")
    if path.safety.level == "unsafe":
        return "unsafe", Cell(path.brief_time, "bad", note="unsafe")
    mark = CONDITION if path.safety.conditions else ""
    waits = " waits" if path.case.waits_for is not None else ""
    shown = path.result_cell
    return path.result, Cell(path.brief_time, shown.tone, note=f"{shown.text}{mark}{waits}")
