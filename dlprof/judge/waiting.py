"""Rules on waiting, ordering and results that come late."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from dlprof.errors import NoReproducer
from dlprof.judge import thresholds
from dlprof.judge.case_view import WAITS, CaseView, is_known, longer_by_itself
from dlprof.judge.cases import Cases
from dlprof.judge.evidence_text import trace
from dlprof.judge.rule import EXPORT, NONE_INSTEAD, Rule, code, finding, replacement_text, time
from dlprof.judge.safety import Fault
from dlprof.judge.script import HYSTERESIS, Effect, Subject, shows
from dlprof.probes.base import PINNED
from dlprof.runner.quantity import plain_time
from dlprof.runner.session import FindingRecord
from dlprof.text.source import inside, plain

ORDERED = (
    "The producer makes its work safe to use on the consumer's stream, without a wait on the host"
    f" if it can order streams ({EXPORT}, `stream`)."
)
WAITS_FOR = {"host-sync": "the work queued on x", "device-sync": "other work of the device"}
MOVED = {"own streams": "xy", "the producer's own stream": "x", "the consumer's own stream": "y"}
"""The sides that a setting of streams puts on a stream of their own."""
SIDE_STREAM_WORK = "work on x that is queued on a non-blocking stream"
RACE = ("ordering", "unordered")

QUEUE = """
<create>

<queue_setup>
def queued(work):
    <enqueue>

def convert(x):
    return <code>

def seconds(x):
    begin = perf_counter()
    convert(x)
    return perf_counter() - begin

convert(queued(1))  # the first use may compile
work, queue, end = 1, 0, perf_counter() + 60
while queue < 0.05 and perf_counter() < end:
    work *= 2
    q = queued(work)
    begin = perf_counter()
    <wait of q>
    queue = perf_counter() - begin  # what was left when all was queued
    <behind>
assert queue >= 0.05, "no work could be queued"
<verdict>
"""
WAITED = """
assert left > queue / 2, "the queue was empty before the call"
idle = seconds(<array>)
print(f"queue: {queue:.3f} s; conversion: {idle:.6f} s idle, {behind:.6f} s behind it")
return behind > idle + queue / 2
"""
BEHIND_QUEUE = """
q = queued(work)
begin = perf_counter()
behind = seconds(q)
<wait of q>
left = perf_counter() - begin
"""
BEHIND_OTHER_STREAM = """
other = <own_stream of x>
with other:
    q = queued(work)
begin = perf_counter()
behind = seconds(x)
with other:
    <wait of q>
