"""Does it wait, and for what? Rules on ordering and on results that come late."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dlprof.analysis import thresholds
from dlprof.analysis.case_view import WAITS, CaseView
from dlprof.analysis.cases import Cases, by, groups
from dlprof.analysis.quantity import plain_time
from dlprof.analysis.slower import clearly_longer, is_known
from dlprof.rules import observations, traced, words
from dlprof.rules.rule import Claim, Rule
from dlprof.session.evidence import Fit
from dlprof.text.lists import listed

WAITED = {
    "host-sync": "the work that is queued on its source",
    "device-sync": "all work of the device, also for work that has nothing to do with it",
}
"""What a call waits for, in words."""


def host_sync(survey: Cases) -> Iterator[Claim]:
    """The call returns only when the work queued on its source is done.

    A warning where another path of the pair gives the same and does not wait. Where none does,
    the wait may be what the conversion is: a host array cannot be had before its values.
    """
    waiting = [case for case in survey.cases if case.order == "host-sync"]
    others = {case.index: _unwaiting(survey, case, ("stream-ordered",)) for case in waiting}
    avoidable = [case for case in waiting if others[case.index]]
    for cases in groups(avoidable, lambda case: case.pair):
        yield _wait(cases, WAITED["host-sync"], others)
    rest = [case for case in waiting if not others[case.index]]
    for cases in groups(rest, lambda case: case.pair[0]):
        yield _unavoidable(survey, cases)


def device_sync(survey: Cases) -> Iterator[Claim]:
    """The call returns only when the whole device is done, also with what does not concern it."""
    waiting = [case for case in survey.cases if case.order == "device-sync"]
    others = {
        case.index: _unwaiting(survey, case, ("stream-ordered", "host-sync")) for case in waiting
    }
    for cases in groups(waiting, lambda case: case.pair):
        yield _wait(cases, WAITED["device-sync"], others)


def _unwaiting(survey: Cases, case: CaseView, orders: Sequence[str]) -> CaseView | None:
    return survey.instead(case, lambda other: other.order in orders and other.loaded is not None)


def _wait(cases: Sequence[CaseView], what: str, others: dict[int, CaseView | None]) -> Claim:
    ranked = sorted(cases, key=_by_idle)
    worst = ranked[0]
    advice = {
        other.code: f"{words.code(other)} {_unwaiting_text(other)}"
        for other in (others[case.index] for case in ranked)
        if other is not None
    }
    return Claim(
        "warning",
        ranked,
        f"{words.codes(ranked)} {words.several(ranked, 'waits', 'wait')} for {what}{_cost(ranked)}"
        f"{traced.seen(worst.result)}",
        _evidence(worst),
        "; ".join(list(advice.values())[:2]) + "." if advice else "",
        against=others[worst.index],
    )


def _unwaiting_text(other: CaseView) -> str:
    does = "does not wait" if other.order == "stream-ordered" else "waits for its source alone"
    loaded = other.loaded
    if loaded is None:
        return does
    return f"{does}: {plain_time(loaded[0])} behind {plain_time(loaded[1])} of queued work"


def _unavoidable(survey: Cases, cases: Sequence[CaseView]) -> Claim:
    ranked = sorted(cases, key=_by_idle)
    producer = ranked[0].pair[0]
    consumers = list(dict.fromkeys(case.pair[1] for case in ranked))
    pairs = f"from {producer} to {listed(consumers)}"
    known = [case for case in survey.cases if case.pair in {one.pair for one in ranked}]
    all_wait = all(case.waits for case in known if case.ready is not None)
    which = (
        f"every measured path {pairs} waits"
        if all_wait
        else f"{words.codes(ranked)} {words.several(ranked, 'waits', 'wait')}"
    )
    rest = (
        ""
        if all_wait
        else "; no measured path that is safe and gives the same is known not to wait"
    )
    return Claim(
        "info",
        ranked,
        f"{which} for the work that is queued on its source{_cost(ranked)}"
        f"{traced.seen(ranked[0].result)}{rest}",
        _evidence(ranked[0]),
        "Convert where the values are needed anyway, or once for several uses.",
    )


def _cost(cases: Sequence[CaseView]) -> str:
    """``: 2 us of conversion idle, 45 ms behind 45 ms of queued work``, of the first."""
    if cases[0].loaded is None:
        return ""
    host_ns, queued_ns = cases[0].loaded
    idle = _idle_ns(cases[0])
    first = "" if idle is None else f"{plain_time(idle)} of conversion idle, "
    text = f"{first}{plain_time(host_ns)} behind {plain_time(queued_ns)} of queued work"
    slope = f" (slope {fitted})" if (fitted := _slope(cases[0])) else ""
    return f"{words.of_first(cases)}: {text}{slope}"


def _slope(case: CaseView) -> str:
    """``1.00, 0.99 to 1.01``: the call's time over the queue's, and its interval."""
    fit = _fit(case)
    if fit.slope is None or fit.interval is None:
        return ""
    return f"{fit.slope:.2f}, {fit.interval[0]:.2f} to {fit.interval[1]:.2f}"


def _fit(case: CaseView) -> Fit:
    return (case.result.ordering.evidence.host if case.result.ordering else None) or Fit()


def _idle_ns(case: CaseView) -> float | None:
    host = case.result.host_time
    return host.median_ns if host is not None and is_known(host) else None


def _by_idle(case: CaseView) -> tuple[bool, float]:
    """The cheaper a conversion looks, the clearer it shows what it waits for."""
    idle = _idle_ns(case)
    return case.loaded is None, math.inf if idle is None else idle


def _evidence(case: CaseView) -> dict[str, object]:
    host_ns, queued_ns = case.loaded or (None, None)
    idle = _idle_ns(case)
    cost = None if host_ns is None else max(host_ns - (idle or 0.0), 0.0)
    intercept = _fit(case).intercept_ns
    slope = _slope(case)
    if slope and intercept is not None:
        slope += f"; intercept {plain_time(intercept)}"
    streams = case.result.ordering.evidence.streams if case.result.ordering else None
    return {
        "cost_ns": cost,
        "idle_ns": idle,
        "loaded_ns": host_ns,
        "queued_ns": queued_ns,
        "slope": slope or None,
        "streams": streams,
    }


def unordered(survey: Cases) -> Iterator[Claim]:
    """The result is not ordered after the work queued on its source: it can be without its values.

    The call may wait for that work besides, and too late: such calls are a finding of their own,
    which has the cost of the wait too.
    """
    racing = [case for case in survey.cases if case.order == "unordered"]
    for cases in groups(racing, lambda case: (case.pair, case.waits)):
        # One wrong value proves the race; without one the times do.
        ranked = sorted(cases, key=lambda case: not _read_wrong(case))
        worst = ranked[0]
        yield Claim(
            "error",
            ranked,
            f"{words.codes(ranked)} {words.several(ranked, 'orders', 'order')} nothing"
            f"{words.shared(ranked, _proof)}{_and_waits(ranked)}",
            _race_evidence(worst),
            _ordered_advice(survey, worst),
        )


def _and_waits(ranked: Sequence[CaseView]) -> str:
    waited = ranked[0].waits
    if waited is None:
        return ""
    does = words.several(ranked, "the call waits", "the calls wait")
    return f"; all the same {does} for {WAITED[waited]}{_cost(ranked)}"


def _race_evidence(case: CaseView) -> dict[str, object]:
    found = {**_evidence(case), "wrong_values": _read_wrong(case)}
    return {**found, "waits": case.waits} if case.waits else {**found, "cost_ns": None}


def _proof(case: CaseView) -> str:
    if _read_wrong(case):
        return "behind queued work wrong values were read"
    return "behind queued work the result was ready long before the work was done"


def _read_wrong(case: CaseView) -> bool:
    ordering = case.result.ordering
    return ordering is not None and ordering.evidence.values_right is False


def _ordered_advice(survey: Cases, case: CaseView) -> str:
    other = _unwaiting(survey, case, ("stream-ordered", *WAITS))
    wait = "Wait for the work on the source before the call"
    if other is None:
        orders = ("stream-ordered", *WAITS)
        there = any(one.order in orders for one in survey.arrays[case.array])
        which = " that is safe and gives the same" if there else ""
        return f"{wait}; no measured path{which} orders it."
    does = "orders the work" if other.order == "stream-ordered" else "waits for the work"
    return f"{words.instead_of(case, other, does)} Or: {wait[0].lower()}{wait[1:]}."


def early_return(survey: Cases) -> Iterator[Claim]:
    """The result is ready long after the call returned: timing the call alone is misleading."""
    early = [case for case in survey.cases if _is_early(case)]
    for cases in by(early, lambda case: case.pair).values():
        ranked = sorted(cases, key=lambda case: (_is_told(case), _lateness_ns(case)), reverse=True)
        times, evidence = _times(ranked)
        yield Claim(
            "info",
            ranked,
            f"{words.codes(ranked)} {words.several(ranked, 'returns', 'return')} before the result"
            f" is there{times}",
            evidence,
            "Wait for the result when you time it.",
        )


def _is_early(case: CaseView) -> bool:
    if case.ready is None or case.ready.same_as is not None:
        return False
    host = case.result.host_time
    if not clearly_longer(case.ready, host, thresholds.EARLY_RATIO, thresholds.EARLY_GAP_NS):
        return False
    # What other programs took of the waits is no lateness: then the fastest must be late as well.
    fastest = 0.0 if host is None else thresholds.EARLY_RATIO * host.median_ns
    return is_known(case.ready) or case.ready.min_ns >= fastest


def _is_told(case: CaseView) -> bool:
    return is_known(case.result.host_time) and is_known(case.ready)


def _times(cases: Sequence[CaseView]) -> tuple[str, dict[str, object]]:
    """Both times of the first, in words and as evidence; nothing where one is not known."""
    host, ready = cases[0].result.host_time, cases[0].ready
    if host is None or ready is None or not _is_told(cases[0]):
        return "", {}
    text = (
        f"{words.of_first(cases)}: {words.time_text(host)} until the call returns,"
        f" {words.time_text(ready)} until the values are there"
    )
    return text, {"host_ns": host.median_ns, "ready_ns": ready.median_ns}


def _lateness_ns(case: CaseView) -> float:
    host = case.result.host_time
    return case.cost_ns - host.median_ns if host else 0.0


RULES = (
    Rule("DLP001", "host-sync", host_sync, needs="ordering", seen=observations.ordering),
    Rule("DLP002", "device-sync", device_sync, needs="ordering", seen=observations.ordering),
    Rule("DLP003", "unordered", unordered, needs="ordering", seen=observations.ordering),
    Rule("DLP019", "early-return", early_return),
)
