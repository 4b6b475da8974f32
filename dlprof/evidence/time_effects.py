"""Effects that show in time: what a call costs beside another, and what it waits for."""

from __future__ import annotations

from dlprof.analysis import thresholds
from dlprof.errors import NoReproducer
from dlprof.evidence.result_effects import compared
from dlprof.evidence.source import inside, plain
from dlprof.evidence.subject import Effect, Subject
from dlprof.session.model import FindingRecord

TIMED = """
def timed(function):
    calls, _ = Timer(function).autorange()
    return min(Timer(function).repeat(5, calls)) / calls * 1e6
"""
HYSTERESIS = 2
"""A time that a rule calls longer from so many times on is gone only below half of that."""


def _function(name: str, subject: Subject) -> str:
    """A function that converts ``x``, waits for the result and returns it."""
    if not subject.said("wait", "y"):
        return f"def {name}():\n    return {subject.code}\n"
    return subject.filled("def <name>():\n    <convert of y>\n    return y\n", name=name)


RACE = f"""{TIMED}
<create>

<slow>
<fast>
times = timed(slow), timed(fast)
print("slow: %.2f us, fast: %.2f us" % times)
return times[0] > <ratio> * times[1] + <gap_us>
"""


def slow_path(subject: Subject, other: Subject | None, _: FindingRecord) -> Effect:
    """Another expression gives the same and is faster."""
    fast = compared(other)
    symptom = f"{subject.code} takes clearly longer than {fast.code}"
    return Effect(symptom, _race(subject, fast), subject)


def _race(subject: Subject, fast: Subject) -> str:
    return subject.filled(
        RACE,
        create=subject.create_as_seen(),
        slow=_function("slow", subject),
        fast=_function("fast", fast),
        ratio=f"{thresholds.LEAST_RATIO:g}",
        gap_us=f"{thresholds.SLOW_GAP_NS / HYSTERESIS / 1e3:g}",
    )


TO_HOST = f"""{TIMED}
<create>

<convert>
times = timed(convert), timed(lambda: <values of x>)
print("the conversion takes %.1f us, a copy of x to the host %.1f us" % times)
return times[0] > 0.8 * times[1]
"""


def host_bounce(subject: Subject, other: Subject | None, _: FindingRecord) -> Effect:
    """It goes through the host: another path is faster, or it costs as much as going there."""
    if other is not None:
        body = _race(subject, other)
    else:
        create, convert = subject.create_as_seen(), _function("convert", subject)
        body = subject.filled(TO_HOST, create=create, convert=convert)
    return Effect(f"{subject.code} goes through the host", body, subject)


BOTH_WAYS = f"""{TIMED}
<create>

<there>
there_us = timed(there)
<create_back>

<back>
back_us = timed(back)
print(f"there: {{there_us:.2f}} us, back: {{back_us:.2f}} us")
return there_us > <ratio> * back_us and there_us - back_us > <gap_us>
"""


def asymmetric(subject: Subject, other: Subject | None, _: FindingRecord) -> Effect:
    """One direction costs many times the other."""
    back = compared(other)
    body = subject.filled(
        BOTH_WAYS,
        create=subject.create_as_seen(),
        there=_function("there", subject),
        create_back=back.create_as_seen(),
        back=_function("back", back),
        ratio=f"{thresholds.ASYMMETRIC_RATIO / HYSTERESIS:g}",
        gap_us=f"{thresholds.ASYMMETRIC_GAP_NS / HYSTERESIS / 1e3:g}",
    )
    there = f"{subject.result.case.producer} to {subject.result.case.consumer}"
    symptom = f"from {there}, {subject.code} takes many times as long as {back.code} back"
    return Effect(symptom, body, subject)


LOOP = """
<create>

<convert>
def convert_inside():
    y = convert()
    z = <use of y>
    <wait of z>

y = convert()

def convert_before():
    z = <use of y>
    <wait of z>

# in turns: what slows the machine for a while slows both
calls = max(Timer(convert_inside).autorange()[0] // 5, 1)
both = convert_inside, convert_before
turns = [[Timer(one).timeit(calls) for one in both] for _ in range(25)]
times = tuple(min(found) / calls * 1e6 for found in zip(*turns))
print("one turn: %.2f us with the conversion inside, %.2f us with it before" % times)
part = times[0] - times[1]
return part > <share> * times[0] and part > <gap_us>
"""


