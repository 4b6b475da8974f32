"""Which slowdown matters: a floor for each measure, relative and absolute."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from dlprof.runner.session import CaseRecord


@dataclass(frozen=True)
class Floor:
    """A slowdown matters where it exceeds both: ``relative`` (0.05 is 5 %) and ``absolute_ns``.

    ``raised_from`` is the relative floor that was asked for, if so little cannot be told: by a
    calibration, or because two sessions are of two days. None for a floor as a person wrote it.
    """

    measure: str = "ready"
    relative: float = 0.05
    absolute_ns: float = 5.0
    raised_from: float | None = None

    @property
    def asked(self) -> Floor:
        """The floor that was asked for."""
        if self.raised_from is None:
            return self
        return replace(self, relative=self.raised_from, raised_from=None)

    def at_least(self, relative: float) -> Floor:
        """The floor, raised if it is lower than what can be told."""
        if relative <= self.relative:
            return self
        return replace(self, relative=relative, raised_from=self.asked.relative)

    def step(self, base_ns: float) -> float:
        """The floor for a case that takes ``base_ns``, as a difference of logarithms.

        The larger of the two floors: a slowdown of that size exceeds both.
        """
        share = self.absolute_ns / base_ns if base_ns > 0 else math.inf
        return math.log1p(max(self.relative, share))


Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]

DEFAULT = (Floor(),)
"""5 %, and 5 ns so that a view of 50 ns is not judged by the resolution of its loop."""


@dataclass(frozen=True)
class FloorRule:
    """A floor for some cases: those whose code, path or pair matches the glob ``case``.

    What is None is as for all other cases. Without ``times`` none of theirs is judged.
    """

    case: str
    measure: str = "ready"
    relative: Amount | None = None
    absolute_ns: Amount | None = None
    times: bool = True

    def matches(self, case: CaseRecord) -> bool:
        names = (case.code, case.path, f"{case.producer}->{case.consumer}")
        return any(fnmatchcase(name, self.case) for name in names)

    def over(self, floor: Floor) -> Floor:
        """The floor that results where ``floor`` is that of all cases."""
        found = floor
        if self.relative is not None:
            found = replace(found, relative=self.relative)
        if self.absolute_ns is not None:
            found = replace(found, absolute_ns=self.absolute_ns)
        return found


def rules_from(written: object) -> tuple[FloorRule, ...]:
    """The rules that a session file holds; none where they make no sense."""
    try:
        return TypeAdapter(tuple[FloorRule, ...]).validate_python(written or ())
    except ValidationError:
        return ()


def idle(rules: Sequence[FloorRule], cases: Iterable[CaseRecord]) -> list[str]:
    """The globs of the rules that name none of the cases."""
    records = list(cases)
    return [rule.case for rule in rules if not any(rule.matches(case) for case in records)]
