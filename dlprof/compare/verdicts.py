"""Changes of verdict between two sessions: worse, better, or not known any more.

A change for the worse is a regression whatever the time says. What was not looked at on one side
(``--quick`` looks at less) is no change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from dlprof.compare.severity import Severities
from dlprof.judge.case_view import CaseView, seen
from dlprof.judge.thresholds import AMPLIFIED_ARRAYS, LEAN_ARRAYS
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner.evidence import VARIES, FreshSource
from dlprof.runner.session import Result, Verdict

WORSE, BETTER, LOST, OTHER = "worse", "better", "lost", "other"

STATUS = "status"

RACE = "early_write"
"""The measure that sees a race now and then: to have seen it once is to know of it."""
RACE_LOOKS = 6
"""So many processes without a race show that there is none. Equal code of JAX was unsafe on one
side alone in 1 to 5 of 15 paths, with one look at each."""
NOT_SEEN = "safe in too few looks"
"""What a race is of which fewer processes saw none."""

SKIPPED = "skipped"
"""The status that says nothing about the conversion: the run ended before it."""

MEASURED = ("ok", "invalid")
"""Statuses of what was measured to the end; the times of what is invalid were disturbed, and no
verdict was."""

CRASHED_IN_COMPANY = "crashed after other conversions, ok alone"

_BADNESS: Mapping[str, int] = MappingProxyType(
    {"ok": 0, CRASHED_IN_COMPANY: 1, "unsupported": 2, "timeout": 3, "crashed": 4}
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
        "early_write": {"safe": 0, "unsafe": 1},
    }
)
"""How bad each word is."""

_PROMISED_COPY: Mapping[str, int] = MappingProxyType({"copy": 0, "view": 1})
"""What is documented to copy and does not is wrong (DLP018): its user writes into the source."""

NAMES: Mapping[str, str] = MappingProxyType(
    {
        STATUS: "conversion",
        "ownership": "result",
        "alignment": "result",
        "ordering": "queued work",
        "lifetime": "result after x is deleted",
        RACE: "write to x after the call",
    }
)
"""What a reader knows the measures by; the others are named in plain words already."""
WORDS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        STATUS: {
            "ok": "works",
            "unsupported": "refused",
            "timeout": "hangs",
            "crashed": "crashes",
            CRASHED_IN_COMPANY: "crashes after other conversions, works alone",
        },
        "ownership": {"view": "a view", "copy": "a copy"},
        "values": {"ok": "right"},
        "ordering": {
            "synchronous": "nothing to wait for",
            "stream-ordered": "ordered without a wait",
            "host-sync": "the call waits for it",
            "device-sync": "the call waits for the whole device",
            "unordered": "a race",
        },
        "lifetime": {"retained": "safe, but memory stays", "dangling": "reads freed memory"},
        RACE: {
            "safe": "harmless",
            NOT_SEEN: "harmless in one process",
            "unsafe": "changes the result",
        },
    }
)

CRASHED = "crashed"
"""What a measure is in which HEAD's worker crashed."""


@dataclass(frozen=True)
class Change:
    """``what`` was ``before`` in BASE and is ``after`` in HEAD.

    ``worst`` is the worst word of HEAD's processes, where they disagree or may by the address.
    """

    what: str
    before: str
    after: str
    direction: str
    severity: str = "info"
    worst: str = ""

    @property
    def word(self) -> str:
        """What is so in HEAD: its worst verdict, or what changed if that has none."""
        has_verdicts = self.what in SCALES or self.what == "alignment"
        return self.worst or self.after if has_verdicts else self.what

    @property
    def is_crash(self) -> bool:
        """Whether the conversion fails, or an instrument that looks at it."""
        return self.what == STATUS or self.after == CRASHED

    def __str__(self) -> str:
        before, after = (_word(self.what, word) for word in (self.before, self.after))
        return f"{NAMES.get(self.what, self.what.replace('_', ' '))}: {before}, now {after}"


ALONE = Severities()
"""Without HEAD's session: as bad as can be."""
Tried = tuple[Verdict[Any] | None, Verdict[Any] | None]


