"""``--fail-on`` of compare and gate: which slowdowns and which changes are regressions.

ready:5%              ready time, 5 % (and 5 ns, the default)
ready:5%,200ns        both must be exceeded
host:10%,ready:5%     several measures
warning               every change of verdict that is as severe, or worse
copy,dangling         a change to such a verdict
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dlprof.compare.matching import Key, key
from dlprof.compare.verdicts import CRASHED, SCALES, Change
from dlprof.errors import UsageError
from dlprof.plan.floors import DEFAULT, MEASURES, Floor, FloorRule
from dlprof.rules.rule import SEVERITIES
from dlprof.session.model import CaseRecord

UNITS_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
WORDS = (
    *(word for scale in SCALES.values() for word, (badness, _) in scale.items() if badness > 0),
    "view",
)
"""The verdicts that a change for the worse can lead to; ``view`` is one for a documented copy."""

_AMOUNT = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)(%|[a-z]*)")


@dataclass(frozen=True)
class Criteria:
    """``times`` says whether a slower time is a regression; a change is one by severity or word.

    A conversion that is gone, refused or crashes is a regression whatever the criteria say.
    """

    floors: tuple[Floor, ...] = DEFAULT
    times: bool = True
    severities: frozenset[str] = frozenset(("error", "warning"))
    words: frozenset[str] = frozenset()

    def blind(self, looked_at: Collection[str]) -> tuple[str, ...]:
        """The verdicts named that no measure looked for, of those that were ``looked_at``."""
        return tuple(
            sorted(
                word
                for word in self.words
                if not any(word in SCALES[what] for what in looked_at if what in SCALES)
            )
        )

    def measures_of(self, measures: Collection[str]) -> tuple[str, ...]:
        """Those of these measures that have a verdict which is named."""
        return tuple(sorted(what for what in measures if not self.words.isdisjoint(SCALES[what])))

    def fails(self, change: Change) -> bool:
        """Whether a change of verdict is a regression.

        So is a crash of the measure that could have found a verdict which is named.
        """
        if not change.worse:
            return False
        named = change.worst or change.after
        crashed = SCALES.get(change.what, {}) if change.after == CRASHED else {}
        return (
            change.what == "status"
            or change.severity in self.severities
            or not self.words.isdisjoint({named, *crashed})
        )


def parse(texts: Sequence[str]) -> Criteria:
    """The criteria of one or more ``--fail-on``; the default for none. Raises UsageError.

    If only measures are named, changes of verdict are judged all the same. If only changes are
    named, no times are judged.
    """
    floors: dict[str, Floor] = {}
    severities: set[str] = set()
    words: set[str] = set()
    for head, amounts in _items(texts):
        if head in MEASURES:
            if head in floors:
                raise UsageError(f"--fail-on names {head} twice")
            floors[head] = _floor(head, amounts)
        elif amounts:
            raise _unknown(head, MEASURES, "measure")
        elif head in SEVERITIES:
            severities |= set(SEVERITIES[: SEVERITIES.index(head) + 1])
        elif head in WORDS:
            words.add(head)
        else:
            raise _unknown(head, (*MEASURES, *SEVERITIES, *WORDS), "measure, severity or verdict")
    criteria = Criteria(times=bool(floors) or not (severities or words))
    if floors:
        criteria = replace(criteria, floors=tuple(floors.values()))
    if severities or words:
        criteria = replace(criteria, severities=frozenset(severities), words=frozenset(words))
    return criteria


def _items(texts: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Each word with the amounts behind it: ``ready`` and ``["5%", "200ns"]``."""
    for text in texts:
        head, amounts = "", list[str]()
        for token in (part.strip().lower() for part in text.split(",")):
            if not token:
                raise UsageError(f"--fail-on {text!r} has an empty part")
            if ":" not in token and _AMOUNT.match(token):
                if not amounts:
                    raise UsageError(
                        f"--fail-on: {token} stands behind no measure: write ready:{token}"
                    )
                amounts.append(token)
                continue
            if head:
                yield head, amounts
            head, colon, amount = token.partition(":")
            amounts = [amount.strip()] if colon else []
        yield head, amounts


def _floor(measure: str, amounts: Sequence[str]) -> Floor:
    """The floor of a measure, with the defaults of :class:`Floor`."""
    given: dict[str, float] = {}
    for amount in amounts:
        name, value = _amount(measure, amount)
        if name in given:
            raise UsageError(f"--fail-on gives {measure} two floors of one kind: {amount}")
        given[name] = value
    default = Floor(measure)
    floor = Floor(
        measure,
        given.get("relative", default.relative),
        given.get("absolute_ns", default.absolute_ns),
    )
    if floor.relative <= 0 and floor.absolute_ns <= 0:
        raise UsageError(f"--fail-on {measure}: one of its floors must be above 0")
    return floor


def _amount(measure: str, amount: str) -> tuple[str, float]:
    match = _AMOUNT.fullmatch(amount)
    if match is None:
        raise UsageError(f"--fail-on {measure}: {amount!r} is not an amount such as 5% or 200ns")
    value, unit = float(match[1]), match[2]
    if unit == "%":
        return "relative", value / 100
    if unit not in UNITS_NS:
        raise UsageError(f"--fail-on {measure}: {amount} needs a unit: %, {', '.join(UNITS_NS)}")
    return "absolute_ns", value * UNITS_NS[unit]


def _unknown(word: str, known: Sequence[str], what: str) -> UsageError:
    near = difflib.get_close_matches(word, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(dict.fromkeys(known))}"
    return UsageError(f"--fail-on knows no {what} {word!r}: {hint}")


def own_floors(
    rules: Sequence[FloorRule], cases: Iterable[CaseRecord], floors: Sequence[Floor]
) -> dict[Key, tuple[Floor, ...]]:
    """The floors of the cases that a rule names; of several rules the last counts.

    A case whose times are not judged has no floors.
    """
    found: dict[Key, tuple[Floor, ...]] = {}
    for case in cases:
        own = {floor.measure: floor for floor in floors}
        for rule in rules:
            if rule.matches(case) and not rule.times:
                own.clear()
            elif rule.matches(case):
                general = next((f for f in floors if f.measure == rule.measure), None)
                own[rule.measure] = rule.over(general or Floor(rule.measure))
        if tuple(own.values()) != tuple(floors):
            found[key(case)] = tuple(own.values())
    return found
