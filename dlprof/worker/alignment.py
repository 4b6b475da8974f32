"""Alignment: does it depend on where the source begins whether the result is a view?

The same small array is made twice, once at a multiple of 64 bytes and once one element into a
larger one (the layouts ``aligned`` and ``sliced``), and each is converted and looked at as
:mod:`dlprof.worker.ownership` does. JAX, for one, takes memory of the host as it is only from a
multiple of 64 bytes on (jax#30228). It cannot tell where the producer makes only one of the two.

It needs no array of the case's own: where nothing else is asked, none is made and converted. That
one would begin anywhere, and what refuses unaligned memory would refuse it in some processes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dlprof.probes.base import CONTIGUOUS, DTYPES, ArraySpec, Import, Unsupported
from dlprof.worker import ownership
from dlprof.worker.subject import Subject
from dlprof.worker.words import words

LARGEST_BYTES = 1 << 18
"""Of a larger array a part is looked at; of a small one frameworks may do otherwise."""
PLACES = ("aligned", "sliced")


def measure(subject: Subject, make: Callable[[ArraySpec], Subject]) -> dict[str, Any] | None:
    """Verdict ``dependent``, ``independent`` or ``unknown``; None where it does not apply.

    ``make`` prepares another subject of the same path. The evidence has for each place the
    verdict of ownership, or ``refused``, and the ``alignment_bytes`` of the source.
    """
    if subject.is_one_array or not applies(subject.import_, subject.result_device, subject.spec):
        return None
    return look(subject.spec, make)


def applies(import_: Import, result_device: str, spec: ArraySpec) -> bool:
    """Whether there is something to look at: a contiguous array of the host, and a result there."""
    on_host = (spec.device, result_device) == ("cpu", "cpu")
    return import_.returns_array and on_host and spec.layout in CONTIGUOUS and spec.elements > 0


def look(spec: ArraySpec, make: Callable[[ArraySpec], Subject]) -> dict[str, Any]:
    """The verdict of a path to which it applies, by arrays like ``spec`` at both places."""
    found = {place: _looked_at(make, replace(_small(spec), layout=place)) for place in PLACES}
    verdict, reason = judge(found)
    evidence = {**found, **({"reason": reason} if reason else {})}
    return {"verdict": verdict, "evidence": evidence}


def judge(found: dict[str, dict[str, Any]]) -> tuple[str, str | None]:
    """The verdict from what was found at each place, and why if it is ``unknown``."""
    for place, one in found.items():
        if one["verdict"] not in ("view", "copy", "refused"):
            return "unknown", f"{place}: {one.get('reason', one['verdict'])}"
    verdicts = {one["verdict"] for one in found.values()}
    if verdicts == {"refused"}:
        return "unknown", f"refused at either place: {found['aligned'].get('reason')}"
    return ("independent", None) if len(verdicts) == 1 else ("dependent", None)


def _small(spec: ArraySpec) -> ArraySpec:
    if spec.size_bytes <= LARGEST_BYTES:
        return spec
    return replace(spec, shape=(LARGEST_BYTES // DTYPES[spec.dtype],))


def _looked_at(make: Callable[[ArraySpec], Subject], spec: ArraySpec) -> dict[str, Any]:
    try:
        subject = make(spec)
    except Exception as refusal:  # noqa: BLE001 - what cannot be made is the answer
        reason = str(refusal) if isinstance(refusal, Unsupported) else words(refusal)
        return {"verdict": "unknown", "reason": reason}
    try:
        owned = ownership.measure(subject)
    except Exception as refusal:  # noqa: BLE001 - any framework, any error: it is the answer
        return {"verdict": "refused", "reason": words(refusal)}
    kept = ("source_alignment_bytes", "reason")
    named = {"source_alignment_bytes": "alignment_bytes"}
    evidence = owned["evidence"]
    return {
        "verdict": owned["verdict"],
        **{named.get(name, name): evidence[name] for name in kept if name in evidence},
    }
