"""Alignment: does it depend on where the source begins whether the result is a view?

The same small array is made at a multiple of 64 bytes (layout ``aligned``) and one element into a
larger array (``sliced``). Each is converted, and :mod:`~dlprof.worker.instruments.ownership` looks
at the result. JAX, for one, takes host memory as it is only from a multiple of 64 bytes on
(jax#30228). Each place is looked at four times, in an order without a short period.

Verdicts: ``dependent``, ``independent``, ``inconstant`` (several answers at one place),
``unknown``. No answer for arrays to which the question does not apply.

It makes its own arrays: an array of the case may begin anywhere, and some imports would refuse it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dlprof.probes.base import CONTIGUOUS, ArraySpec, Import
from dlprof.protocol.messages import verdict, words
from dlprof.worker.instruments import ownership
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.subject import Subject

LARGEST_BYTES = 1 << 18
"""Of a larger array a part is converted. Frameworks may treat a much smaller one differently."""
PLACES = ("aligned", "sliced")
ORDER = ("aligned", "sliced", "sliced", "aligned", "sliced", "aligned", "aligned", "sliced")
"""The Thue-Morse sequence: no short period gives one answer at each place."""
KNOWN = ("view", "copy", "refused")

Make = Callable[[ArraySpec], Subject]
"""Prepares another subject of the same path."""


def measure(subject: Subject, make: Make) -> dict[str, Any] | None:
    """The verdict; None if the question does not apply."""
    if subject.is_one_array or not applies(subject.import_, subject.result_device, subject.spec):
        return None
    return look(subject.spec, make)


def applies(import_: Import, result_device: str, spec: ArraySpec) -> bool:
    """Whether it is a contiguous array of the host with a result there."""
    on_host = (spec.device, result_device) == ("cpu", "cpu")
    return import_.returns_array and on_host and spec.layout in CONTIGUOUS and spec.elements > 0


def look(spec: ArraySpec, make: Make) -> dict[str, Any]:
    """The verdict on a path to which the question applies, by arrays like ``spec``."""
    small = spec
    if spec.size_bytes > LARGEST_BYTES:
        small = spec.of_bytes(LARGEST_BYTES)
    looks: dict[str, list[dict[str, Any]]] = {place: [] for place in PLACES}
    for place in ORDER:
        looks[place].append(_looked_at(make, replace(small, layout=place)))
        if looks[place][-1]["verdict"] not in KNOWN:
            break
    word, reason = judge(looks)
    evidence: dict[str, Any] = {place: found[0] for place, found in looks.items() if found}
    if word == "inconstant":
        evidence["looks"] = {
            place: [one["verdict"] for one in found] for place, found in looks.items()
        }
    return verdict(word, evidence, reason)


def judge(looks: Mapping[str, Sequence[dict[str, Any]]]) -> tuple[str, str | None]:
    """The verdict from the answers at each place, and the reason if there is one."""
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


def _looked_at(make: Make, spec: ArraySpec) -> dict[str, Any]:
    subject = attempt(partial(make, spec))
    if isinstance(subject, Refusal):
        return {"verdict": "unknown", "reason": subject.reason}
    owned = attempt(partial(ownership.measure, subject))
    if isinstance(owned, Refusal):
        # What cannot be looked at was not refused.
        is_refused = isinstance(attempt(lambda: subject.wait_for(subject.convert())), Refusal)
        return {"verdict": "refused" if is_refused else "unknown", "reason": words(owned.error)}
    named = {"source_alignment_bytes": "alignment_bytes", "reason": "reason"}
    evidence = owned["evidence"]
    return {
        "verdict": owned["verdict"],
        **{name: evidence[key] for key, name in named.items() if key in evidence},
    }
