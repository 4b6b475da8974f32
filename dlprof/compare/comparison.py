"""Two sessions side by side: a word for each case, and what changed besides its time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dlprof.analysis.case_view import CaseView, mapping
from dlprof.compare.decision import UNSURE
from dlprof.compare.match import Key, Pair, asked_for, key, match
from dlprof.compare.process import median_ns, processes, steady
from dlprof.compare.record import GONE, INVALID, NEW, TIMED, Compared, Comparison, Time
from dlprof.compare.statistic import STATEFUL_BYTES, Sample
from dlprof.compare.surroundings import Difference, differences, refusal, untrusted
from dlprof.compare.times import DEFAULT_SETTINGS, Settings, Work, judge
from dlprof.compare.verdicts import (
    UNTAKEN,
    Change,
    changes,
    kept_differs,
    looked_at,
    lost,
    not_looked_at,
)
from dlprof.errors import UsageError
from dlprof.plan.axes import shape_text
from dlprof.plan.floors import REPEATED, Floor
from dlprof.session.model import CaseRecord, Header, Result, Session, Verdict
from dlprof.text.clean import clean


def compare(base: Session, head: Session, settings: Settings = DEFAULT_SETTINGS) -> Comparison:
    """Compare all cases of two sessions.

    Raises :class:`UsageError` where both are one measurement: it would be the same as itself.
    """
    if (
        not settings.in_turns
        and base.results
        and (base.created, base.results) == (head.created, head.results)
    ):
        raise UsageError(f"BASE and HEAD are the same measurement, of {clean(base.created)}")
    matched = match(base.results, head.results)
    differ = differences(base, head)
    invalid = None if settings.in_turns else _refused(differ, settings)
    load = None if settings.in_turns else _load(base, head)
    works, times = _sort_out(matched.pairs, settings, Doubts(invalid, load))
    common, judged = judge(works, settings)
    tried = tried_of(base.results), tried_of(head.results)
    for work, time in zip(works, judged, strict=True):
        times[work.place].append(time)
    names = apart([(pair.case, pair.environment) for pair in matched.pairs])
    return Comparison(
        base=_header(base),
        head=_header(head),
        cases=tuple(
            replace(
                _compared(pair, times[place], (base, head), settings.in_turns, matched.named),
                changes=(*_changes(pair, tried), *_unlooked(pair, head)),
                judged=bool(settings.own_floors.get(key(pair.case), settings.floors)),
                apart=names[place],
            )
            for place, pair in enumerate(matched.pairs)
        ),
        floors=settings.floors,
        differences=differ,
        common=math.exp(common),
        ambiguous=matched.ambiguous,
        invalid=invalid,
        load=load,
        speed=settings.speed,
    )


def _header(session: Session) -> Header:
    return Header.model_validate(session.model_dump(by_alias=True, exclude={"results"}))


@dataclass(frozen=True)
class Doubts:
    """Why no times of two sessions can be compared, and why not those that load changes.

    Both are None where the sides were measured in turns: on one machine, under the same load.
    """

    machine: str | None = None
    load: str | None = None


def _refused(differ: Sequence[Difference], settings: Settings) -> str | None:
    reason = refusal(differ, settings.across_pythons)
    if reason is None and settings.speed is not None and settings.speed.far:
        return f"the machine is not as fast as it was: {settings.speed}"
    return reason


def _load(base: Header, head: Header) -> str | None:
    found = [(name, untrusted(header)) for name, header in (("BASE", base), ("HEAD", head))]
    said = [f"while {name} was measured {trouble}" for name, trouble in found if trouble]
    return "; ".join(said) or None


def _sort_out(
    pairs: Sequence[Pair], settings: Settings, doubts: Doubts
) -> tuple[list[Work], list[list[Time]]]:
    """The times that can be judged, and for each case those that cannot, with their word."""
    works: list[Work] = []
    times: list[list[Time]] = [[] for _ in pairs]
    for place, pair in enumerate(pairs):
        for floor in settings.own_floors.get(key(pair.case), settings.floors):
            if pair.base is None or pair.head is None or _incomplete(pair, floor):
                times[place] += _one_sided(pair, floor)
                continue
            sample = sample_of(pair.base, pair.head, floor, settings)
            reason = _invalid(pair.base, pair.head) or doubts.machine
            if reason is None and _always_alone(pair, sample):
                reason = "there is no round in which neither side had to measure it again, alone"
            if reason is None and (sample.stateful or not _steady(pair, floor)):
                reason = doubts.load
            if reason is not None:
                times[place].append(_time_without(pair, floor, INVALID, reason))
            else:
                works.append(Work(place, floor, sample, key(pair.case)))
    return works, times


def _incomplete(pair: Pair, floor: Floor) -> bool:
    return _median_ns(pair.base, floor) is None or _median_ns(pair.head, floor) is None


def _one_sided(pair: Pair, floor: Floor) -> list[Time]:
    """The word of a case that has a time on one side only; none where it has none on either."""
    has_base = _median_ns(pair.base, floor) is not None
    has_head = _median_ns(pair.head, floor) is not None
    if has_base:
        # A run that never came to a case has not lost it, and has not measured it either.
        untaken = pair.head is not None and pair.head.status == UNTAKEN
        reason = _words_of(pair.head)
        return [_time_without(pair, floor, INVALID if untaken else GONE, reason)]
    if not has_head:
        measured = all(one is not None and one.status in TIMED for one in (pair.base, pair.head))
        if measured and floor.measure in REPEATED:
            return [_time_without(pair, floor, INVALID, "measured, and without a time on both")]
        return []
    # What worked in BASE for a while, or might have, is not new in HEAD: it was not compared.
    word = NEW
    if pair.base is not None and pair.base.status == UNTAKEN:
        word = UNSURE
    elif pair.base is not None and pair.base.rounds:
        word = INVALID
    reason = _words_of(pair.base)
    return [_time_without(pair, floor, word, reason if word == NEW else f"BASE: {reason}")]


def _words_of(result: Result | None) -> str:
    if result is None:
        return ""
    reason = (result.reason or "").strip().splitlines()
    return f"{result.status}: {reason[0]}" if reason else result.status


def _time_without(pair: Pair, floor: Floor, word: str, reason: str) -> Time:
    sides = (_median_ns(pair.base, floor), _median_ns(pair.head, floor))
    return Time(floor.measure, word, floor, *sides, reason=reason)


def _invalid(base: Result, head: Result) -> str | None:
    for name, side in (("BASE", base), ("HEAD", head)):
        if side.status == "invalid":
            return f"{name}: {side.reason or 'not to be trusted'}"
    if kept_differs(base, head):
        return "one side timed a result that the framework keeps, the other a new conversion"
    return None


def _median_ns(result: Result | None, floor: Floor) -> float | None:
    """The time of a case that was measured to the end, also of a session without samples."""
    if result is None or result.status not in TIMED:
        return None
    found = median_ns(processes(result, floor.measure))
    times = {"ready": result.ready_time, "host": result.host_time}
    measure = times.get(floor.measure)
    return found if found is not None or measure is None else measure.median_ns


def sample_of(base: Result, head: Result, floor: Floor, settings: Settings) -> Sample:
    """The processes of one measure of a case; none of a side that was not measured to the end."""
    stateful = _stateful(CaseView(0, base)) or _stateful(CaseView(0, head))
    sides = [
        processes(side, floor.measure) if side.status in TIMED else () for side in (base, head)
    ]
    if settings.in_turns:
        apart = _tried_again(base) | _tried_again(head)
        sides = [tuple(one for one in side if one.round not in apart) for side in sides]
    return Sample(
        sides[0],
        settings.speed.normalised(sides[1], stateful) if settings.speed else sides[1],
        stateful=stateful,
        in_turns=settings.in_turns,
        open_=settings.speed.doubt(stateful) if settings.speed else (0.0, 0.0),
    )


def _always_alone(pair: Pair, sample: Sample) -> bool:
    """Whether no round is left of one that had to be tried again."""
    sides = (pair.base, pair.head)
    tried = any(one is not None and one.in_company is not None for one in sides)
    return tried and not (sample.base and sample.head)


def _tried_again(result: Result) -> set[int]:
    """Rounds in which it was measured once more, alone: without the other side beside it."""
    return set() if result.in_company is None else set(result.in_company.rounds)


def _steady(pair: Pair, floor: Floor) -> bool:
    """Whether the times are of a kind that other programs do not change."""
    return all(steady(side, floor.measure) for side in (pair.base, pair.head) if side is not None)


def _stateful(known: CaseView) -> bool:
    return known.owner != "view" and known.size_bytes >= STATEFUL_BYTES


Tried = Mapping[Key, Verdict[Any]]


def tried_of(results: Iterable[Result]) -> Tried:
    """What the instrument *alignment* saw of each path: it looks at the first shape only."""
    found: dict[Key, Verdict[Any]] = {}
    for result in results:
        if result.alignment is not None:
            found.setdefault(path_of(result), result.alignment)
    return found


def path_of(result: Result) -> Key:
    """A conversion whatever the shape, and where it was measured."""
    return (result.environment, *CaseView(0, result).path)


def _changes(pair: Pair, tried: tuple[Tried, Tried]) -> tuple[Change, ...]:
    if pair.base is None or pair.head is None:
        return ()
    looks = tried[0].get(path_of(pair.base)), tried[1].get(path_of(pair.head))
    return changes(pair.base, pair.head, looks)


def _unlooked(pair: Pair, head: Header) -> tuple[Change, ...]:
    """What BASE knows of a case, and a HEAD that was stopped did not come to look at."""
    if pair.base is None or pair.head is None or head.complete:
        return ()
    asked = mapping(head.request.get("settings")).get("diagnose", True)
    return not_looked_at(pair.base, pair.head) if asked else ()


def _compared(
    pair: Pair,
    times: Sequence[Time],
    headers: tuple[Header, Header],
    one_scenario: bool,
    named: bool,
) -> Compared:
    """``one_scenario``: both sides were asked for all cases, also of frameworks that one lacks.
    ``named``: environments are told apart by their names.
    """
    old, new = pair.base, pair.head
    environment = pair.environment if named else None
    lacking = headers[1 if new is None else 0]
    return Compared(
        case=pair.case,
        times=tuple(times),
        environment=environment or "",
        looked_at=looked_at(old, new) if old and new else frozenset(),
        lost=lost(old, new) if old and new else frozenset(),
        asked=one_scenario or asked_for(lacking, pair.case, environment),
        statuses=(old.status if old else None, new.status if new else None),
        reasons=(old.reason if old else None, new.reason if new else None),
    )


def apart(cases: Sequence[tuple[CaseRecord, str]]) -> list[str]:
    """Of each case, with its environment, what others of the same code have otherwise: ``jax →
    numpy, 4x4``; empty for one whose code no other has.
    """
    told = [_parts(case, environment) for case, environment in cases]
    groups: dict[str, list[Mapping[str, str]]] = {}
    for (case, _), parts in zip(cases, told, strict=True):
        groups.setdefault(case.code, []).append(parts)
    differing = {code: _differing(group) for code, group in groups.items()}
    return [
        ", ".join(parts[name] for name in differing[case.code] if parts[name])
        for (case, _), parts in zip(cases, told, strict=True)
    ]


def _parts(case: CaseRecord, environment: str) -> Mapping[str, str]:
    return {
        "environment": environment,
        "pair": f"{case.producer} → {case.consumer}",
        "shape": shape_text(case.shape),
        "dtype": case.dtype,
        "layout": case.layout,
        "device": case.device,
    }


def _differing(group: Sequence[Mapping[str, str]]) -> list[str]:
    """The names of the parts that are not the same in all of a group."""
    return [name for name in group[0] if len({parts[name] for parts in group}) > 1]
