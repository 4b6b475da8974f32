"""The one definition of *safe*: what may be said of a path, and why no more than that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from dlprof.judge.case_view import CaseView, seen
from dlprof.runner.evidence import VARIES
from dlprof.text.clean import first_line

Level = Literal["safe", "right", "unchecked", "unsafe", "unmeasured"]


class Fault(NamedTuple):
    """How a rule makes a path unsafe."""

    is_in: Callable[[CaseView], bool]
    """Whether what was measured of the case itself breaks the rule, other cases left aside."""
    takes_values: bool = False
    """Whether the values are wrong, do not last, or never arrive."""
    is_of_result: bool = True
    """Whether what the path gives is bad, and not only what is documented of it."""
    ends_with_wait: bool = False
    """Whether nothing is bad any more once the result was waited for."""
    is_avoided: Callable[[CaseView], bool] | None = None
    """Whether another case of the same array does without. Where none does there is no choice, and
    the path is safe under the ``condition``."""
    condition: str = ""
    """In words: ``do not …``."""


@dataclass(frozen=True, slots=True)
class Safety:
    """What may be said of a case. What was seen at one shape of a path holds for all its shapes.

    ========== =====================================================================
    safe       nothing speaks against it, and all was looked at that could
    right      nothing speaks against it, but ``unknown`` says what was not looked at
    unchecked  nothing speaks against it, but ``unknown`` says why values are not known
    unsafe     ``rules`` speak against it, or it is ``suspected``
    unmeasured ``unknown`` says why there is no time, or nothing to look at
    ========== =====================================================================
    """

    level: Level
    rules: tuple[str, ...] = ()
    """Rules that something was found of, such as ``DLP018``."""
    suspected: tuple[str, ...] = ()
    """Rules that another path of the consumer breaks: this path may break them too."""
    gives_values: bool = True
    """Whether no rule says that its values are wrong, do not last, or never arrive."""
    unknown: str = ""
    """What is not known, in a few words."""
    conditions: tuple[str, ...] = ()
    """Rules under whose condition it is safe: see :class:`Fault`."""
    needs_wait: bool = False
    """Whether it is unsafe only until the result was waited for: a write may tear the copy."""

    @property
    def marked(self) -> tuple[tuple[str, str], ...]:
        """The rules that speak against *safe*, each with a ``?`` if it is only suspected."""
        return tuple((dict.fromkeys(self.rules, "") | dict.fromkeys(self.suspected, "?")).items())

    @property
    def is_safe(self) -> bool:
        return self.level == "safe"

    @property
    def is_trusted(self) -> bool:
        """Whether its values were seen to be right, and nothing speaks against it."""
        return self.level in ("safe", "right")

    @property
    def rank(self) -> int | None:
        """The order in which paths are taken: trusted, unchecked, then unsafe ones whose values
        are right all the same. None for a path that gives no right values.
        """
        if self.level == "unmeasured" or not self.gives_values:
            return None
        return {"unchecked": 1, "unsafe": 2}.get(self.level, 0)


def unmeasured(case: CaseView) -> str:
    """Why nothing can be said of the case, in words; empty where something can."""
    result = case.result
    if result.status != "ok":
        return f"{result.status}: {first_line(result.reason)}" if result.reason else result.status
    if not case.is_measured:
        return next((first_line(str(one)) for one in result.notes), "it has no time")
    if _is_blank(case):
        return "nothing of the result could be looked at"
    return ""


def _is_blank(case: CaseView) -> bool:
    looks = case.result.ownership, case.result.values
    return all(look is None or look.verdict == "unknown" for look in looks)


def unchecked(case: CaseView) -> str:
    """Why it is not known whether the values survived, in words; empty where that is known."""
    values = case.result.values
    if values is None:
        return _failure(case, "values") or "nothing looked at its values"
    if values.verdict != "unknown":
        return ""
    return first_line(values.evidence.reason)


def _failure(case: CaseView, instrument: str) -> str:
    """Why an instrument failed; empty where it did not."""
    notes = case.result.notes
    return next((first_line(one.reason) for one in notes if one.instrument == instrument), "")


def not_looked_at(case: CaseView) -> str:
    """What of the diagnosis is missing, in words; empty where nothing is."""
    result = case.result
    if result.lifetime is None:
        if result.ordering is None and result.early_write is None and result.peak_memory is None:
            return "nothing looked for races or lost memory"
        return "whether it outlives its source could not be seen"
    for name, question in (
        ("lifetime", "whether it outlives its source"),
        ("ordering", "whether it waits for queued work"),
        *([("early_write", "whether a write tears the copy")] if _may_copy(case) else ()),
    ):
        verdict = getattr(result, name)
        failure = (_failure(case, name) or _failure(case, "diagnosis")) if verdict is None else ""
        differs = verdict is not None and verdict.verdict == VARIES and name != "early_write"
        if failure or differs or (verdict is not None and not verdict.is_known):
            reason = failure or verdict.evidence.reason
            return f"{question} is not known" + (f": {first_line(reason)}" if reason else "")
    return unknown_kind(case) or _part_not_looked_at(case)


def unknown_kind(case: CaseView) -> str:
    """Whether a process could not tell if it is a view or a copy, in words."""
    if case.kind in (None, "unknown") or any(word == "unknown" for word, _ in case.kinds_seen):
        return "whether it is a view or a copy is not known"
    return ""


def _may_copy(case: CaseView) -> bool:
    """Whether it copies here, in some processes, or from another address."""
    return case.kind in ("copy", "varies") or case.copies_elsewhere


INSTRUMENTS = {"values": "values", "lifetime": "lifetime", "early_write": "late reads"}
"""The instruments whose verdict may differ between processes, as a report names them."""


def unsettled(case: CaseView, name: str) -> str:
    """Why an instrument could not tell in some process, in words; empty if each could.

    An array of a survey is looked at once by design.
    """
    if case.surveyed:
        return ""
    for word, evidence in seen(getattr(case.result, name)):
        if word == "unknown" and not evidence.moot:
            why = first_line(evidence.reason)
            return f"{INSTRUMENTS[name]}: not known in each process: {why}"
    return ""


def _part_not_looked_at(case: CaseView) -> str:
    """What the instruments of the diagnosis left out, in words."""
    result, ordering = case.result, case.result.ordering
    names = ("values", "lifetime", *(("early_write",) if _may_copy(case) else ()))
    for missing in (unsettled(case, name) for name in names):
        if missing:
            return missing
    if ordering is not None:
        own = (ordering.evidence.by_streams or {}).get("own streams")
        if isinstance(own, dict) and own.get("verdict") == "unknown":
            why = (own.get("evidence") or {}).get("reason")
            return "whether it waits on streams of one's own is not known" + _because(why)
    alignment = result.alignment.evidence if result.alignment is not None else None
    failure = _failure(case, "alignment")
    if alignment is not None and alignment.lost is not None:
        failure = first_line(alignment.reason)
    return f"whether the address of x decides is not known: {failure}" if failure else ""


def _because(reason: object) -> str:
    return f": {first_line(str(reason))}" if reason else ""
