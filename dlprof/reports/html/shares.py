"""What the parts of one call take: export, import, release, waiting, and what is not known.

Parts that contradict the time until the values are there are told apart from those that do not.
"""

from __future__ import annotations

from dlprof.reports.html.entry import Entry
from dlprof.session.model import Phases

PARTS = ("export", "import", "release", "waiting")
UNKNOWN = "unknown"
UNREPEATED = 2.0
TOLD_APART = 1.05
"""A smaller ratio of times is no difference, as in the answer."""
DIFFERENT = 1.5
"""A sum so many times longer or shorter than the ready time is told to be another."""


def differs(entry: Entry) -> bool:
    """Whether the sum of the phases is not the time that is reported, by a good deal."""
    total, ready = sum(parts(entry).values()), entry.row.ready
    modes = [mode.median_ns for mode in ready.modes] if ready is not None else []
    low, high = min(modes or [entry.row.cost_ns]), max(modes or [entry.row.cost_ns])
    return total > DIFFERENT * high or DIFFERENT * total < low


def parts(entry: Entry) -> dict[str, float]:
    """Ns of each part; a part that cannot be told from nothing is 0.

    Where a phase was not timed there is one part more, ``unknown``: the rest of the call's time.
    Nothing where no part is known, or where the known ones leave no time for the others.
    """
    phases = entry.result.phases
    if phases is None or not entry.measured:
        return {}
    floor = phases.resolution_ns or 0.0
    timed = {name: _told(ns, floor) for name, ns in _phases(phases).items()}
    found = {**timed, "waiting": _told(waiting_ns(entry), floor)}
    if None not in _phases(phases).values():
        return found
    rest = _call_ns(entry) - sum(timed.values())
    return {UNKNOWN: rest, **found} if rest > 0 and sum(timed.values()) > 0 else {}


def _phases(phases: Phases) -> dict[str, float | None]:
    return {
        "export": phases.export_ns,
        "import": phases.import_ns,
        "release": phases.release_ns,
    }


def _told(ns: float | None, floor: float) -> float:
    return ns if ns is not None and ns > floor else 0.0


def _call_ns(entry: Entry) -> float:
    """The caller's own time, in which its result is dropped too; else the time until ready."""
    host = entry.result.host_time
    return host.median_ns if host is not None else entry.row.cost_ns


def waiting_ns(entry: Entry) -> float | None:
    """From the return of the call until the values are there; None where nothing is waited for.

    Both were timed in loops of their own: a difference within their intervals is 0. Without an
    interval twice the time is asked for, as in the answer.
    """
    ready, host = entry.result.ready_time, entry.result.host_time
    if ready is None or host is None or ready.same_as is not None or ready.modes or host.modes:
        return None  # modes of the one are not those of the other
    if ready.ci95_ns is None or host.ci95_ns is None:
        told = ready.median_ns > UNREPEATED * host.median_ns
    else:
        told = ready.ci95_ns[0] > host.ci95_ns[1]
    return ready.median_ns - host.median_ns if told else 0.0


def outlasts(entry: Entry) -> bool:
    """Whether the call takes longer than the call and the wait for its values, which cannot be.

    Both were timed in loops of their own. Where both have an interval, these do not touch.
    """
    ready, host = entry.result.ready_time, entry.result.host_time
    if ready is None or host is None or ready.same_as is not None:
        return False
    if host.modes_ns[0] <= TOLD_APART * ready.modes_ns[1]:
        return False
    return ready.ci95_ns is None or host.ci95_ns is None or host.ci95_ns[0] > ready.ci95_ns[1]
