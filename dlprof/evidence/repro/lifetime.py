"""Lifetime: the source is dropped, or written too early, and the result is looked at again."""

from __future__ import annotations

from dataclasses import replace

from dlprof.analysis.known import Known, number
from dlprof.errors import NoReproducer
from dlprof.evidence.repro.crash import in_child
from dlprof.evidence.repro.effect import Effect
from dlprof.evidence.repro.lines import block, inside
from dlprof.evidence.repro.subject import Subject
from dlprof.rules.tearing import COPIED, UNALIGNED
from dlprof.session.model import FindingRecord

TRIES = 100
LIMIT_S = 20
WHERE = {UNALIGNED: " where x is not aligned", COPIED: f" where {COPIED}"}


def dangling(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """The result reads memory that is somebody else's by then."""
    made = subject.result.lifetime
    evidence = made.evidence if made is not None else {}
    subject = subject.as_made(evidence)
    values, create = subject.converted("values"), subject.create_by(evidence)
    fill = subject.source("write") if subject.writable else ""
    if not (fill or subject.has("source", "use")):
        raise NoReproducer("its arrays cannot be written, and others hold the same values")
    again = block("x = make()", fill, f"others.append({'x' if fill else subject.source('use')})")
    child = block(
        f"def make():\n{inside(block(create, 'return x'))}\n",
        "x = make()",
        subject.convert(),
        f"before = {values}",
        "del x",
        "gc.collect()",
        "others = []  # arrays that may be given the memory of x",
        f"for _ in range(8):\n{inside(again)}",
        f"changed = int((before != {values}).sum())",
        'print(changed, "of", before.size, "values of y changed after x was dropped")',
        "return changed > 0",
    )
    effect = in_child(f"{subject.code} does not keep x alive", child, imports=("import gc",))
    return replace(effect, array=subject.array_text)


def unsafe_copy(subject: Subject, _: Subject | None, finding: FindingRecord) -> Effect:
    """The copy still reads its source after the call has returned."""
    written = subject.result.early_write
    subject, source = _torn_subject(subject, _torn(written.evidence if written else {}), finding)
    differs = f"bool((before != {subject.values_like_source()}).any())"
    told_apart = subject.has("source", "address") and subject.has("result", "address")
    if told_apart:  # a view must show the write
        copied = f"copied = {subject.converted('address')} != {subject.source('address')}"
        counted = block(copied, "tries += copied", f"torn += copied and {differs}")
    else:
        counted = block("tries += 1", f"torn += {differs}")
    attempt = block(
        source,
        f"before = {subject.source('values')}",
        f"y = {subject.code}",
        subject.source("write"),
        subject.wait_for_result(),
        counted,
    )
    body = block(
        "tries = torn = 0",
        f"end = perf_counter() + {LIMIT_S}",
        f"while tries < {TRIES} and perf_counter() < end:\n{inside(attempt)}",
        'print(f"a write to x right after the call changed {torn} of {tries} copies")',
        "return torn > 0",
    )
    only = WHERE.get(str(finding.evidence.get("only_where")), "")
    symptom = f"{subject.code} still reads x after it has returned{only}"
    return Effect(symptom, body, ("from time import perf_counter",), array=subject.array_text)


def _torn_subject(
    subject: Subject, evidence: dict[str, object], finding: FindingRecord
) -> tuple[Subject, str]:
    """The conversion, and text that makes a source of a size at which the copy was torn.

    Where the address decides whether it is a copy at all, the case's own array is made at one that
    is copied, if it is large enough.
    """
    owned, size = subject.result.ownership, number(finding.evidence.get("size_bytes")) or 0
    varies = owned is not None and owned.verdict == "varies"
    if varies and Known(0, subject.result).size_bytes >= size:
        return subject, subject.create("copy")
    return subject.as_made(evidence), subject.create_by(evidence)


def _torn(evidence: dict[str, object]) -> dict[str, object]:
    """The evidence of a process that saw a torn copy, where processes disagree."""
    processes = evidence.get("processes")
    for process in processes if isinstance(processes, list) else ():
        found = process.get("evidence") if isinstance(process, dict) else None
        if isinstance(found, dict) and "create" in found:
            return found
    return evidence