def changes(
    base: Result,
    head: Result,
    tried: Tried = (None, None),
    severities: Severities = ALONE,
    race_looks: tuple[int, int] = (1, 1),
) -> tuple[Change, ...]:
    """All changes of one case.

    ``tried`` is what the instrument *alignment* saw of the path on both sides, at whichever shape;
    ``severities`` are those of HEAD's session. ``race_looks`` says how many processes of each side
    looked for a race, if they saw none.
    """

    def severe(change: Change) -> Change:
        if change.direction != WORSE:
            return change
        word = "error" if change.is_crash else severities.of(change.word, base, head)
        return replace(change, severity=word)

    found = *_of_status(base, head), *_of_measures(base, head, tried)
    return tuple(severe(_doubted(change, race_looks)) for change in found)


def _doubted(change: Change, race_looks: tuple[int, int]) -> Change:
    """A race that came or went is a doubt if the side without it had too few looks."""
    if change.what != RACE:
        return change
    if change.direction == WORSE and race_looks[0] < RACE_LOOKS:
        return replace(change, before=NOT_SEEN, direction=LOST)
    if change.direction == BETTER and race_looks[1] < RACE_LOOKS:
        return replace(change, after=NOT_SEEN, direction=OTHER)
    return change


def _of_status(base: Result, head: Result) -> Iterator[Change]:
    old, new = _status_word(base), _status_word(head)
    if old != new and SKIPPED not in (old, new):
        yield _directed(STATUS, (old, new), _BADNESS[new] - _BADNESS[old])


def _status_word(result: Result) -> str:
    """The status, also of what crashed beside other conversions and works alone.

    A faulty probe tells as little of the conversion as a case that was skipped.
    """
    company = result.in_company
    if result.status not in MEASURED:
        return SKIPPED if result.is_of_faulty_probe else result.status
    if company is None or company.is_of_faulty_probe:
        return "ok"
    return CRASHED_IN_COMPANY if company.status == "crashed" else "ok"


def both_measured(base: Result, head: Result) -> bool:
    return base.status in MEASURED and head.status in MEASURED


def looked_at(base: Result, head: Result) -> frozenset[str]:
    """The measures of :data:`SCALES` of which both sides know a verdict."""
    if not both_measured(base, head):
        return frozenset()
    return frozenset(what for what in SCALES if answers(base, what) and answers(head, what))


def answers(result: Result, what: str) -> bool:
    """Whether this measure of a result, one of :data:`SCALES` or ``peak_memory``, has an answer."""
    scale = SCALES.get(what, {"ok": None})
    return any(word in scale for word, _ in seen(getattr(result, what)))


def crashed_in(result: Result, what: str) -> bool:
    """Whether a worker crashed in this instrument of the diagnosis."""
    found = getattr(result, what) if what in DIAGNOSIS else None
    return found is not None and found.verdict == "unknown" and found.evidence.worker == "crashed"


def _of_measures(base: Result, head: Result, tried: Tried) -> Iterator[Change]:
    if not both_measured(base, head):
        return
    before = CaseView(0, base, base.alignment or tried[0])
    after = CaseView(0, head, head.alignment or tried[1])
    crashes = {change.what: change for change in _crashes(base, head)}
    yield from crashes.values()
    copies_more = False
    for what, scale in SCALES.items():
        if what in crashes or (what == "ownership" and _by_address(before, after)):
            continue
        used = _PROMISED_COPY if what == "ownership" and head.case.promise == "copy" else scale
        for change in _on_scale(what, used, getattr(base, what), getattr(head, what)):
            copies_more |= what == "ownership" and change.direction == WORSE
            yield change
    old, new = before.result_device, after.result_device
    if old is not None and new is not None and old != new:
        yield _directed(
            "device of the result",
            (old, new),
            before.stays_on_device - after.stays_on_device,
        )
    if "peak_memory" not in crashes:
        yield from _peak(before, after)
    if not copies_more:
        yield from _alignment(before, after)
    lost = before.loses_read_only, after.loses_read_only
    if lost[0] != lost[1] and before.writable and after.writable:
        words = ("lost" if lost[0] else "kept", "lost" if lost[1] else "kept")
        yield _directed("read-only flag", words, lost[1] - lost[0])


def _directed(what: str, words: tuple[str, str], badness: float, worst: str = "") -> Change:
    """Return a change that is worse if ``badness`` is positive, and better if it is negative."""
    direction = WORSE if badness > 0 else BETTER if badness < 0 else OTHER
    return Change(what, *words, direction, worst=worst)


