"""Alignment: does it depend on where the source begins whether the result is a view?

The same small array is made at a multiple of 64 bytes (layout ``aligned``) and one element into a
larger array (``sliced``). Each is converted, and :mod:`~dlprof.worker.instruments.ownership` looks
at the result (jax#30228). An array of the case may begin anywhere.

Verdicts: ``dependent``, ``independent``, ``unknown``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from dlprof.probes.base import CONTIGUOUS, ArraySpec
from dlprof.protocol.messages import unknown, verdict, words
from dlprof.worker.instruments import ownership
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.subject import LoadedPath, result_device

LARGEST_BYTES = 1 << 18
"""A larger array is replaced by one of this size. Frameworks may treat a much smaller one apart."""
PLACES = ("aligned", "sliced")
KNOWN = ("view", "copy", "refused")


def measure(path: LoadedPath, spec: ArraySpec) -> dict[str, Any] | None:
    """Return the verdict on a path, by arrays like ``spec``; None if the question does not apply.

    It applies to contiguous arrays of the host with a result there.
    """
    on_host = (spec.device, result_device(path.consumer, path.import_, spec)) == ("cpu", "cpu")
    is_array = not path.is_one_array and spec.layout in CONTIGUOUS and spec.elements > 0
    if not (is_array and on_host and path.import_.returns_array):
        return None
    small = spec if spec.size_bytes <= LARGEST_BYTES else path.producer.resized(spec, LARGEST_BYTES)
    evidence = {place: _look(path, replace(small, layout=place)) for place in PLACES}
    for place, found in evidence.items():
        if found["verdict"] not in KNOWN:
            return unknown(f"{place}: {found.get('reason', found['verdict'])}")
    answers = {found["verdict"] for found in evidence.values()}
    if answers == {"refused"}:
        reason = f"refused at either place: {evidence['aligned'].get('reason')}"
        return verdict("unknown", evidence, reason)
    return verdict("independent" if len(answers) == 1 else "dependent", evidence)


def _look(path: LoadedPath, spec: ArraySpec) -> dict[str, Any]:
    subject = attempt(partial(path.subject, spec))
    if isinstance(subject, Refusal):
        return {"verdict": "unknown", "reason": subject.reason}
    owned = attempt(partial(ownership.measure, subject))
    if isinstance(owned, Refusal):
        # A result that cannot be looked at was not refused.
        is_refused = isinstance(attempt(lambda: subject.wait_for(subject.convert())), Refusal)
        return {"verdict": "refused" if is_refused else "unknown", "reason": words(owned.error)}
    evidence = owned["evidence"]
    found = {"verdict": owned["verdict"], "alignment_bytes": evidence.get("source_alignment_bytes")}
    return found | ({"reason": evidence["reason"]} if "reason" in evidence else {})
