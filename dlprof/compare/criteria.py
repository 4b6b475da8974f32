"""``--fail-on`` of compare and gate: which slowdowns and which changes are regressions.

ready:5%              ready time, 5 % (and 5 ns, the default)
ready:5%,200ns        both must be exceeded
host:10%,ready:5%     several measures
warning               every change of verdict that is as severe, or worse
copy,dangling         a change to such a verdict
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dlprof.compare.verdicts import CRASHED, SCALES, STATUS, WORSE, Change
from dlprof.errors import UsageError
from dlprof.judge.rule import SEVERITIES
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner.axes import NO_TIMES
from dlprof.text.clean import nearest

UNITS_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
WORDS = (
    *(word for scale in SCALES.values() for word, badness in scale.items() if badness > 0),
    "view",
)
"""The verdicts that a change for the worse can lead to; ``view`` is one for a documented copy."""

REPEATED = ("ready", "host")
"""The times that every process of a session has."""

_AMOUNT = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)(%|[a-z]*)")


@dataclass(frozen=True)
class Floor:
    """A slowdown matters if it exceeds both ``relative`` (0.05 is 5 %) and ``absolute_ns``.

    The 5 ns are for views of 50 ns, which the resolution of a loop must not decide.
    """

    measure: str = "ready"
    relative: float = 0.05
    absolute_ns: float = 5.0

    def step(self, base_ns: float) -> float:
        """Return the floor of a case that takes ``base_ns``, as a difference of logarithms."""
        share = self.absolute_ns / base_ns if base_ns > 0 else math.inf
        return max(math.log1p(max(self.relative, share)), 1e-12)  # never 0: it is divided by


DEFAULT = (Floor(),)


@dataclass(frozen=True)
class Criteria:
    """``times`` says whether a slower time is a regression; a change is one by severity or word.

    A conversion that is gone, refused or crashes is a regression whatever the criteria say.
    """

    floors: tuple[Floor, ...] = DEFAULT
    times: bool = True
    severities: frozenset[str] = frozenset(("error", "warning"))
    words: frozenset[str] = frozenset()

    def without_times(self) -> Criteria:
        """The same for sessions that have no times. Raises :class:`UsageError` if one is named."""
        if self.times and self.floors != DEFAULT:
            measures = ", ".join(floor.measure for floor in self.floors)
            raise UsageError(f"--fail-on {measures} needs {NO_TIMES}")
        return replace(self, times=False)

    @property
    def need_diagnosis(self) -> bool:
        """Whether a verdict of the diagnosis may be a regression."""
        found = {word for what in DIAGNOSIS for word in SCALES.get(what, ())}
        return bool(self.severities or self.words & found)

    def fails(self, change: Change) -> bool:
        """Whether a change of verdict is a regression.

        So is a crash of the measure that could have found a verdict which is named.
        """
        if change.direction != WORSE:
            return False
        named = {change.worst}
        if change.after == CRASHED:
            named |= set(SCALES.get(change.what, ()))
        severe = change.what == STATUS or change.severity in self.severities
        return severe or not self.words.isdisjoint(named)


def parse(texts: Sequence[str]) -> Criteria:
    """The criteria of one or more ``--fail-on``; the default for none. Raises UsageError.

    If only measures are named, changes of verdict are judged all the same. If only changes are
    named, no times are judged.
    """
    floors: dict[str, Floor] = {}
    names: set[str] = set()
    measure = ""  # whose amounts may follow
    for part in (part.strip().lower() for text in texts for part in text.split(",")):
        head, _, amount = (word.strip() for word in part.partition(":"))
        if head in REPEATED:
            measure = head
            floors[head] = _with_amount(Floor(head), amount) if amount else Floor(head)
        elif measure and _AMOUNT.match(part):
            floors[measure] = _with_amount(floors[measure], part)
        elif part in (*SEVERITIES, *WORDS):
            names.add(part)
            measure = ""
        else:
            hint = nearest(head, (*REPEATED, *SEVERITIES, *WORDS))
            raise UsageError(f"--fail-on does not know {part!r}: {hint}")
    criteria = Criteria(times=bool(floors) or not names)
    if floors:
        criteria = replace(criteria, floors=tuple(floors.values()))
    if names:
        severe = [place for place, severity in enumerate(SEVERITIES) if severity in names]
        severities = frozenset(SEVERITIES[: max(severe, default=-1) + 1])
        criteria = replace(
            criteria, severities=severities, words=frozenset(names - set(SEVERITIES))
        )
    return criteria


def _with_amount(floor: Floor, amount: str) -> Floor:
    match = _AMOUNT.fullmatch(amount)
    if match is None or match[2] not in ("%", *UNITS_NS):
        units = ", ".join(("%", *UNITS_NS))
        raise UsageError(
            f"--fail-on {floor.measure}: {amount!r} is not an amount such as 5% or 200ns; "
            f"units are {units}"
        )
    if match[2] == "%":
        return replace(floor, relative=float(match[1]) / 100)
    return replace(floor, absolute_ns=float(match[1]) * UNITS_NS[match[2]])
