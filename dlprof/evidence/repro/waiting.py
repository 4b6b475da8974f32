"""Does it wait: work is queued on the producer, and the conversion is timed behind it."""

from __future__ import annotations

from dlprof.errors import NoReproducer
from dlprof.evidence.repro.effect import Effect
from dlprof.evidence.repro.lines import block, inside, plain
from dlprof.evidence.repro.subject import Subject
from dlprof.rules import thresholds
from dlprof.session.model import FindingRecord

QUEUE_S = 0.05
"""Long beside what else may hold the host up. JAX lets no more than 32 calls wait in a queue."""
LIMIT_S = 60
"""Where work runs at once, or is too short, no amount of it makes a queue."""
CLOCK = ("from time import perf_counter",)
MEDIAN = "from statistics import median"

FUNCTIONS = {
    "convert": """\
def convert(x):
    return {code}
""",
    "seconds": """\
def seconds(x):
    begin = perf_counter()
    {code}
    return perf_counter() - begin
""",
}
"""What converts; ``{code}`` is the conversion."""


def host_sync(subject: Subject, _: Subject | None, finding: FindingRecord) -> Effect:
    """The call returns only when the work queued on its source is done."""
    behind = block("y = queued(work)", "behind = seconds(y)", subject.wait_for_source())
    body = block(_queue(subject, behind, "seconds"), "idle = seconds(y)", _TOLD, _WAITS)
    what = "waits for the work that is queued on x"
    return Effect(f"{subject.code} {what}", _on_streams(subject, finding, body), CLOCK)


def device_sync(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """The call waits also for work that has nothing to do with its source."""
    unrelated, finish = _unrelated(subject)
    behind = block(unrelated, "behind = seconds(x)", finish)
    body = block(_queue(subject, behind, "seconds"), "idle = seconds(x)", _TOLD, _WAITS)
    what = "waits for work that has nothing to do with x"
    return Effect(f"{subject.code} {what}", body, CLOCK)


_TOLD = 'print(f"queue: {queue:.3f} s; conversion: {idle:.6f} s idle, {behind:.6f} s behind it")'
_WAITS = "return behind > idle + queue / 2"


def unordered(subject: Subject, _: Subject | None, finding: FindingRecord) -> Effect:
    """The result can be read before the work on its source is done."""
    behind = block(
        f"expected = {subject.source('values', 'y')}",
        _spoilt(subject, finding),
        "y = queued(work)",
        "begin = perf_counter()",
        "z = convert(y)",
        subject.wait_for_result("z"),
        "ready = perf_counter() - begin",
        f"wrong = int(({subject.converted('values', 'z')} != expected).sum())",
        subject.wait_for_source(),
        f"always = int(({subject.converted('values', 'convert(y)')} != expected).sum())  # no race",
    )
    body = block(
        _queue(subject, behind, "convert"),
        'print(f"queue {queue:.3f} s, ready {ready:.6f} s, wrong {wrong}, idle {always}")',
        "return wrong > always or ready < queue / 2",
    )
    what = "gives a result that can be read before the work on x is done"
    return Effect(f"{subject.code} {what}", _on_streams(subject, finding, body), CLOCK)


def _spoilt(subject: Subject, finding: FindingRecord) -> str:
    """Text that leaves wrong values in the memory that the next array is likely to get.

    A race that waits besides shows by its values alone, and memory that is used again may hold
    the right ones.
    """
    if not finding.evidence.get("waits") or not subject.writable:
        return ""
    return block(subject.source("write", "y"), "del y  # its memory is used again, with ones in it")


def early_return(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """The result is there long after the call returned."""
    gap_s = thresholds.EARLY_GAP_NS / 2 / 1e9
    call, *wait = subject.discarded().splitlines()
    once = block("begin = perf_counter()", call, _lap("returned"), *wait, _lap("ready"))
    body = block(
        subject.create_as_seen(),
        "returned, ready = [], []",
        f"for _ in range(50):\n{inside(once)}",
        "call, done = median(returned[5:]), median(ready[5:])",
        'print(f"the call returned after {call * 1e6:.1f} us")',
        'print(f"its result was there after {done * 1e6:.1f} us")',
        f"return done > 2 * call and done - call > {gap_s:g}  # seconds",
    )
    return Effect(f"{subject.code} returns before its result is there", body, (*CLOCK, MEDIAN))


def _queue(subject: Subject, behind: str, function: str) -> str:
    """Source and conversion; then ``behind``, beside longer and longer queues of work.

    ``function`` is the name of that which converts.
    """
    texts = subject.recipe.queue
    if "enqueue" not in texts:
        raise NoReproducer("the session does not say how work is queued")
    grow = block(
        "work *= 2",
        "y = queued(work)",
        "begin = perf_counter()",
        subject.wait_for_source(),
        "queue = perf_counter() - begin  # left when all was queued",
        behind,
    )
    return block(
        f"{subject.create()}\n",
        plain(texts.get("setup", "")),
        _queued(plain(texts["enqueue"])),
        FUNCTIONS[function].replace("{code}", subject.code),
        f"{function}(queued(1))  # the first use may compile",
        f"work, queue, end = 1, 0, perf_counter() + {LIMIT_S}",
        f"while queue < {QUEUE_S} and perf_counter() < end:\n{inside(grow)}",
        f'assert queue >= {QUEUE_S}, "no work could be queued"',
    )


def _lap(name: str) -> str:
    return f"{name}.append(perf_counter() - begin)"


def _queued(text: str) -> str:
    """A function that queues work on ``x`` and returns the array that depends on it."""
    *lines, last = text.splitlines()
    end = f"return {last.removeprefix('y = ')}" if last.startswith("y = ") else f"{last}\nreturn y"
    return f"def queued(work):\n{inside(block(*lines, end))}\n"


def _unrelated(subject: Subject) -> tuple[str, str]:
    """Text that queues work which ``x`` does not depend on, and text that waits for it."""
    text = subject.recipe.queue.get("unrelated")
    if text is not None:
        return block("duration_ns = int(queue * 1e9)", plain(text)), "z.wait()"
    queue = block(
        f"other = {subject.source('own_stream')}", f"with other:\n{inside('y = queued(work)')}"
    )
    return queue, f"with other:\n{inside(subject.wait_for_source())}"


def _on_streams(subject: Subject, finding: FindingRecord, body: str) -> str:
    """The body with each framework on a stream of its own, if that is how it was found."""
    if finding.evidence.get("streams") != "own streams":
        return body
    streams = [
        text
        for side, idioms in (("source", subject.recipe.source), ("result", subject.recipe.result))
        if subject.has(side, "own_stream")
        for text in [plain(idioms["own_stream"])]
    ]
    return f"with {', '.join(dict.fromkeys(streams))}:\n{inside(body)}" if streams else body
