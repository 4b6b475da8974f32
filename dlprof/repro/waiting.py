"""Does it wait: work is queued on the producer, and the conversion is timed behind it."""

from __future__ import annotations

from dlprof.errors import NoReproducer
from dlprof.repro.effect import Effect
from dlprof.repro.lines import block, inside, plain
from dlprof.repro.subject import Subject
from dlprof.session import FindingRecord

QUEUE_MS = 50
CLOCK = ("from time import perf_counter",)
MEDIAN = "from statistics import median"


def host_sync(subject: Subject, _: Subject | None, finding: FindingRecord) -> Effect:
    """The call returns only when the work queued on its source is done."""
    measured = block(
        f"y = queued(work)\nbegin = perf_counter()\nconvert(y)\n{_lap('behind')}",
        subject.wait_for_source(),
    )
    body = _on_streams(
        subject,
        finding,
        block(
            _queue(subject),
            _idle("convert(y)"),
            "behind = []",
            f"for _ in range(5):\n{inside(measured)}",
            _told("behind it"),
        ),
    )
    what = "waits for the work that is queued on x"
    return Effect(f"{subject.code} {what}", body, (*CLOCK, MEDIAN))


def device_sync(subject: Subject, _: Subject | None, finding: FindingRecord) -> Effect:
    """The call waits also for work that has nothing to do with its source."""
    unrelated, finish = _unrelated(subject)
    measured = block(
        f"{unrelated}\nbegin = perf_counter()\nconvert(x)\n{_lap('behind')}",
        finish,
    )
    body = block(
        _queue(subject),
        _idle("convert(x)"),
        "behind = []",
        f"for _ in range(5):\n{inside(measured)}",
        _told("beside it, with an x that was ready"),
    )
    what = "waits for work that has nothing to do with x"
    return Effect(f"{subject.code} {what}", body, (*CLOCK, MEDIAN))


def unordered(subject: Subject, _: Subject | None, finding: FindingRecord) -> Effect:
    """The result can be read before the work on its source is done."""
    seen = subject.converted("values", "z")
    attempt = block(
        "y = queued(work)",
        "begin = perf_counter()",
        "z = convert(y)",
        subject.wait_for_result("z"),
        _lap("ready"),
        f"seen = {seen}",
        subject.wait_for_source(),
        "wrong += bool((seen != expected).any())",
    )
    body = _on_streams(
        subject,
        finding,
        block(
            _queue(subject),
            f"expected = {subject.source('values', 'y')}",
            "wrong, ready = 0, []",
            f"for _ in range(5):\n{inside(attempt)}",
            "print(f'queued work: {queue * 1e3:.1f} ms')",
            "print(f'its result was called ready after {median(ready) * 1e3:.3f} ms')",
            "print(f'{wrong} of 5 results had wrong values when they were called ready')",
            "return wrong > 0 or median(ready) < queue / 2",
        ),
    )
    what = "gives a result that can be read before the work on x is done"
    return Effect(f"{subject.code} {what}", body, (*CLOCK, MEDIAN))


def early_return(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """The result is there long after the call returned."""
    once = block(
        "begin = perf_counter()",
        f"y = {subject.code}",
        _lap("returned"),
        subject.wait_for_result(),
        _lap("ready"),
    )
    body = block(
        subject.create(),
        "returned, ready = [], []",
        f"for _ in range(50):\n{inside(once)}",
        "call, done = median(returned[5:]), median(ready[5:])",
        "print(f'the call returned after {call * 1e6:.1f} us')",
        "print(f'its result was there after {done * 1e6:.1f} us')",
        "return done > 2 * call",
    )
    return Effect(
        f"{subject.code} returns before its result is there", body, (*CLOCK, MEDIAN)
    )


def _queue(subject: Subject) -> str:
    """Source, conversion, and a queue of work that is long enough."""
    texts = subject.recipe.queue
    if "enqueue" not in texts:
        raise NoReproducer("the session does not say how work is queued")
    grow = block(
        "begin = perf_counter()",
        "y = queued(work)",
        subject.wait_for_source(),
        "queue = perf_counter() - begin",
        f"if queue > {QUEUE_MS / 1e3}:\n    break",
        "work *= 2",
    )
    return block(
        subject.create(),
        plain(texts.get("setup", "")),
        f"def queued(work):\n{inside(block(plain(texts['enqueue']), 'return y'))}",
        f"def convert(x):\n    return {subject.code}",
        "y = queued(1)  # the first use may compile",
        subject.wait_for_source(),
        "convert(y)",
        "work = 1",
        f"while True:\n{inside(grow)}",
    )


def _idle(call: str) -> str:
    return block("begin = perf_counter()", call, "idle = perf_counter() - begin")


def _lap(name: str) -> str:
    return f"{name}.append(perf_counter() - begin)"


def _told(where: str) -> str:
    return block(
        "print(f'queued work: {queue * 1e3:.1f} ms')",
        "print(f'conversion with an empty queue: {idle * 1e3:.3f} ms')",
        f"print(f'conversion {where}: {{median(behind) * 1e3:.3f}} ms')",
        "return median(behind) > idle + queue / 2",
    )


def _unrelated(subject: Subject) -> tuple[str, str]:
    """Text that queues work which ``x`` does not depend on, and text that waits for it."""
    text = subject.recipe.queue.get("unrelated")
    if text is not None:
        return block("duration_ns = int(queue * 1e9)", plain(text)), "z.wait()"
    stream = subject.source("own_stream")
    wait = inside(block("z = queued(work)"))
    return f"with {stream}:\n{wait}", subject.wait_for_source("z")


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