left = perf_counter() - begin
"""


def show_host_sync(subject: Subject) -> Effect:
    body = _queue(subject, subject.filled(BEHIND_QUEUE), subject.filled(WAITED, array="q"))
    return Effect("waits for the work that is queued on x", _on_streams(subject, body), subject)


def show_device_sync(subject: Subject) -> Effect:
    behind = subject.filled(BEHIND_OTHER_STREAM)
    body = _queue(subject, behind, subject.filled(WAITED, array="x"))
    return Effect("waits for work that has nothing to do with x", body, subject)


def _queue(subject: Subject, behind: str, verdict: str) -> str:
    texts = subject.recipe.queue
    if "enqueue" not in texts:
        raise NoReproducer("the session does not say how work is queued")
    *lines, last = plain(texts["enqueue"]).splitlines()
    end = [f"return {last.removeprefix('y = ')}"] if last.startswith("y = ") else [last, "return y"]
    return subject.filled(
        QUEUE,
        queue_setup=plain(texts.get("setup", "")),
        enqueue="\n".join((*lines, *end)),
        behind=behind,
        verdict=verdict,
    )


def _on_streams(subject: Subject, body: str) -> str:
    """Return the body with each framework on its own stream, if it was found so."""
    moved = MOVED.get(str(subject.finding.evidence.get("streams")), "")
    if not moved:
        return body
    sides = [name for name in moved if subject.has("own_stream", name)] or ["x"]
    streams = [subject.idiom("own_stream", name) for name in sides]
    return f"with {', '.join(dict.fromkeys(streams))}:\n{inside(body)}"


@partial(
    Rule,
    "DLP001",
    "host-sync",
    {
        "warning": "where another measured path gives the same and does not wait, or on the device",
        "info": "",
    },
    "The call returns without waiting for the work on `x`. A result on the host has to wait.",
    show_host_sync,
    source=ORDERED,
    instrument="ordering",
    changes=("host-sync",),
    other_arrays=True,
)
def host_sync(cases: Cases) -> Iterator[FindingRecord]:
    """The call returns only when the work queued on its source is done.

    A warning if another path of the pair gives the same and does not wait, and if the result stays
    on the device. A host array cannot be had before its values.
    """
    return _waits(cases, "host-sync", ("stream-ordered",))


@partial(
    Rule,
    "DLP002",
    "device-sync",
    "warning",
    "The call waits at most for the work on `x`.",
    show_device_sync,
    source=ORDERED,
    instrument="ordering",
    changes=("device-sync",),
    other_arrays=True,
)
def device_sync(cases: Cases) -> Iterator[FindingRecord]:
    """The call returns only when the whole device is done, also with unrelated work."""
    return _waits(cases, "device-sync", ("stream-ordered", "host-sync"))


def _waits(cases: Cases, order: str, better: tuple[str, ...]) -> Iterator[FindingRecord]:
    replacements = {
        case.index: _ordered_path(cases, case, better)
        for case in cases.cases
        if case.order == order
    }

    def is_warning(case: CaseView) -> bool:
        """Whether it could wait less, or waits for all and its values stay on the device."""
        stays = case.result.case.device == "cuda" and case.stays_on_device and not case.bounces
        is_costly = order == "device-sync" or (stays and case.waits_for_all)
        return bool(replacements[case.index]) or is_costly

    def cause(case: CaseView) -> tuple[str, ...]:
        if case.order != order:
            return ()
        return case.pair if is_warning(case) else case.pair[:1]

    for group in cases.groups(cause, _looks_cheap):
        worst, other = group[0], replacements[group[0].index]
        advice = f"{NONE_INSTEAD} Convert where you need the values anyway."
        if other is not None:
            is_free = other.order == "stream-ordered"
            does = "does not wait" if is_free else "waits for its source alone"
            advice = f"{code(other)} {does}."
        yield finding(
            group,
            ("waits", "wait"),
            f"for {WAITS_FOR[order]}",
            _cost(worst),
            evidence=_evidence(worst),
            more=trace(worst.result),
            advice=advice,
            against=other,
            severity="warning" if is_warning(worst) else "info",
        )


def _ordered_path(cases: Cases, case: CaseView, orders: tuple[str, ...]) -> CaseView | None:
    return cases.replacement(case, lambda other: other.order in orders and other.share is not None)


def _looks_cheap(case: CaseView) -> tuple[bool, float]:
    """Rank by idle time: the cheaper a conversion looks, the clearer its wait shows."""
    idle = _idle_ns(case)
    return case.share is not None, -(math.inf if idle is None else idle)


def _cost(case: CaseView) -> str:
    """Return ``2 us alone, 45 ms behind 45 ms of work``, or ``all of the queue``."""
    if case.loaded is None:
        return "all of the queue" if case.waits_for_all else ""
    behind = f"{plain_time(case.loaded[0])} behind {plain_time(case.loaded[1])} of work"
    idle = _idle_ns(case)
    return behind if idle is None else f"{plain_time(idle)} alone, {behind}"


def _idle_ns(case: CaseView) -> float | None:
    """Return the time without a queue, if the same array was converted behind one."""
    if case.result.ordering is not None and case.result.ordering.evidence.size_bytes:
        return None
    host = case.result.host_time
    return host.median_ns if host is not None and is_known(host) else None


def _evidence(case: CaseView) -> dict[str, object]:
    host_ns = case.loaded[0] if case.loaded else None
    ordering = case.result.ordering
    return {
        "cost_ns": None if host_ns is None else max(host_ns - (_idle_ns(case) or 0.0), 0.0),
        "streams": ordering.evidence.streams if ordering else None,
    }


READ_EARLY = """
q = queued(work)
begin = perf_counter()
expected = <values of q>
held = perf_counter() - begin
<spoil>
q = queued(work)
begin = perf_counter()
z = convert(q)
<wait of z>
ready = perf_counter() - begin
wrong = int((<values of z> != expected).sum())
<wait of q>
done = perf_counter() - begin
# what is wrong with an empty queue is no race, and the time to read the values is no queue
z = convert(q)
begin = perf_counter()
idle = int((<values of z> != expected).sum())
left = done - ready - (perf_counter() - begin)
"""
RACED = """
print(f"queue {queue:.3f} s, ready {ready:.6f} s, then {left:.3f} s of it left")
print(f"wrong {wrong}, when idle {idle}")
assert held > queue / 2, "the queued work does not hold up its own array"
assert wrong > idle or ready + left > queue / 2, "the queue was over too soon"
return wrong > idle or left > queue / 2
"""


def show_unordered(subject: Subject) -> Effect:
    """A race that also waits shows only by wrong values, and reused memory may hold the right ones.
    So the script first leaves wrong values in the memory of the next array.
    """
    spoil = ""
    if subject.finding.evidence.get("waits") and subject.writable:
        spoil = subject.filled("<write of q>\ndel q  # its memory is used again, with ones in it")
    body = _queue(subject, subject.filled(READ_EARLY, spoil=spoil), RACED.strip("\n"))
    does = "gives a result that can be read before the work on x is done"
    return Effect(does, _on_streams(subject, body), subject)


@partial(
    Rule,
    "DLP003",
    "unordered",
    "error",
    "The result has its final values whenever it is used.",
    show_unordered,
    source=ORDERED,
    instrument="ordering",
    fault=Fault(lambda case: case.is_unordered),
    changes=("unordered",),
    other_arrays=True,
)
def unordered(cases: Cases) -> Iterator[FindingRecord]:
    """The result is not ordered after the work queued on its source, and may lack its values.

    A call that also waits, too late, is a finding of its own with the cost of the wait.
    """
    for group in cases.groups(_race, lambda case: _read_wrong(case.with_verdict(*RACE)), RACE):
        worst = group[0].with_verdict(*RACE)
        # One wrong value proves the race. Without one the times do.
        observation = "wrong values were read"
        if not _read_wrong(worst):
            observation = "the result was ready long before that work was done"
        evidence, waits = _evidence(worst), ""
        if worst.waits_for:
            waits = f" The call still waits for {WAITS_FOR[worst.waits_for]}: {_cost(worst)}."
        yield finding(
            group,
            ("does not order", "do not order"),
            SIDE_STREAM_WORK if worst.is_ordered_by_default else "the work that is queued on x",
            evidence={
                **evidence,
                "cost_ns": evidence["cost_ns"] if waits else None,
                "waits": worst.waits_for,
            },
            brief="A reader can see wrong values.",
            more=f"Behind queued work, {observation}.{waits}{_settings(worst)}",
            advice=_ordered_advice(cases, group[0]),
            look=RACE,
        )


def _race(case: CaseView) -> tuple[object, ...]:
    raced = case.with_verdict(*RACE)
    return (case.pair, raced.waits_for, raced.is_ordered_by_default) if case.is_unordered else ()


def _settings(case: CaseView) -> str:
    """Return a sentence that says on which streams a case is ordered, if not on none."""
    runs = case.ordering_runs.items()
    ordered = [name for name, word in runs if word in ("stream-ordered", *WAITS)]
    racing = [name for name, word in runs if word == "unordered"]
    if not ordered or not racing:
        return ""
    sentences = f" Ordered on: {', '.join(ordered)}. Not ordered on: {', '.join(racing)}."
    return sentences.replace("default", "default streams")


def _read_wrong(case: CaseView) -> bool:
    ordering = case.result.ordering
    return ordering is not None and ordering.evidence.values_right is False


def _ordered_advice(cases: Cases, case: CaseView) -> str:
    other = _ordered_path(cases, case, ("stream-ordered", *WAITS))
    if other is None:
        return f"Wait for the work on the source before the call. {NONE_INSTEAD}"
    does = "orders the work" if other.order == "stream-ordered" else "waits for the work"
    advice = replacement_text(case, other, does)
    return f"{advice} Or: wait for the work on the source before the call."


EARLY = """
<create>
returned, ready = [], []
for _ in range(50):
    begin = perf_counter()
    y = <code>
    returned.append(perf_counter() - begin)
    <wait of y>
    ready.append(perf_counter() - begin)
