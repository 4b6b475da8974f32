"""Changes of verdict between two sessions: worse, better, or not known any more.

A change for the worse is a regression whatever the time says. What was not looked at on one side
(``--quick`` looks at less) is no change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from dlprof.judge import RULES
from dlprof.judge.case_view import CaseView, seen
from dlprof.judge.rule import SEVERITIES
from dlprof.judge.thresholds import AMPLIFIED_ARRAYS, LEAN_ARRAYS
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner.evidence import VARIES, Verdict
from dlprof.runner.session import Result

WORSE, BETTER, LOST, OTHER = "worse", "better", "lost", "other"

STATUS = "status"

RACE = "early_write"
"""The measure that sees a race now and then: to have seen it once is to know of it."""
RACE_LOOKS = 6
"""So many processes without a race show that there is none. Equal code of JAX was unsafe on one
side alone in 1 to 5 of 15 paths, with one look at each."""
NOT_SEEN = "safe in too few looks"

SKIPPED = "skipped"
"""The status that says nothing about the conversion: the run ended before it."""

MEASURED = ("ok", "invalid")
"""Statuses of what was measured to the end; the times of what is invalid were disturbed, and no
verdict was."""

CRASHED = "crashed"
CRASHED_IN_COMPANY = "crashed after other conversions, ok alone"

_BADNESS: Mapping[str, int] = MappingProxyType(
    {"ok": 0, CRASHED_IN_COMPANY: 1, "unsupported": 2, "timeout": 3, CRASHED: 4}
)

SCALES: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
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
)
"""How bad each word is."""

_PROMISED_COPY: Mapping[str, int] = MappingProxyType({"copy": 0, "view": 1})
"""What is documented to copy and does not is wrong (DLP018): its user writes into the source."""

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
"""How severe a change for the worse is: the worst severity of its rule."""


@dataclass(frozen=True)
class Change:
    """``what`` was ``before`` in BASE and is ``after`` in HEAD.

    ``worst`` is the worst verdict of HEAD's processes, empty for what has no verdicts.
    """

    what: str
    before: str
    after: str
    direction: str
    severity: str = "info"
    worst: str = ""

    @property
    def is_crash(self) -> bool:
        """Whether the conversion fails, or an instrument that looks at it."""
        return self.what == STATUS or self.after == CRASHED

    def __str__(self) -> str:
        return f"{self.what.replace('_', ' ')}: {self.before}, now {self.after}"


Tried = tuple[Verdict[Any] | None, Verdict[Any] | None]


def changes(
    base: Result, head: Result, tried: Tried = (None, None), race_looks: int = 1
) -> tuple[Change, ...]:
    """Return all changes of one case.

    ``tried`` is what the instrument *alignment* saw of the path on both sides, at whichever shape.
    ``race_looks`` says how many processes of a side looked for a race, if they saw none.
    """
    found = []
    for one in (*_of_status(base, head), *_of_measures(base, head, tried)):
        change = one
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


def looked_at(base: Result, head: Result) -> frozenset[str]:
    """Return the measures of :data:`SCALES` of which both sides know a verdict."""
    if not both_measured(base, head):
        return frozenset()
    known = [_states(CaseView(0, result)).keys() for result in (base, head)]
    return frozenset(what for what in SCALES if what in known[0] and what in known[1])


def _of_status(base: Result, head: Result) -> Iterator[Change]:
    old, new = _status_word(base), _status_word(head)
    if old != new and SKIPPED not in (old, new):
        yield _directed(STATUS, old, new, _BADNESS[new] - _BADNESS[old])


def _status_word(result: Result) -> str:
    """Return the status, also of what crashed beside other conversions and works alone.

    A faulty probe tells as little of the conversion as a case that was skipped.
    """
    company = result.in_company
    if result.status not in MEASURED:
        return SKIPPED if result.is_of_faulty_probe else result.status
    if company is None or company.status != CRASHED or company.is_of_faulty_probe:
        return "ok"
    return CRASHED_IN_COMPANY


def _directed(what: str, old: str, new: str, badness: int, worst: str = "") -> Change:
    """Return a change that is worse if ``badness`` is positive, and better if it is negative."""
    direction = WORSE if badness > 0 else BETTER if badness < 0 else OTHER
    return Change(what, old, new, direction, worst=worst)


class State(NamedTuple):
    """What is so on one side, and how bad that is."""

    word: str
    badness: int
    worst: str = ""
    """The worst verdict of its processes: a user may meet it."""


def _of_measures(base: Result, head: Result, tried: Tried) -> Iterator[Change]:
    if not both_measured(base, head):
        return
    before = CaseView(0, base, base.alignment or tried[0])
    after = CaseView(0, head, head.alignment or tried[1])
    old_states, new_states = _states(before), _states(after)
    if _by_address(before, after):
        old_states.pop("ownership", None)
    if head.alignment is None:
        old_states.pop(ALIGNMENT, None)  # another shape of the path tells it
    for crash in _crashes(base, head):
        old_states.pop(crash.what, None)
        yield crash
    copies_more = False
    for what, was in old_states.items():
        if what in new_states:
            now = new_states[what]
            badness = now.badness - was.badness
            is_chance = what in BY_CHANCE and badness == 0
            if was.word == now.word or is_chance or (what == ALIGNMENT and copies_more):
                continue
            copies_more |= what == "ownership" and badness > 0
            yield _directed(what, was.word, now.word, badness, now.worst)
        elif what in (*SCALES, PEAK):
            new = getattr(head, what)
            if new is not None and (what != PEAK or not new.says("ok")):
                yield Change(what, was.word, new.verdict, LOST)


def _crashes(base: Result, head: Result) -> Iterator[Change]:
    """Yield instruments of the diagnosis in which HEAD's worker crashed, and BASE's did not."""
    for what in DIAGNOSIS:
        old, new = getattr(base, what), getattr(head, what)
        if old is None or new is None or old.verdict == "unknown":
            continue
        if new.verdict == "unknown" and new.evidence.worker == CRASHED:
            yield Change(what, old.verdict, CRASHED, WORSE)


def _by_address(before: CaseView, after: CaseView) -> bool:
    """Whether the address of the array decides between view and copy on both sides, by chance."""
    both = {"view", "copy"}
    words = {word for known in (before, after) for word, _ in known.kinds_seen}
    return words <= both <= before.words_by_address & after.words_by_address


def _states(case: CaseView) -> dict[str, State]:
    """Return what is known of a case by measure."""
    result, found = case.result, dict[str, State]()
    is_promised = case.promise == "copy"
    for what, plain in SCALES.items():
        scale = _PROMISED_COPY if what == "ownership" and is_promised else plain
        verdict = getattr(result, what)
        if words := [word for word, _ in seen(verdict) if word in scale]:
            worst = max(words, key=scale.__getitem__)
            word = f"{VARIES} (at worst {worst})" if verdict.verdict == VARIES else verdict.verdict
            found[what] = State(word, scale[worst], worst)
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
