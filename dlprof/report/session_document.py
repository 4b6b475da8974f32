"""A session as a document: the conversion, the path to write, problems, and all measurements."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from dlprof.errors import NoReproducer
from dlprof.judge import BY_ID
from dlprof.judge.case_view import WAITS
from dlprof.judge.cases import Cases
from dlprof.judge.evidence_text import observations
from dlprof.report import path_table, steps, survey
from dlprof.report.document import (
    Answer,
    Cell,
    Column,
    Document,
    Problem,
    Section,
    Table,
    Tone,
    facts,
)
from dlprof.report.paths import (
    KINDS,
    Array,
    JudgedPath,
    deed,
    paths_chart,
    session_arrays,
    severity_rank,
)
from dlprof.runner.machine import busy_notice
from dlprof.runner.quantity import plain_time, size_text
from dlprof.runner.session import SIMULATED, FindingRecord, Header, Result, Session, pair_text
from dlprof.text.clean import counted, first_line, first_words, listed
from dlprof.ticket.reproducer import pair_command, reproducer

LAST = "LAST"
"""The newest session, in commands."""
MOST_PACKAGES, MOST_WORDS = 6, 20
WORDS = {
    "view": "is a view",
    "copy": "is a copy",
    "wrong": "gives a wrong result",
    "refused": "is refused",
    "no array": "leaves no array behind",
    "crash": "crashes",
    "hangs": "hangs",
    "varies": "is a view in some processes, a copy in others",
}
WAY_BACK = {
    "unordered": "orders nothing",
    "stream-ordered": "is ordered on the device",
    "host-sync": "waits for the queued work",
    "device-sync": "waits for the whole device",
}
"""The order of a view in the other direction."""
LACKS = {"values": ("values",), "lifetime": ("lifetime", "leaks"), "ordering": ("order",)}
"""The nouns for an instrument's answer, where it is not known."""
END_WITH_ARRAY = "End the statement with the array that it fills, such as (f(x), y)[1]."
TONES: dict[str, Tone] = {"met": "better", "not met": "bad"}


def session_document(
    session: Session, name: str = LAST, scripts: bool = False, cases: Cases | None = None
) -> Document:
    """Report a session.

    ``name`` is the session in commands that lead on. ``scripts`` asks for a reproducer of each
    problem, which takes time. ``cases`` are those of the session, if the caller has them.
    """
    arrays = session_arrays(session, cases)
    inference = steps.session_steps(session)
    problems = _problems(session, name, scripts)
    title, scope = _title(session, arrays, bool(inference))
    screen = _screen(session, arrays)
    answers = (*_queue_answer(session, arrays), *screen.answers, *steps.answers(inference))
    results = [path.case.result for array in arrays for path in array.paths]
    return Document(
        title=title,
        scope=scope,
        context=_versions(session),
        notices=tuple(filter(None, _notices(session, results))),
        answers=answers,
        tables=screen.tables,
        marks=(*screen.marks, *filter(None, [_coverage(results), survey.summary(session)])),
        problems=problems,
        chart=paths_chart(arrays),
        sections=tuple(_sections(session, arrays, inference)),
        commands=_commands(session, problems, name),
    )


def excerpt(session: Session, begin: str) -> Document:
    """Report the answers of a session, and its paths that begin with ``begin``."""
    document = session_document(session)
    found = [
        Answer("this path", path.code, path.brief_time)
        for array in session_arrays(session)
        for path in array.paths
        if path.code.startswith(begin)
    ]
    return Document(
        document.title,
        scope=document.scope,
        notices=document.notices,
        answers=(*found, *document.answers),
    )


# Title and answers


def _title(session: Session, arrays: Sequence[Array], has_steps: bool) -> tuple[str, str]:
    """Return the measured pairs, and the array."""
    scenario = session.request.scenario
    title = scenario.title if scenario else ""
    if not arrays:
        pair, scope = survey.title(session)
        return title or pair or ("Steps of inference" if has_steps else "No results"), scope
    pairs = {array.pair_text for array in arrays}
    texts = {array.text for array in arrays}
    pair = f"{len(pairs)} pairs" if len(pairs) > 1 else pairs.pop()
    scope = f"{len(texts)} arrays" if len(texts) > 1 else texts.pop()
    return f"{title}: {pair}" if title else pair, scope


