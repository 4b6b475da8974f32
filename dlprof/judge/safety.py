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
    def is_trusted(self) -> bool:
        """Whether its values were seen to be right, and nothing speaks against it."""
        return self.level in ("safe", "right")


def unmeasured(case: CaseView) -> str:
    """Why the case has no answer at all; empty if it has one."""
    result = case.result
    if result.status != "ok":
        return f"{result.status}: {first_line(result.reason)}" if result.reason else result.status
    if not case.is_measured:
        return next((first_line(str(one)) for one in result.notes), "it has no time")
    looks = result.ownership, result.values
    if all(look is None or look.verdict == "unknown" for look in looks):
        return "nothing of the result could be looked at"
    return ""


def unchecked(case: CaseView) -> str:
    """Why it is unknown whether the values survived; empty if that is known."""
    values = case.result.values
    if values is None:
        return _failure(case, "values") or "its values"
    return first_line(values.evidence.reason) if values.verdict == "unknown" else ""


def _failure(case: CaseView, *instruments: str) -> str:
    """Why one of the instruments failed; empty if none did."""
    notes = case.result.notes
    return next((first_line(one.reason) for one in notes if one.instrument in instruments), "")


def not_looked_at(case: CaseView) -> str:
    """What of the diagnosis is unknown, with the reason of the instrument; empty if nothing is."""
    if case.result.lifetime is None:
        return "races and lifetime"
    names = ["lifetime", "ordering", "values", "alignment"]
    if case.kind in ("copy", "varies") or case.copies_elsewhere:
        names.append("early_write")
    gaps = (f"{name.replace('_', ' ')}: {reason}" for name in names if (reason := gap(case, name)))
    return next(gaps, "") or unknown_kind(case)


def gap(case: CaseView, name: str) -> str:
    """Why an instrument gave no answer in some process; empty if it gave one in each.

    A survey looks at each array once by design. Processes that disagree leave the answer open.
    """
    verdict = getattr(case.result, name)
    if verdict is None:
        return _failure(case, name, "diagnosis")
    if case.surveyed:
        return ""
    for word, evidence in seen(verdict):
        is_open = word == "unknown" and not evidence.moot and name != "alignment"
        if is_open or evidence.lost:
            return first_line(evidence.reason) or "no answer"
    if name == "ordering":
        own = (verdict.evidence.by_streams or {}).get("own streams")
        if isinstance(own, dict) and own.get("verdict") == "unknown":
            return "not known on streams other than the default"
    is_open = verdict.verdict == VARIES and name in ("lifetime", "ordering")
    return "processes disagree" if is_open else ""


def unknown_kind(case: CaseView) -> str:
    """Whether a process could not tell if it is a view or a copy, in words."""
    if case.kind in (None, "unknown") or any(word == "unknown" for word, _ in case.kinds_seen):
        return "whether it is a view or a copy"
    return ""