call, done = median(returned[5:]), median(ready[5:])
print(f"the call returned after {call * 1e6:.1f} us")
print(f"its result was there after {done * 1e6:.1f} us")
return done > 2 * call and done - call > <gap_s>
"""


@partial(
    Rule,
    "DLP019",
    "early-return",
    "info",
    "A framework that queues its work may return early. The time of the call is not its cost.",
    shows(
        "returns before its result is there",
        EARLY,
        gap_s=f"{thresholds.EARLY_GAP_NS / HYSTERESIS / 1e9:g}",
    ),
    times=True,
)
def early_return(cases: Cases) -> Iterator[FindingRecord]:
    """The result is ready long after the call returned: timing the call alone is misleading."""

    def is_early(case: CaseView) -> bool:
        ready, gap_ns = case.ready, thresholds.EARLY_GAP_NS
        if ready is None or ready.same_as is not None:
            return False
        return longer_by_itself(ready, case.result.host_time, thresholds.EARLY_RATIO, gap_ns)

    for group in cases.groups(
        lambda case: is_early(case) and case.pair, lambda case: case.cost_ns - _host_ns(case)
    ):
        host_ns = _host_ns(group[0])
        yield finding(
            group,
            ("returns", "return"),
            "before the result is there",
            f"{plain_time(host_ns)} for the call, {time(group[0])} until ready",
            advice="Wait for the result when you time it.",
        )


def _host_ns(case: CaseView) -> float:
    return case.result.host_time.median_ns if case.result.host_time is not None else 0.0


NON_BLOCKING = "non_blocking=True"
BLOCKED = """
import torch
<create>
y = <code>  # the first call may load code
torch.cuda.synchronize()
torch.cuda._sleep(500_000_000)  # work that has nothing to do with x
begin = perf_counter()
y = <code>
call = perf_counter() - begin
torch.cuda.synchronize()
done = perf_counter() - begin
print(f"the call returned after {call:.6f} s, and the other work was done after {done:.6f} s")
return done > 0.05 and call > done / 2
"""


@partial(
    Rule,
    "DLP034",
    "blocked-copy",
    "warning",
    f"With `{NON_BLOCKING}`, the call returns while earlier work of the stream goes on.",
    shows(f"waits for other work despite {NON_BLOCKING}", BLOCKED),
    instrument="ordering",
)
def blocked_copy(cases: Cases) -> Iterator[FindingRecord]:
    """A copy to the device waits for earlier work of its stream, although the code forbids it."""

    def is_blocked(case: CaseView) -> bool:
        ordering = case.result.ordering
        waits = ordering is not None and ordering.evidence.upload_waits is True
        return waits and NON_BLOCKING in case.code

    for group in cases.groups(lambda case: is_blocked(case) and case.pair):
        pinned = "Keep the source in page-locked memory from the start."
        yield finding(
            group,
            ("waits", "wait"),
            f"for earlier work of the stream despite {NON_BLOCKING}",
            advice="" if group[0].result.case.layout == PINNED else pinned,
        )
