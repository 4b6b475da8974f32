"""The one definition of *safe*."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from dlprof.judge.case_view import CaseView, all_looks
from dlprof.runner.evidence import VARIES

Level = Literal["safe", "right", "unchecked", "unsafe", "unmeasured"]


class Fault(NamedTuple):
    """A fault that makes a path unsafe."""

    is_in: Callable[[CaseView], bool]
    """Whether the case breaks the rule, by its own measurements."""
    ends_with_wait: bool = False
    """Whether a wait for the result removes the fault."""
    is_avoided: Callable[[CaseView], bool] | None = None
    """Whether another case of the same array avoids it. If none does there is no choice, and the
    path is safe under the ``condition``."""
    condition: str = ""
    """Words for the reader: ``do not …``."""


@dataclass(frozen=True, slots=True)
class Safety:
    """The safety of a case. The faults of a path at one shape hold for all its shapes.

    ========== =================================================================
    safe       nothing speaks against it, and all was looked at that could
    right      nothing speaks against it, but not all was looked at
    unchecked  nothing speaks against it, but it is unknown whether values survive
    unsafe     ``rules`` speak against it, or it is ``suspected``
    unmeasured there is no time, or nothing to look at
    ========== =================================================================
    """

    level: Level
    rules: tuple[str, ...] = ()
    """Rules that the path breaks, such as ``DLP018``."""
    suspected: tuple[str, ...] = ()
    """Rules that another path of the consumer breaks: this path may break them too."""
    conditions: tuple[str, ...] = ()
    """Rules under whose condition it is safe: see :class:`Fault`."""
    needs_wait: bool = False
    """Whether it is unsafe only until the result was waited for: a write may tear the copy."""


def is_unmeasured(case: CaseView) -> bool:
    """Whether the case has no answer at all."""
    looks = case.result.ownership, case.result.values
    is_blind = all(look is None or look.verdict == "unknown" for look in looks)
    return case.result.status != "ok" or not case.is_measured or is_blind


def is_unchecked(case: CaseView) -> bool:
    """Whether it is unknown if the values survive."""
    return case.result.values is None or case.result.values.verdict == "unknown"


def is_open(case: CaseView) -> bool:
    """Whether something of the diagnosis is unknown."""
    if case.result.lifetime is None:
        return True
    names = ["lifetime", "ordering", "values", "alignment"]
    if case.kind in ("copy", "varies") or case.copies_elsewhere:
        names.append("early_write")
    return is_unknown_kind(case) or any(has_gap(case, name) for name in names)


def has_gap(case: CaseView, name: str) -> bool:
    """Whether an instrument gave no answer in some process.

    A survey looks at each array once by design. Processes that disagree leave the answer open.
    """
    verdict = getattr(case.result, name)
    if verdict is None:
        return any(note.instrument in (name, "diagnosis") for note in case.result.notes)
    if case.surveyed:
        return False
    for word, evidence in all_looks(verdict):
        is_unknown = word == "unknown" and not evidence.moot and name != "alignment"
        if is_unknown or evidence.lost:
            return True
    if name == "ordering" and "unknown" in case.ordering_runs.values():
        return True
    return verdict.verdict == VARIES and name in ("lifetime", "ordering")


def is_unknown_kind(case: CaseView) -> bool:
    """Whether a process could not tell if it is a view or a copy."""
    return case.kind in (None, "unknown") or any(word == "unknown" for word, _ in case.kinds)
