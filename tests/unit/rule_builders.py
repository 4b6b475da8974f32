"""Results for tests of rules: one path, measured in full, with nothing to find."""

import re

from builders import make_measure, make_record

from dlprof.judge import find
from dlprof.runner.session import ProcessSamples, Result

US = 1_000.0
MS = 1_000_000.0


def spread(median_ns, share=0.01, **changes):
    """A time with an interval of ``share`` on each side; the fastest sample is as far below."""
    interval = (median_ns * (1 - share), median_ns * (1 + share))
    return make_measure(median_ns, interval, min_ns=interval[0], **changes)


def once(median_ns):
    """The time of a single process, which has no interval."""
    return make_measure(median_ns, None, min_ns=median_ns)


def by_process(*medians_ns, disturbed=0.0, **changes):
    """The time of several processes, with an interval as wide as the machine was busy."""
    processes = [
        ProcessSamples(round=at, loops=1, samples_ns=[median], disturbed=disturbed)
        for at, median in enumerate(medians_ns)
    ]
    middle = sorted(medians_ns)[len(medians_ns) // 2]
    fields = {"min_ns": min(medians_ns), "processes": processes} | changes
    return make_measure(middle, (middle / 100, middle * 100), **fields)


def disturbed(median_ns):
    """A time during which other programs took most of the processor in every process."""
    processes = by_process(*[median_ns] * 3, disturbed=1.0).processes
    return spread(median_ns).model_copy(update={"processes": processes})


def verdict(word, processes=(), **evidence):
    return {"verdict": word, "evidence": evidence, "processes": [*processes]}


LOOKED = {"lifetime": verdict("safe"), "early_write": verdict("safe")}
"""A complete diagnosis."""


def owned(word, device="cpu", alignment=64):
    return verdict(word, result_device=device, source_alignment_bytes=alignment)


def varying(*processes):
    """Ownership that differs between processes, as pairs of verdict and alignment."""
    found = [owned(word, alignment=alignment) for word, alignment in processes]
    return verdict("varies", reason="they disagree", processes=found)


def tried(aligned="view", sliced="copy", alignment=64):
    """The answer of the *alignment* instrument for both places."""
    places = {
        "aligned": {"verdict": aligned, "alignment_bytes": alignment},
        "sliced": {"verdict": sliced, "alignment_bytes": 4},
    }
    return verdict("dependent" if aligned != sliced else "independent", **places)


def ordered(word, host_ns=45 * MS, queued_ns=45 * MS, **evidence):
    return verdict(word, loaded={"host_ns": host_ns, "queued_ns": queued_ns}, **evidence)


def wrong(**changed):
    return verdict("wrong", changed=changed)


def path(code, ready=5 * US, owner="view", host=None, case=None, **parts):
    """A result; ``ready`` and ``host`` are each a median in ns or a measure."""
    record = make_record(code=code, **{"import": code, **(case or {})})
    ready = spread(ready) if isinstance(ready, float) else ready
    fields = {
        "case": record,
        "status": "ok",
        "host_time": ready if host is None else host,
        "ready_time": ready,
        "ownership": owned(owner, device=record["device"]) if isinstance(owner, str) else owner,
        "values": verdict("ok", changed={}, writable={"source": True, "result": True}),
    }
    return Result.model_validate(fields | parts)


def lost(status, reason, code="f(x)"):
    """A case whose conversion did not return."""
    ended = end_of(reason) if status in ("crashed", "timeout") else None
    parts = {"values": None, "lost": ended}
    return path(code, None, None, status=status, reason=reason, **parts)


def end_of(reason):
    """Describe how a worker was lost: ``killed by SIGSEGV during values``."""
    how, _, stage = reason.partition(" during ")
    signal, limit = re.search(r"SIG[A-Z]+", how), re.search(r"within (\d+) s", how)
    return {
        "how": how,
        "stage": stage or None,
        "signal": signal and signal[0],
        "limit_s": limit and float(limit[1]),
    }


def died(word, reason, **evidence):
    """The verdict of an instrument during which the worker was lost."""
    return verdict(word, reason=reason, lost=end_of(reason), **evidence)


def found(rule, *results):
    """Return the findings of one rule."""
    return [finding for finding in find(results) if finding.rule == rule]


def rules(*results):
    """Return the ids of all rules with a finding."""
    return [finding.rule for finding in find(results)]
