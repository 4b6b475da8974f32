"""Two sessions side by side: a word for each time of a case, and what changed besides its time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dlprof.analysis.case_view import CaseView
from dlprof.analysis.slower import UNSURE
from dlprof.compare.matching import Key, Pair, asked_for, key, match
from dlprof.compare.processes import median_ns, processes, steady
from dlprof.compare.samples import STATEFUL_BYTES, Sample
from dlprof.compare.surroundings import Difference, differences, disturbance, refusal
from dlprof.compare.times import Settings, Time, judge
from dlprof.compare.verdicts import (
    MEASURED,
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

INVALID, NEW, GONE = "INVALID", "NEW", "GONE"
"""The words that no test gives; the others are in :mod:`dlprof.analysis.slower`."""


@dataclass(frozen=True)
class Compared:
    """One case on both sides.

    ``asked`` says whether the side that lacks it was asked for it. ``reasons`` are what a side says
    of a status that is not ok. ``looked_at`` are the measures of
    :data:`~dlprof.compare.verdicts.SCALES` that both know, ``lost`` those that BASE knows and HEAD
    did not look at. ``distinction`` tells it from other cases with the same code.
    """

    case: CaseRecord
    times: tuple[Time, ...]
    changes: tuple[Change, ...] = ()
    asked: bool = True
    statuses: tuple[str | None, str | None] = (None, None)
    reasons: tuple[str | None, str | None] = (None, None)
    looked_at: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()
    judged: bool = True
    """Whether a time of it was to be judged; a scenario may take them out."""
    distinction: str = ""
    failed_once: bool = False
    """Whether one of two passes refused it or crashed, and the other did not."""
    unconfirmed: bool = False
    """Whether one pass called it slower, and the other came to no answer."""


@dataclass(frozen=True)
class Comparison:
    """``common`` is the ratio that all cases share, 1 if they share none."""

    base: Header
    head: Header
    cases: tuple[Compared, ...]
    floors: tuple[Floor, ...]
    differences: tuple[Difference, ...]
    common: float = 1.0
    ambiguous: tuple[Key, ...] = ()
    """Cases that a session holds twice."""
    invalid: str | None = None
    """Why no time of these sessions can be compared."""
    load: str | None = None
    """Which session other programs disturbed so much that times of few calls cannot be compared."""
    told: tuple[str, ...] = ()
    """How a gate measured it, in sentences."""
    measured_here: bool = False
    """Whether a gate measured it, so that rounds could be added."""
    sightless: str = ""
    """Why no regression could have been told, in a gate that came to few rounds or was stopped."""

    def words(self) -> list[str]:
        return [time.word for case in self.cases for time in case.times]


def compare(base: Session, head: Session, settings: Settings | None = None) -> Comparison:
    """Compare all cases of two sessions.

    Raises :class:`UsageError` if both are one measurement: it would be the same as itself.
    """
    settings = (settings or Settings()).widened()
    if not settings.in_turns and base.results and _moment(base) == _moment(head):
        raise UsageError(f"BASE and HEAD are the same measurement, of {clean(base.created)}")
    matched = match(base.results, head.results)
    differ = differences(base, head)
    invalid = None if settings.in_turns else refusal(differ, settings.across_pythons)
    load = None if settings.in_turns else _load(base, head)
    times, common = _times(matched.pairs, settings, (invalid, load))
    tried = tried_of(base.results), tried_of(head.results)
    codes = Counter(pair.case.code for pair in matched.pairs)
    cases = [
        replace(
            _compared(pair, (base, head), tried, settings.in_turns),
            times=tuple(times[place]),
            judged=bool(settings.floors_of(key(pair.case))),
            distinction=_array(pair.case) if codes[pair.case.code] > 1 else "",
        )
        for place, pair in enumerate(matched.pairs)
    ]
    return Comparison(
        base=_header(base),
        head=_header(head),
        cases=tuple(cases),
        floors=settings.floors,
        differences=differ,
        common=math.exp(common),
        ambiguous=matched.ambiguous,
        invalid=invalid,
        load=load,
    )


def _moment(session: Session) -> tuple[str, list[Result]]:
    return session.created, session.results


def _header(session: Session) -> Header:
    return Header.model_validate(session.model_dump(by_alias=True, exclude={"results"}))


def _load(base: Header, head: Header) -> str | None:
    found = [(name, disturbance(header)) for name, header in (("BASE", base), ("HEAD", head))]
    return "; ".join(f"while {name} was measured {why}" for name, why in found if why) or None


Doubts = tuple[str | None, str | None]
"""Why no times can be compared, and why not those that load changes; both None in turns."""


def _times(
    pairs: Sequence[Pair], settings: Settings, doubts: Doubts
) -> tuple[list[list[Time]], float]:
    """The times of each pair, and the shift that all share."""
    times: list[list[Time]] = [[] for _ in pairs]
    samples: list[tuple[int, int, Sample]] = []
    for place, pair in enumerate(pairs):
        for floor in settings.floors_of(key(pair.case)):
            found = _time_or_sample(pair, floor, settings, doubts)
            if isinstance(found, Sample):
                samples.append((place, len(times[place]), found))
                times[place].append(Time(floor.measure, UNSURE, floor))  # until it is judged
            elif found is not None:
                times[place].append(found)
    decided = [
        settings.decided.get((key(pairs[place].case), sample.floor.measure))
        for place, _, sample in samples
    ]
    judged, common = judge([sample for _, _, sample in samples], settings.level, decided)
    for (place, number, _), time in zip(samples, judged, strict=True):
        times[place][number] = time
    return times, common


def _time_or_sample(
    pair: Pair, floor: Floor, settings: Settings, doubts: Doubts
) -> Sample | Time | None:
    """What can be judged; else the word of a time that cannot; None if neither side has one."""
    base_ns, head_ns = _median_ns(pair.base, floor), _median_ns(pair.head, floor)
    if pair.base is None or pair.head is None or base_ns is None or head_ns is None:
        return _one_sided(pair, floor, (base_ns, head_ns))
    sample = sample_of(pair.base, pair.head, floor, settings.in_turns)
    machine, load = doubts
    reason = _invalid(pair.base, pair.head) or machine
    if reason is None and _always_alone(pair.base, pair.head, sample):
        reason = "there is no round in which neither side had to measure it again, alone"
    changes_with_load = sample.stateful or not (
        steady(pair.base, floor.measure) and steady(pair.head, floor.measure)
    )
    if reason is None and changes_with_load:
        reason = load
    if reason is None:
        return sample
    return Time(floor.measure, INVALID, floor, base_ns, head_ns, reason=reason)


def _one_sided(
    pair: Pair, floor: Floor, sides_ns: tuple[float | None, float | None]
) -> Time | None:
    """The word of a case that has a time on one side only; None if it has none on either."""
    base, head = pair.base, pair.head
    has_base, has_head = (time is not None for time in sides_ns)
    if has_base:
        # A run that never came to a case has not lost it, and has not measured it either.
        untaken = head is not None and head.status == UNTAKEN
        word, reason = INVALID if untaken else GONE, _status_text(head)
    elif has_head:
        # What worked in BASE for a while, or might have, is not new in HEAD: it was not compared.
        untaken, tried = (False, False) if base is None else (base.status == UNTAKEN, base.rounds)
        word = UNSURE if untaken else INVALID if tried else NEW
        reason = _status_text(base) if word == NEW else f"BASE: {_status_text(base)}"
    else:
        measured = all(one is not None and one.status in MEASURED for one in (base, head))
        if not measured or floor.measure not in REPEATED:
            return None
        word, reason = INVALID, "measured, and without a time on both"
    return Time(floor.measure, word, floor, *sides_ns, reason=reason)


def _status_text(result: Result | None) -> str:
    if result is None:
        return ""
    reason = (result.reason or "").strip().splitlines()
    return f"{result.status}: {reason[0]}" if reason else result.status


def _invalid(base: Result, head: Result) -> str | None:
    for name, side in (("BASE", base), ("HEAD", head)):
        if side.status == "invalid":
            return f"{name}: {side.reason or 'not to be trusted'}"
    if kept_differs(base, head):
        return "one side timed a result that the framework keeps, the other a new conversion"
    return None


def _median_ns(result: Result | None, floor: Floor) -> float | None:
    """The time of a case that was measured to the end, also of a session without samples."""
    if result is None or result.status not in MEASURED:
        return None
    found = median_ns(processes(result, floor.measure))
    measure = {"ready": result.ready_time, "host": result.host_time}.get(floor.measure)
    return found if found is not None or measure is None else measure.median_ns


def sample_of(base: Result, head: Result, floor: Floor, in_turns: bool) -> Sample:
    """The processes of one measure of a case; none of a side that was not measured to the end."""
    sides = [
        processes(side, floor.measure) if side.status in MEASURED else () for side in (base, head)
    ]
    if in_turns:
        alone = _rounds_alone(base) | _rounds_alone(head)
        sides = [tuple(one for one in side if one.round not in alone) for side in sides]
    stateful = is_stateful(base) or is_stateful(head)
    return Sample(sides[0], sides[1], floor, stateful, in_turns)


def is_stateful(result: Result) -> bool:
    """Whether it copies so much that its processes run in states."""
    view = CaseView(0, result)
    return view.owner != "view" and view.size_bytes >= STATEFUL_BYTES


def _rounds_alone(result: Result) -> set[int]:
    """Rounds in which it was measured once more, without the other side beside it."""
    return set() if result.in_company is None else set(result.in_company.rounds)


def _always_alone(base: Result, head: Result, sample: Sample) -> bool:
    retried = base.in_company is not None or head.in_company is not None
    return retried and not (sample.base and sample.head)


Tried = Mapping[Key, Verdict[Any]]


def tried_of(results: Iterable[Result]) -> Tried:
    """What the instrument *alignment* saw of each path: it looks at the first shape only."""
    found: dict[Key, Verdict[Any]] = {}
    for result in results:
        if result.alignment is not None:
            found.setdefault(path_of(result), result.alignment)
    return found


def path_of(result: Result) -> Key:
    """A conversion whatever the shape."""
    return CaseView(0, result).path


def _compared(
    pair: Pair, sides: tuple[Session, Session], tried: tuple[Tried, Tried], one_scenario: bool
) -> Compared:
    """``one_scenario``: both sides were asked for all cases, also of a framework that one lacks."""
    old, new = pair.base, pair.head
    if old is None or new is None:
        return Compared(
            pair.case,
            (),
            asked=one_scenario or asked_for(sides[1 if new is None else 0], pair.case),
            statuses=(old.status if old else None, new.status if new else None),
            reasons=(old.reason if old else None, new.reason if new else None),
        )
    looks = tried[0].get(path_of(old)), tried[1].get(path_of(new))
    return Compared(
        pair.case,
        (),
        changes=(*changes(old, new, looks), *_unlooked(old, new, sides[1])),
        statuses=(old.status, new.status),
        reasons=(old.reason, new.reason),
        looked_at=looked_at(old, new),
        lost=lost(old, new),
    )


def _unlooked(old: Result, new: Result, head: Header) -> tuple[Change, ...]:
    """What BASE knows of a case, and a HEAD that was stopped did not come to look at."""
    wanted = head.request.settings.diagnose is not False
    return () if head.complete or not wanted else not_looked_at(old, new)


def _array(case: CaseRecord) -> str:
    pair = f"{case.producer} → {case.consumer}"
    return ", ".join((pair, shape_text(case.shape), case.dtype, case.layout, case.device))