def _versions(header: Header) -> str:
    """Return ``torch 2.13.0, jax 0.10.2, Python 3.11``."""
    known = header.environment
    python = ".".join((known.python or "?").split(".")[:2])
    packages = _packages(header).items()
    texts = [f"{name} {text}" for name, text in packages if name not in (known.libraries or {})]
    return ", ".join([*texts[:MOST_PACKAGES], f"Python {python}"])


def _packages(header: Header) -> dict[str, str]:
    """Return the versions of the measured packages, in the order of the pairs."""
    # A model of the user stands behind a colon.
    names = [name.partition(":")[0] for pair in header.request.pairs for name in pair]
    versions = dict(header.environment.distributions(names))
    return {name: versions[name] for name in (*names, *versions) if name in versions}


def _notices(header: Header, results: Sequence[Result]) -> Iterator[str]:
    """Yield reasons not to rely on the report. ``results`` are those with timed conversions."""
    if header.simulated:
        yield SIMULATED
        orders = [result.ordering.evidence for result in results if result.ordering]
        if size := max((order.size_bytes or 0 for order in orders), default=0):
            yield f"Measured with arrays of {size_text(size)}."
    elif results:
        yield busy_notice(header.foreign_cores, header.environment.cores or "?")
    if not header.complete:
        yield "The run was stopped. Results are partial."
    if header.left_out:
        yield first_words(f"Left out: {listed(header.left_out)}.", MOST_WORDS)
    diagnosed = (
        result.lifetime or result.ordering or result.early_write or result.peak_memory
        for result in results
    )
    timed = [result.ready_time for result in results if result.ready_time is not None]
    if timed and all(time.ci95_ns is None for time in timed) and not header.simulated:
        yield "One process per path: no slow path or avoidable copy is reported."
    if results and not any(diagnosed):
        yield "Not diagnosed: races, lifetime and late reads were not checked."


def _coverage(results: Sequence[Result]) -> str:
    """Return what all processes looked at, and what one did; empty for a single process."""
    processes = max((len(result.rounds) for result in results), default=0)
    if processes < 2 or not any(result.lifetime for result in results):  # noqa: PLR2004
        return ""

    def has(part: str) -> bool:
        looks = (getattr(result, part) for result in results)
        return any(look is not None and look.verdict != "unknown" for look in looks)

    each = " and ".join(filter(has, ("values", "lifetime")))
    one = "late reads" if has("early_write") else ""
    if has("ordering"):
        one = f"waits, races and {one}" if one else "waits and races"
    parts = (each and f"{processes} processes checked {each}", one and f"1 checked {one}")
    text = ", ".join(filter(None, parts))
    return text and f"{text}."


def _is_one_pair(arrays: Sequence[Array]) -> bool:
    return len({array.pair for array in arrays}) == 1


def _is_one_array(arrays: Sequence[Array]) -> bool:
    """Whether all pairs convert the same array."""
    return len({array.name[1:] for array in arrays}) == 1


class _Screen(NamedTuple):
    """The first screen without its problems; ``marks`` explains the marks of the table."""

    answers: tuple[Answer, ...]
    tables: tuple[Table, ...]
    marks: tuple[str, ...] = ()


def _screen(session: Session, arrays: Sequence[Array]) -> _Screen:
    if not arrays:
        return _Screen((), tuple(survey.tables(session)))
    array = arrays[0]
    marks = path_table.path_marks(array.paths)
    if len(arrays) == len(array.paths) == 1:
        return _Screen((_sentence(array.paths[0]),), (), marks)
    if array.is_comparison:
        table = path_table.statement_table(array)
        return _Screen((path_table.statement_answer(array),), (table,), marks)
    if len(arrays) == 1:
        table, marks = path_table.short_table(array)
        return _Screen(path_table.array_answers(array), (table,), marks)
    if _is_one_pair(arrays) or not _is_one_array(arrays):
        chosen = [path_table.best(array, kind) for array in arrays for kind in KINDS]
        table = path_table.shapes_table(arrays)
    else:
        chosen = list(map(path_table.representative, arrays))
        table = path_table.pair_table(arrays)
    known = list(filter(None, chosen))
    marks = (*path_table.path_marks(known), *path_table.condition_marks(known))
    return _Screen(path_table.pair_answers(arrays), (table,), marks)