def in_loop(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """A loop with the conversion inside takes longer than one with the conversion before it."""
    body = subject.filled(
        LOOP,
        create=subject.create_as_seen(),
        convert=_function("convert", subject),
        share=f"{thresholds.LOOP_SHARE / HYSTERESIS:g}",
        gap_us=f"{thresholds.LOOP_GAP_NS / HYSTERESIS / 1e3:g}",
    )
    return Effect(f"{subject.code} takes a good part of a loop", body, subject)


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


def early_return(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """The result is there long after the call returned."""
    gap_s = f"{thresholds.EARLY_GAP_NS / HYSTERESIS / 1e9:g}"
    body = subject.filled(EARLY, create=subject.create_as_seen(), gap_s=gap_s)
    return Effect(f"{subject.code} returns before its result is there", body, subject)


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
idle = seconds(<array>)
print(f"queue: {queue:.3f} s; conversion: {idle:.6f} s idle, {behind:.6f} s behind it")
return behind > idle + queue / 2
"""
BEHIND_QUEUE = """
q = queued(work)
behind = seconds(q)
<wait of q>
"""


def host_sync(subject: Subject, _: Subject | None, finding: FindingRecord) -> Effect:
    """The call returns only when the work queued on its source is done."""
    body = _queue(subject, subject.filled(BEHIND_QUEUE), subject.filled(WAITED, array="q"))
    symptom = f"{subject.code} waits for the work that is queued on x"
    return Effect(symptom, _on_streams(subject, finding, body), subject)


BEHIND_OTHER_STREAM = """
other = <own_stream of x>
with other:
    q = queued(work)
behind = seconds(x)
with other:
    <wait of q>
"""
BEHIND_OTHER_QUEUE = """
duration_ns = int(queue * 1e9)
<unrelated>
behind = seconds(x)
z.wait()
"""


def device_sync(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """The call waits also for work that has nothing to do with its source."""
    text = subject.recipe.queue.get("unrelated")
    behind = BEHIND_OTHER_STREAM if text is None else BEHIND_OTHER_QUEUE
    behind = subject.filled(behind, unrelated=plain(text or ""))
    body = _queue(subject, behind, subject.filled(WAITED, array="x"))
    return Effect(f"{subject.code} waits for work that has nothing to do with x", body, subject)


READ_EARLY = """
expected = <values of q>
<spoil>
q = queued(work)
begin = perf_counter()
z = convert(q)
<wait of z>
ready = perf_counter() - begin
wrong = int((<values of z> != expected).sum())
<wait of q>
# what is wrong with an empty queue is no race
z = convert(q)
idle = int((<values of z> != expected).sum())
"""
RACED = """
print(f"queue {queue:.3f} s, ready {ready:.6f} s, wrong {wrong}, when idle {idle}")
return wrong > idle or ready < queue / 2
"""


def unordered(subject: Subject, _: Subject | None, finding: FindingRecord) -> Effect:
    """The result can be read before the work on its source is done.

    A race that waits besides shows by its values alone, and memory that is used again may hold the
    right ones. So wrong values are left in the memory that the next array is likely to get.
    """
    spoil = ""
    if finding.evidence.get("waits") and subject.writable:
        spoil = subject.filled("<write of q>\ndel q  # its memory is used again, with ones in it")
    body = _queue(subject, subject.filled(READ_EARLY, spoil=spoil), RACED.strip("\n"))
    symptom = f"{subject.code} gives a result that can be read before the work on x is done"
    return Effect(symptom, _on_streams(subject, finding, body), subject)


def _queue(subject: Subject, behind: str, verdict: str) -> str:
    """Source and conversion; then ``behind``, beside longer and longer queues of work."""
    texts = subject.recipe.queue
    if "enqueue" not in texts:
        raise NoReproducer("the session does not say how work is queued")
    *lines, last = plain(texts["enqueue"]).splitlines()
    end = [f"return {last.removeprefix('y = ')}"] if last.startswith("y = ") else [last, "return y"]
    return subject.filled(
        QUEUE,
        create=subject.create(),
        queue_setup=plain(texts.get("setup", "")),
        enqueue="\n".join((*lines, *end)),
        behind=behind,
        verdict=verdict,
    )


def _on_streams(subject: Subject, finding: FindingRecord, body: str) -> str:
    """The body with each framework on a stream of its own, if that is how it was found."""
    if finding.evidence.get("streams") != "own streams":
        return body
    sides = [name for name in "xy" if subject.has("own_stream", name)] or ["x"]
    streams = [subject.said("own_stream", name) for name in sides]
    return f"with {', '.join(dict.fromkeys(streams))}:\n{inside(body)}"
