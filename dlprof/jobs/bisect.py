"""Search for the release of a package that changed a path, between a good and a bad one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dlprof.compare.comparison import compare
from dlprof.compare.environments import version_key
from dlprof.compare.times import FASTER, SLOWER
from dlprof.compare.verdicts import LOST, Criteria
from dlprof.errors import Unsure, UsageError
from dlprof.runner.catalog import ProbeInfo
from dlprof.runner.session import Session


@dataclass(frozen=True)
class Tried:
    """A release with its session, or the ``reason`` for none.

    ``is_good`` is None for a release that could not be measured.
    """

    version: str
    session: Session | None
    reason: str = ""
    is_good: bool | None = None


def release_range(releases: Sequence[str], good: str, bad: str) -> list[str]:
    """Return the releases from ``good`` to ``bad``, which may be the older one.

    Raises :class:`UsageError` if one of them is not among the releases.
    """
    order = sorted({*releases}, key=version_key)
    for version in (good, bad):
        if version not in order:
            raise UsageError(f"there is no release {version}; the newest is {order[-1]}")
    begin, end = order.index(good), order.index(bad)
    return order[begin : end + 1] if begin <= end else order[end : begin + 1][::-1]


def bisect(versions: Sequence[str], measure: Callable[[str], Tried]) -> list[Tried]:
    """Measure releases until a good one is next to a bad one; return them in order.

    The first of ``versions`` is good and the last is bad. A release that cannot be measured is
    passed over. Raises :class:`Unsure` if good and bad do not differ, or cannot be measured.
    """
    low, high = 0, len(versions) - 1
    ends = measure(versions[low]), measure(versions[high])
    for trial in ends:
        if trial.session is None:
            raise Unsure(f"{trial.version} cannot be measured: {trial.reason}")
    good, bad = (trial.session for trial in ends)
    if good is None or bad is None or not differ(good, bad):
        raise Unsure(f"{versions[low]} and {versions[high]} give the same")
    known = {low: replace(ends[0], is_good=True), high: replace(ends[1], is_good=False)}
    while untried := [index for index in range(low + 1, high) if index not in known]:
        index = min(untried, key=lambda position: abs(2 * position - low - high))
        found = measure(versions[index])
        is_good = None if found.session is None else not differ(good, found.session)
        known[index] = replace(found, is_good=is_good)
        low, high = (index, high) if is_good else (low, index) if is_good is False else (low, high)
    return [known[index] for index in sorted(known)]


def differ(base: Session, head: Session) -> bool:
    """Whether a verdict changed, or a time by more than two sessions of equal code differ."""
    cases = compare(base, head, Criteria()).cases
    return any(
        case.word in (SLOWER, FASTER) or any(change.direction != LOST for change in case.changes)
        for case in cases
    )


def requirements(ends: Sequence[ProbeInfo], package: str) -> list[str]:
    """Return the frameworks of a path in the versions installed here, without the package."""
    found = {}
    for end in ends:
        name, version = end.distribution or end.requirement, (end.version or "").partition("+")[0]
        found[name] = f"{name}=={version}" if version else end.requirement
    found.pop(package, None)
    return list(found.values())