def _queue_answer(header: Header, arrays: Sequence[Array]) -> Iterator[Answer]:
    """Yield the call that waits for the whole queue, if no path does without."""
    paths = [path for array in arrays for path in array.paths if path.is_measured]
    best = path_table.representative(arrays[0]) if arrays else None
    if best is None or not all(path.case.order in WAITS for path in paths):
        return
    order = best.case.result.ordering
    if not (order and order.evidence.waits_for_later and best.case.stays_on_device):
        return
    code = order.evidence.waits_in or best.code
    everything = "everything queued on the GPU"
    if best.case.order == "host-sync":
        everything = f"everything that {best.case.pair[0]} has queued on the GPU"
    back = header.way_back
    does = f"; the way back {WAY_BACK.get(back.order, 'is not known')}: {back.code}" if back else ""
    yield Answer("waits", code, note=f"waits for {everything}{does}")


def _sentence(path: JudgedPath) -> Answer:
    """Return ``numpy.asarray(x) is a view: 1.6 µs, nothing copied.``"""
    owned = path.case.result.ownership
    devices = owned.evidence.devices if owned is not None else None
    moved = f" from {' to '.join(devices)}" if devices else ""
    is_sized = path.case.size_bytes or 0 in path.case.result.case.shape
    size = size_text(path.case.size_bytes) if is_sized else "all"
    copied = {"view": "nothing copied", "copy": f"{size} copied{moved}"}
    fresh = path.case.result.fresh_source
    first_ns = fresh.evidence.first_ns if fresh is not None and path.case.is_cached else None
    if first_ns is not None:
        first = f"the first for {path.case.result.case.source} takes {plain_time(first_ns)}"
        copied["view"] = f"nothing copied by later calls, {first}"
    amount = " ".join(filter(None, (copied.get(path.result, ""), path.case.recast_text)))
    is_split = path.is_timed and path.case.result.case.arrays > 1
    each = f"{path_table.each_text(path)} per array" if is_split else ""
    parts = (path.brief_time, each, amount, path.unknown_reason)
    details = ", ".join(filter(None, parts)).rstrip(".")
    word, writable = WORDS.get(path.result, "may be a view or a copy"), path.case.writable
    if path.result in copied and writable.result is False and not writable.immutable:
        word = f"is a read-only {path.result}"
    claim = f"{path.code} {word}"
    sentence = f"{claim}: {details}." if details else f"{claim}."
    if path.result == "no array" and path.case.result.case.is_statement:
        return Answer(f"{sentence} {END_WITH_ARRAY}")
    condition = path_table.condition(path)
    if condition:
        sentence = f"{sentence} {condition[:1].upper()}{condition[1:]}."
    if path.result in copied:
        sentence = " ".join((sentence, *_lacks(path)))
    elif path.result == "?" and not path.case.is_right:
        sentence = f"{sentence} Its values are not known to be right."
    return Answer(sentence)


def _lacks(path: JudgedPath) -> Iterator[str]:
    """Yield a sentence for each reason not to know values, lifetime, or order on a device."""
    result, lacks = path.case.result, defaultdict[str, list[str]](list)
    for name, nouns in LACKS.items():
        found = getattr(result, name)
        reasons = [note.reason for note in result.notes if note.instrument == name]
        if found is not None and found.verdict == "unknown":
            reasons.append(found.evidence.reason)
        if reasons and (name != "ordering" or result.case.device == "cuda"):
            lacks[first_line(reasons[0]).rstrip(".")] += nouns
    for reason, (*others, last) in lacks.items():
        subject = " and ".join(filter(None, (", ".join(others), last)))
        yield f"Its {subject} {'is' if subject == 'order' else 'are'} not known: {reason}."


