"""Alignment: does it depend on where the source begins whether the result is a view?

The same small array is made at a multiple of 64 bytes and one element into a larger one (the
layouts ``aligned`` and ``sliced``), and each is converted and looked at as
:mod:`~dlprof.worker.instruments.ownership` does. JAX, for one, takes memory of the host as it is
only from a multiple of 64 bytes on (jax#30228). Each place is looked at again, in an order in which
neither comes at every second conversion or at the first half of them: a path whose answers differ
at one place depends on something else. It cannot tell where the producer makes only one of the two.

It needs no array of the case's own: where nothing else is asked, none is made and converted. That
one would begin anywhere, and what refuses unaligned memory would refuse it in some processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dlprof.probes.base import CONTIGUOUS, DTYPES, ArraySpec, Import, Unsupported
from dlprof.protocol.messages import words
from dlprof.worker.instruments import ownership
from dlprof.worker.subject import Subject

LARGEST_BYTES = 1 << 18
"""Of a larger array a part is looked at; of a small one frameworks may do otherwise."""
PLACES = ("aligned", "sliced")
ORDER = ("aligned", "sliced", "sliced", "aligned", "sliced", "aligned", "aligned", "sliced")
"""Thue and Morse's: no short period gives one answer at each place and another at the other."""


def measure(subject: Subject, make: Callable[[ArraySpec], Subject]) -> dict[str, Any] | None:
    """Verdict ``dependent``, ``independent``, ``inconstant`` or ``unknown``; None: not applicable.

    ``make`` prepares another subject of the same path. The evidence has for each place the
    verdict of ownership, or ``refused``, and the ``alignment_bytes`` of the source; ``inconstant``
    is what gave several verdicts at one place, with all of them under ``looks``.
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
    small = _small(spec)
    looks: dict[str, list[dict[str, Any]]] = {place: [] for place in PLACES}
    for place in ORDER:
        looks[place].append(_looked_at(make, replace(small, layout=place)))
        if looks[place][-1]["verdict"] not in KNOWN:
            break
    verdict, reason = judge(looks)
    evidence: dict[str, Any] = {place: found[0] for place, found in looks.items() if found}
    if verdict == "inconstant":
        evidence["looks"] = {
            place: [one["verdict"] for one in found] for place, found in looks.items()
        }
    return {"verdict": verdict, "evidence": {**evidence, **({"reason": reason} if reason else {})}}


KNOWN = ("view", "copy", "refused")


def judge(looks: Mapping[str, Sequence[dict[str, Any]]]) -> tuple[str, str | None]:
    """The verdict from what was found at each place in turn, and why if it is no plain one."""
    for place, found in looks.items():
        for one in found:
            if one["verdict"] not in KNOWN:
                return "unknown", f"{place}: {one.get('reason', one['verdict'])}"
    answers = {place: {one["verdict"] for one in found} for place, found in looks.items()}
    for place, verdicts in answers.items():
        if len(verdicts) > 1:
            return "inconstant", f"{' and '.join(sorted(verdicts))} from the same place ({place})"
    verdicts = set.union(*answers.values())
    if verdicts == {"refused"}:
        return "unknown", f"refused at either place: {looks['aligned'][0].get('reason')}"
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
