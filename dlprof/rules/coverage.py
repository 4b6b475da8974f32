"""Whether a rule could look: what it needs that no result has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dlprof.probes.base import Protocol
from dlprof.rules import NEEDS, Rule
from dlprof.session.model import Result, Verdict

NO_CONVERSION = "a conversion: rules say nothing of steps"


def lack(rule: Rule, results: Sequence[Result]) -> str:
    """What a rule would need that no result has, in words; empty where it could look."""
    conversions = [result for result in results if result.case.protocol != Protocol.STEP]
    if results and not conversions:
        return NO_CONVERSION
    if rule.needs and rule.needs not in instruments_of(conversions):
        return f"{rule.needs.replace('_', ' ')} (see --diagnose)"
    return rule.lacks(conversions)


def instruments_of(results: Iterable[Result]) -> frozenset[str]:
    """The instruments of the diagnosis that rules need, and that could tell of one result."""
    wanted = set(NEEDS.values())
    found: set[str] = set()
    for result in results:
        found |= {name for name in wanted - found if has_looked(getattr(result, name))}
        if found == wanted:
            break
    return frozenset(found)


def has_looked(verdict: Verdict[Any] | None) -> bool:
    """Whether it could tell; ``moot`` is what has nothing to look at, such as copies of a view."""
    if verdict is None:
        return False
    return verdict.is_known