def _commands(session: Session, problems: Sequence[Problem], name: str) -> tuple[str, ...]:
    worst = problems[0].rule if problems else ""
    commands = [f"dlprof explain {worst}", f"dlprof ticket {name} {worst}"] if worst else []
    pair = pair_command(session)
    return (*filter(None, [pair]), *commands, f"dlprof report {name} --full")


# Problems: one for each rule and severity, worst first


def _problems(session: Session, name: str, scripts: bool) -> tuple[Problem, ...]:
    """Return the findings as problems; ``scripts`` asks for reproducers, which take time."""
    alike: dict[tuple[str, ...], list[FindingRecord]] = defaultdict(list)
    for finding in session.findings:
        # Findings of one rule about a subject, such as a framework, say different things.
        alone = finding.said if finding.subject else ""
        alike[finding.rule, finding.severity, alone].append(finding)
    ranked = sorted(
        alike.values(), key=lambda group: (severity_rank(group[0]), _is_surveyed(session, group))
    )
    return tuple(_problem(session, group, name, scripts) for group in ranked)


def _problem(
    session: Session, findings: Sequence[FindingRecord], name: str, has_script: bool
) -> Problem:
    """Return one problem for all findings of a rule and a severity."""
    worst, rule = findings[0], BY_ID[findings[0].rule]
    results = [session.results[index] for index in _indices(findings)]
    sentence, more, group = _headline(session, findings)
    examples = [session.results[index].case for index in _indices(group)]
    # The plainest call is the example: fewest keywords and calls within calls.
    examples.sort(key=lambda case: sum(map(case.code.count, "=(")))
    cases = (*examples, *(result.case for result in results))
    codes = tuple({case.way: case.code for case in cases}.values())
    milder = [
        finding
        for finding in session.findings
        if finding.rule == worst.rule and severity_rank(finding) > severity_rank(worst)
    ]
    others = {session.results[index].case.way for index in _indices(milder)}
    if count := len(others - {result.case.way for result in results}):
        sentence = f"{sentence.rstrip('.')} ({counted(count, 'other')}: {milder[0].severity})."
    numbers = [session.findings.index(finding) + 1 for finding in findings]
    script = ""
    if has_script:
        with suppress(NoReproducer):
            script = reproducer(session, worst).text
    return Problem(
        worst.rule,
        worst.severity,
        sentence if worst.subject else _prefix(session, findings) + sentence,
        more,
        (worst.subject,) if worst.subject else codes,
        _advice(findings, numbers),
        # A ticket is asked for by the number of its finding.
        tuple(
            f"{number}. {finding.summary}" if len(findings) > 1 else finding.summary
            for number, finding in zip(numbers, findings, strict=True)
        ),
        tuple(f"evidence: {line}" for line in observations(results[0], rule.instrument)),
        rule.expectation(results[0]),
        script,
        (f"dlprof explain {worst.rule}", f"dlprof ticket {name} {worst.rule}"),
    )


def _prefix(session: Session, findings: Sequence[FindingRecord]) -> str:
    """Return the pairs of findings if the session has several, and ``other arrays``."""
    places = []
    if len({result.case.pair for result in session.results}) > 1:
        pairs = (session.results[index].case.pair for index in _indices(findings))
        places.append(listed(dict.fromkeys(map(pair_text, pairs))))
    has_times = any(not result.case.survey for result in session.results)
    if has_times and _is_surveyed(session, findings):
        places.append("other arrays")
    return f"{', '.join(places)}: " if places else ""


def _is_surveyed(session: Session, findings: Sequence[FindingRecord]) -> bool:
    """Whether only small arrays of the survey show it."""
    return all(session.results[index].case.survey for index in _indices(findings))