def _crashes(base: Result, head: Result) -> Iterator[Change]:
    """Yield instruments in which HEAD's worker crashed, and BASE's did not."""
    for what in DIAGNOSIS:
        old = getattr(base, what)
        if old is not None and old.verdict != "unknown" and crashed_in(head, what):
            yield Change(what, old.verdict, CRASHED, WORSE)


def _by_address(before: CaseView, after: CaseView) -> bool:
    """Whether the address of the array decides between view and copy on both sides, by chance."""
    both = {"view", "copy"}
    words = {word for known in (before, after) for word, _ in known.kinds_seen}
    return words <= both <= before.alignment_words & after.alignment_words


def _on_scale(
    what: str,
    scale: Mapping[str, int],
    old: Verdict[Any] | None,
    new: Verdict[Any] | None,
) -> Iterator[Change]:
    if old is None or new is None:
        return
    before = [word for word, _ in seen(old) if word in scale]
    after = [word for word, _ in seen(new) if word in scale]
    if not before:
        return
    if not after:
        yield Change(what, old.verdict, new.verdict, LOST)
        return
    # If the processes disagree, the worst of them counts: a user may meet it.
    worst_before, worst = (max(words, key=scale.__getitem__) for words in (before, after))
    if what == RACE and worst == worst_before:
        return  # in how many processes it was seen is chance
    words = _shown(what, old, worst_before), _shown(what, new, worst)
    if words[0] != words[1]:
        others = "" if worst == new.verdict else worst
        yield _directed(what, words, scale[worst] - scale[worst_before], others)


def _word(what: str, word: str) -> str:
    return WORDS.get(what, {}).get(word, word)


def _shown(what: str, verdict: Verdict[Any], worst: str) -> str:
    varies = verdict.verdict == VARIES
    return f"{VARIES} (at worst {_word(what, worst)})" if varies else verdict.verdict


ADDRESSES = {
    frozenset({"view"}): "a view at any address",
    frozenset({"copy"}): "a copy at any address",
    frozenset({"view", "copy"}): "a view or a copy, by the address",
}


def _alignment(before: CaseView, after: CaseView) -> Iterator[Change]:
    """Yield a result that depends on the address in HEAD and did not in BASE."""
    if after.result.alignment is None or after.result.case.layout != "C":
        return  # another shape of the path tells it, or this one is where it was asked to be
    old, new = before.words_by_address, after.words_by_address
    if old not in ADDRESSES or new not in ADDRESSES:
        return
    bad = "view" if after.result.case.promise == "copy" else "copy"
    badness = (bad in new) - (bad in old)
    if badness:
        words = ADDRESSES[old], ADDRESSES[new]
        yield _directed("alignment", words, badness, bad if badness > 0 else "")


def _peak(before: CaseView, after: CaseView) -> Iterator[Change]:
    old, new = before.peak_arrays, after.peak_arrays
    if old is None:
        return
    if new is None:
        if after.result.peak_memory is not None:
            yield Change("peak memory", f"{old:.3g} arrays", "unknown", LOST)
        return
    low, high = sorted((old, new))
    if low <= LEAN_ARRAYS and high >= AMPLIFIED_ARRAYS:
        words = f"{old:.3g} arrays", f"{new:.3g} arrays"
        yield _directed("peak memory", words, new - old)


KEPT_APART = 2.0
"""What the first conversions of new arrays cost, in seconds ones of the same, on both sides. Of
equal code with a view the ratio is 2.9 in one process and 3.7 in the next, around the 3 that makes
it kept."""


def kept_differs(base: Result, head: Result) -> bool:
    """Whether one side timed a conversion whose result the framework keeps, and the other not."""
    looks = [result.fresh_source for result in (base, head) if result.fresh_source is not None]
    if {look.verdict for look in looks} != {"kept", "not kept"}:
        return False
    ratios = [_first_over_second(look.evidence) for look in looks]
    known = sorted(ratio for ratio in ratios if ratio is not None)
    return len(known) < len(ratios) or known[-1] > KEPT_APART * known[0]


def _first_over_second(evidence: FreshSource) -> float | None:
    first, second = evidence.first_ns, evidence.second_ns
    return None if first is None or second is None or second <= 0 else first / second
