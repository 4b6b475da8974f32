"""Results for tests of rules: one path, measured to the end, with nothing to find."""

from __future__ import annotations

from builders import make_measure, make_record

from dlprof.rules import findings
from dlprof.session.model import Result

US = 1_000.0
MS = 1_000_000.0


def spread(median_ns, share=0.01, **changes):
    """A time with an interval of ``share`` to each side, and a fastest sample as far below."""
    interval = (median_ns * (1 - share), median_ns * (1 + share))
    return make_measure(median_ns, interval, min_ns=interval[0], **changes)


def once(median_ns):
    """The time of a single process: no interval."""
    return make_measure(median_ns, None, min_ns=median_ns)


def verdict(word, **evidence):
    return {"verdict": word, "evidence": evidence}


def owned(word, device="cpu", alignment=64):
    return verdict(word, result_device=device, source_alignment_bytes=alignment)


def varying(*processes):
    """Ownership that differs from process to process: pairs of verdict and alignment."""
    found = [owned(word, alignment=alignment) for word, alignment in processes]
    return verdict("varies", reason="they disagree", processes=found)


def ordered(word, host_ns=45 * MS, queued_ns=45 * MS, **evidence):
    return verdict(word, loaded={"host_ns": host_ns, "queued_ns": queued_ns}, **evidence)


def path(code, ready=5 * US, owner="view", host=None, case=None, **parts):
    """A result; ``ready`` and ``host`` are a median in ns or a measure."""
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


def found(rule, *results):
    """The findings of one rule, by id."""
    return [finding for finding in findings(results) if finding.rule == rule]


def rules(*results):
    """The ids of all rules that found something."""
    return [finding.rule for finding in findings(results)]