def _headline(
    session: Session, findings: Sequence[FindingRecord]
) -> tuple[str, int, list[FindingRecord]]:
    """Return the headline that counts most paths, the number of the others, and its findings.

    Findings that say the same are counted together.
    """
    alike: dict[str, list[FindingRecord]] = defaultdict(list)
    for finding in findings:
        alike[finding.said or finding.summary].append(finding)
    paths = {
        text: {session.results[index].case.way for index in _indices(group)}
        for text, group in alike.items()
    }
    text = max(paths, key=lambda text: len(paths[text]))
    group, count = alike[text], len(paths[text])
    more = len(set().union(*paths.values()) - paths[text])
    deeds = {deed(finding) for finding in findings}
    if more and len(deeds) == 1 and not group[0].subject:
        return f"{count + more:,} paths {deeds.pop()}.", 0, group
    if len(group) > 1 and not group[0].subject:
        return f"{count:,} paths {group[0].said}", more, group
    return group[0].headline or first_words(group[0].summary, MOST_WORDS), more, group


def _advice(findings: Sequence[FindingRecord], numbers: Sequence[int]) -> tuple[str, ...]:
    """Return the advice once; if findings differ, each line names its findings by number."""
    by_advice: dict[str, list[str]] = defaultdict(list)
    for number, finding in zip(numbers, findings, strict=True):
        by_advice[finding.advice].append(str(number))
    if len(by_advice) == 1:
        return tuple(filter(None, by_advice))
    return tuple(f"For {listed(ids)}: {advice}" for advice, ids in by_advice.items() if advice)


def _indices(findings: Iterable[FindingRecord]) -> list[int]:
    """Return the results that the findings name, each once."""
    return list(dict.fromkeys(index for finding in findings for index in finding.results))


# Sections


def _sections(
    session: Session, arrays: Sequence[Array], inference: dict[str, list[Result]]
) -> Iterator[Section]:
    yield from _scenario_sections(session)
    yield from steps.loop_sections(arrays)
    yield from steps.step_sections(inference)
    if arrays and not _is_one_pair(arrays) and _is_one_array(arrays):
        yield Section("Fastest paths", (path_table.code_table(arrays),), is_first=True)
    for array, name in zip(arrays, _names(arrays), strict=True):
        yield path_table.full_section(array, f"All paths{name}")
    yield from survey.sections(session)
    yield Section("How it was measured", (facts(_method(session)),))


def _scenario_sections(header: Header) -> Iterator[Section]:
    """Yield the expectations of a scenario with their results, its question and its sources."""
    scenario = header.request.scenario
    if not scenario:
        return
    if header.expectations:
        columns = (Column("expectation"), Column("result"), Column("reason"))
        rows = tuple(
            (Cell(row.text), Cell(row.verdict, TONES.get(row.verdict, "")), Cell(row.reason or ""))
            for row in header.expectations
        )
        yield Section("Expectations", (Table(columns, rows),), is_first=True)
    items = [("question", scenario.question), ("file", scenario.file)]
    items += [("source", source) for source in scenario.sources]
    yield Section("Scenario", (facts(items),))


def _names(arrays: Sequence[Array]) -> list[str]:
    """Return the difference of each array from the others, behind a heading."""
    has_pairs, several = not _is_one_pair(arrays), len({array.text for array in arrays}) > 1
    parts = [(array.pair_text * has_pairs, array.text * several) for array in arrays]
    return [f": {', '.join(filter(None, part))}" if any(part) else "" for part in parts]


def _method(header: Header) -> Iterator[tuple[str, str]]:
    """Yield the circumstances of a session."""
    machine = header.environment
    yield "command", shlex.join(["dlprof", *header.command])
    yield "date", header.created
    if not header.request.settings.survey_alone:
        yield "processes", f"{'' if header.complete else 'up to '}{header.rounds}, each new"
    packages = (f"{name} {version}" for name, version in _packages(header).items())
    yield "versions", ", ".join((f"Python {machine.python or '?'}", *packages))
    known = {
        "platform": machine.platform,
        "cpu": machine.cpu,
        "cores": machine.cores,
        **(machine.variables or {}),
        "device": header.device_choice,
        "setup": header.request.settings.setup,
        "measured in": header.wall_s and plain_time(header.wall_s * 1e9),
        "other programs": header.foreign_cores and f"{header.foreign_cores:.1f} cores",
    }
    yield from ((name, str(value)) for name, value in known.items() if value)
    for gpu in machine.known_gpus or ():
        yield "gpu", f"{gpu.name}, driver {gpu.driver_version}"
