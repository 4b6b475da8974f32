"""Changes of verdict between two sessions, and the criteria by which they are regressions.

A change for the worse is a regression whatever the time says. A measure that one side did not look
at (``--quick`` looks at less) did not change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dlprof.compare.times import WIDE_LIMIT, Floor, Time
from dlprof.errors import UsageError
from dlprof.judge import RULES
from dlprof.judge.case_view import CaseView, all_looks
from dlprof.judge.rule import SEVERITIES
from dlprof.judge.thresholds import AMPLIFIED_ARRAYS, LEAN_ARRAYS
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner.evidence import VARIES, Verdict
from dlprof.runner.session import Result
from dlprof.text.clean import nearest

WORSE, BETTER, LOST, OTHER = "worse", "better", "lost", "other"

STATUS = "status"

RACE = "early_write"
"""A race shows only in some processes, so one process is enough to prove it."""
RACE_LOOKS = 6
"""Processes without a race that are needed to call a path safe. With one look at each path, equal
code of JAX was unsafe on one side alone in 1 to 5 of 15 paths."""
NOT_SEEN = "safe in too few looks"

SKIPPED = "skipped"
"""The status of a case that the run did not reach."""

MEASURED = ("ok", "invalid")
"""Statuses of cases that were measured to the end; of an invalid one only the times were
disturbed."""

CRASHED = "crashed"
CRASHED_IN_COMPANY = "crashed after other conversions, ok alone"

BADNESS = {"ok": 0, CRASHED_IN_COMPANY: 1, "unsupported": 2, "timeout": 3, CRASHED: 4}

SCALES: Mapping[str, Mapping[str, int]] = {
    "ownership": {"view": 0, "copy": 1},
    "values": {"ok": 0, "wrong": 1},
    "ordering": {
        "synchronous": 0,
        "stream-ordered": 0,
        "host-sync": 1,
        "device-sync": 2,
        "unordered": 3,
    },
    "lifetime": {"safe": 0, "retained": 1, "dangling": 2},
    RACE: {"safe": 0, "unsafe": 1},
}
"""The badness of each word, by measure."""
PROMISED_COPY = {"copy": 0, "view": 1}
"""A documented copy that is a view is wrong (DLP018): its user writes into the source."""

PEAK, ALIGNMENT = "peak_memory", "alignment"
BY_CHANCE = (RACE, PEAK, ALIGNMENT)
"""Measures whose words may differ by chance without one being worse."""
ADDRESSES = {
    frozenset({"view"}): "a view at any address",
    frozenset({"copy"}): "a copy at any address",
    frozenset({"view", "copy"}): "a view or a copy, by the address",
}
SEVERITY = {
    "copy": "warning",  # no rule: a run cannot tell that its copy was a view before
    **{word: min(rule.severities, key=SEVERITIES.index) for rule in RULES for word in rule.changes},
}
"""The severity of a change for the worse: the worst of its rule."""

WORDS = (
    *(word for scale in SCALES.values() for word, badness in scale.items() if badness > 0),
    "view",
)
"""The verdicts that a change for the worse can lead to; ``view`` is one for a documented copy."""
TIMES = ("ready", "host")
"""The times that every process of a session has."""
UNITS_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
AMOUNT = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)(%|[a-z]*)")


@dataclass(frozen=True)
class Change:
    """``what`` was ``before`` in BASE and is ``after`` in HEAD, whose processes say ``worst``."""

    what: str
    before: str
    after: str
    direction: str
    severity: str = "info"
    worst: str = ""

    @property
    def is_crash(self) -> bool:
        """Whether the conversion fails, or an instrument crashes."""
        return self.what == STATUS or self.after == CRASHED

    def __str__(self) -> str:
        return f"{self.what.replace('_', ' ')}: {self.before}, now {self.after}"


Aligned = tuple[Verdict[Any] | None, Verdict[Any] | None]


def changes(
    base: Result, head: Result, aligned: Aligned = (None, None), race_looks: int = 1
) -> tuple[Change, ...]:
    """Return all changes of one case.

    ``aligned`` are the verdicts on alignment of both sides, of any shape of the path.
    ``race_looks`` is the number of processes of a side that looked for a race, if they saw none.
    """
    found = []
    old, new = _status_word(base), _status_word(head)
    is_same = old == new or SKIPPED in (old, new)
    status = [] if is_same else [_directed(STATUS, old, new, BADNESS[new] - BADNESS[old])]
    for raw in (*status, *_measure_changes(base, head, aligned)):
        change = raw
        if change.what == RACE and race_looks < RACE_LOOKS:
            # The side that saw no race had too few looks.
            if change.direction == WORSE:
                change = replace(change, before=NOT_SEEN, direction=LOST)
            elif change.direction == BETTER:
                change = replace(change, after=NOT_SEEN, direction=OTHER)
        if change.direction == WORSE:
            word = "error" if change.is_crash else SEVERITY[change.worst or change.what]
            change = replace(change, severity=word)
        found.append(change)
    return tuple(found)


def both_measured(base: Result, head: Result) -> bool:
    return base.status in MEASURED and head.status in MEASURED


def known_measures(base: Result, head: Result) -> frozenset[str]:
    """Return the measures of :data:`SCALES` with a verdict on both sides."""
    if not both_measured(base, head):
        return frozenset()
    known = [_states(CaseView(0, result)).keys() for result in (base, head)]
    return frozenset(measure for measure in SCALES if measure in known[0] and measure in known[1])


def _status_word(result: Result) -> str:
    """Return the status, also after other conversions. A faulty probe counts as skipped."""
    company = result.in_company
    if result.status not in MEASURED:
        return SKIPPED if result.is_of_faulty_probe else result.status
    if company is None or company.status != CRASHED or company.is_of_faulty_probe:
        return "ok"
    return CRASHED_IN_COMPANY


def _directed(measure: str, old: str, new: str, badness: int, worst: str = "") -> Change:
    """Return a change that is worse if ``badness`` is positive, and better if it is negative."""
    direction = WORSE if badness > 0 else BETTER if badness < 0 else OTHER
    return Change(measure, old, new, direction, worst=worst)


class State(NamedTuple):
    """The verdict of one side, its badness, and the worst verdict of its processes."""

    word: str
    badness: int
    worst: str = ""


def _measure_changes(base: Result, head: Result, aligned: Aligned) -> Iterator[Change]:
    if not both_measured(base, head):
        return
    before = CaseView(0, base, base.alignment or aligned[0])
    after = CaseView(0, head, head.alignment or aligned[1])
    old_states, new_states = _states(before), _states(after)
    if _depends_on_address(before, after):
        old_states.pop("ownership", None)
    if head.alignment is None:
        old_states.pop(ALIGNMENT, None)  # it is reported for another shape of the path
    for crash in _crashes(base, head):
        old_states.pop(crash.what, None)
        yield crash
    copies_more = False
    for measure, old in old_states.items():
        if measure in new_states:
            new = new_states[measure]
            badness = new.badness - old.badness
            is_chance = measure in BY_CHANCE and badness == 0
            if old.word == new.word or is_chance or (measure == ALIGNMENT and copies_more):
                continue
            copies_more |= measure == "ownership" and badness > 0
            yield _directed(measure, old.word, new.word, badness, new.worst)
        elif measure in (*SCALES, PEAK):
            verdict = getattr(head, measure)
            if verdict is not None and (measure != PEAK or not verdict.says("ok")):
                yield Change(measure, old.word, verdict.verdict, LOST)


def _crashes(base: Result, head: Result) -> Iterator[Change]:
    """Yield instruments of the diagnosis in which HEAD's worker crashed, and BASE's did not."""
    for measure in DIAGNOSIS:
        old, new = getattr(base, measure), getattr(head, measure)
        if old is None or new is None or old.verdict == "unknown":
            continue
        if new.verdict == "unknown" and new.evidence.worker == CRASHED:
            yield Change(measure, old.verdict, CRASHED, WORSE)


def _depends_on_address(before: CaseView, after: CaseView) -> bool:
    """Whether the address of the array decides between view and copy on both sides, by chance."""
    view_or_copy = {"view", "copy"}
    words = {word for known in (before, after) for word, _ in known.kinds}
    return words <= view_or_copy <= before.words_by_address & after.words_by_address


def _states(case: CaseView) -> dict[str, State]:
    """Return the known verdicts of a case by measure."""
    result, found = case.result, dict[str, State]()
    is_promised = case.promise == "copy"
    for measure, plain in SCALES.items():
        scale = PROMISED_COPY if measure == "ownership" and is_promised else plain
        verdict = getattr(result, measure)
        if words := [word for word, _ in all_looks(verdict) if word in scale]:
            worst = max(words, key=scale.__getitem__)
            word = f"{VARIES} (at worst {worst})" if verdict.verdict == VARIES else verdict.verdict
            found[measure] = State(word, scale[worst], worst)
    if case.result_device is not None:
        found["device of the result"] = State(case.result_device, not case.stays_on_device)
    if (arrays := case.peak_arrays) is not None and not LEAN_ARRAYS < arrays < AMPLIFIED_ARRAYS:
        found[PEAK] = State(f"{arrays:.3g} arrays", arrays > LEAN_ARRAYS)
    if (words_by_address := case.words_by_address) in ADDRESSES and case.result.case.layout == "C":
        bad = "view" if is_promised else "copy"
        word = ADDRESSES[words_by_address]
        found[ALIGNMENT] = State(word, bad in words_by_address, bad)
    if case.writable.result is not None:
        is_lost = case.loses_read_only
        found["read-only flag"] = State("lost" if is_lost else "kept", is_lost)
    return found


# Criteria


@dataclass(frozen=True)
class Criteria:
    """The criteria of a regression.

    Without ``floors``, times are not judged. A change for the worse counts by its severity or by
    its word. A conversion that is gone, refused or crashed always counts. A time that is WIDE
    passes if it is slower by ``wide_limit`` at most (0.25 is 25 %) and not likely slower.
    """

    floors: tuple[Floor, ...] = (Floor(),)
    severities: frozenset[str] = frozenset(("error", "warning"))
    words: frozenset[str] = frozenset()
    wide_limit: float = WIDE_LIMIT

    @property
    def need_diagnosis(self) -> bool:
        """Whether a verdict of the diagnosis may be a regression."""
        found = {word for measure in DIAGNOSIS for word in SCALES.get(measure, ())}
        return bool(self.severities or self.words & found)

    def fails(self, change: Change) -> bool:
        """Whether a change of verdict is a regression, or a crash of a measure that is named."""
        if change.direction != WORSE:
            return False
        change_words = {change.worst}
        if change.after == CRASHED:
            change_words |= set(SCALES.get(change.what, ()))
        severe = change.what == STATUS or change.severity in self.severities
        return severe or not self.words.isdisjoint(change_words)

    def passes(self, time: Time) -> bool:
        """Whether a time that is WIDE passes."""
        is_below = time.bound is not None and time.bound <= 1 + self.wide_limit
        return is_below and not time.is_likely_slower


def parse(texts: Sequence[str]) -> Criteria:
    """Return the criteria of all ``--fail-on`` (docs/compare.md); the default for none.

    If only measures are named, changes of verdict are judged all the same. If only changes are
    named, no times are judged. Raises :class:`UsageError`.
    """
    floors: dict[str, Floor] = {}
    names: set[str] = set()
    measure = ""  # whose amounts may follow
    for part in (part.strip().lower() for text in texts for part in text.split(",")):
        head, _, amount = (word.strip() for word in part.partition(":"))
        if head in TIMES:
            measure = head
            floors[head] = _with_amount(Floor(head), amount) if amount else Floor(head)
        elif measure and AMOUNT.match(part):
            floors[measure] = _with_amount(floors[measure], part)
        elif part in (*SEVERITIES, *WORDS):
            names.add(part)
            measure = ""
        else:
            hint = nearest(head, (*TIMES, *SEVERITIES, *WORDS))
            raise UsageError(f"--fail-on does not know {part!r}: {hint}")
    if not names:
        return Criteria(tuple(floors.values())) if floors else Criteria()
    least = max((SEVERITIES.index(name) for name in names if name in SEVERITIES), default=-1)
    severities = frozenset(SEVERITIES[: least + 1])
    return Criteria(tuple(floors.values()), severities, frozenset(names - set(SEVERITIES)))


def _with_amount(floor: Floor, amount: str) -> Floor:
    match = AMOUNT.fullmatch(amount)
    if match is None or match[2] not in ("%", *UNITS_NS):
        units = ", ".join(("%", *UNITS_NS))
        raise UsageError(
            f"--fail-on {floor.measure}: {amount!r} is not an amount such as 5% or 200ns; "
            f"units are {units}"
        )
    if match[2] == "%":
        return replace(floor, relative=float(match[1]) / 100)
    return replace(floor, absolute_ns=float(match[1]) * UNITS_NS[match[2]])
