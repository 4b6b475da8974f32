"""Findings in words: codes, times, and what to write instead."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dlprof.axes import shape_text
from dlprof.quantity import plain_time, ratio_text
from dlprof.rules.known import Known

MOST_NAMED = 3
LONGEST_CODE = 160
ALIKE = 1.1
"""Times of a smaller ratio are not compared in words."""


def codes(cases: Sequence[Known]) -> str:
    """The code of the paths, at most three, and how many more there are."""
    found = list(dict.fromkeys(code(case) for case in cases))
    more = len(found) - MOST_NAMED
    return ", ".join(found[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def code(case: Known) -> str:
    return case.code if len(case.code) <= LONGEST_CODE else f"{case.code[: LONGEST_CODE - 1]}…"


def several(cases: Sequence[Known], one: str, many: str) -> str:
    """``one`` for one path, ``many`` for several."""
    return one if len({case.code for case in cases}) == 1 else many


def where(case: Known, cases: Sequence[Known]) -> str:
    """Which array a number is of, where the cases are of several: `` for 4x4 float32``."""
    if len({other.spec for other in cases}) == 1:
        return ""
    shape, dtype, layout, _ = case.spec
    return f" for {shape_text(shape)} {dtype} {layout}"


def time(case: Known) -> str:
    return plain_time(case.cost_ns)


def instead_of(case: Known, other: Known, what: str) -> str:
    """``f(x) is a view: 74 us instead of 400 us, 5.4 times as fast.``"""
    found = f"{code(other)} {what}"
    if not (math.isfinite(case.cost_ns) and math.isfinite(other.cost_ns)):
        return f"{found}."
    return f"{found}: {time(other)} instead of {time(case)}{_ratio(case.cost_ns, other.cost_ns)}."


def _ratio(before_ns: float, after_ns: float) -> str:
    if min(before_ns, after_ns) <= 0 or ALIKE > before_ns / after_ns > 1 / ALIKE:
        return ""
    if before_ns >= after_ns:
        return f", {ratio_text(before_ns / after_ns)} times as fast"
    return f", {ratio_text(after_ns / before_ns)} times as long"


def ratio(longer: Known, shorter: Known) -> str:
    return ratio_text(longer.cost_ns / shorter.cost_ns)
