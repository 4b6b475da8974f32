"""What a conversion changes besides making its result: each side is looked at before and after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dlprof.analysis import changed
from dlprof.analysis.known import mapping, seen
from dlprof.errors import NoReproducer
from dlprof.evidence.repro.effect import Effect
from dlprof.evidence.repro.lines import block
from dlprof.evidence.repro.subject import Subject


def effect(subject: Subject) -> Effect:
    """The worst of what the call was seen to change, at an array of the size that was looked at."""
    evidence, kind = _seen(subject)
    subject = subject.as_made(evidence)
    if subject.is_own and kind == changed.EARLIER_RESULT:
        raise NoReproducer("it takes two arrays, and the setup of your own makes one")
    by_address = mapping(mapping(evidence["changed"])[kind]).get("same_address") is True
    show = _one_address if by_address else SHOWN[kind]
    symptom = f"{subject.code} {changed.CHANGES[kind].does}"
    body = show(subject, subject.create_by(evidence))
    return Effect(symptom, body, array=subject.array_text)


def _seen(subject: Subject) -> tuple[Mapping[str, Any], str]:
    """The evidence of the first process that saw a change, and which."""
    for word, evidence in seen(subject.result.values):
        kind = changed.first(mapping(mapping(evidence).get("changed")))
        if word == "wrong" and kind:
            return evidence, kind
    raise ValueError("nothing but the result was changed")


def _source(subject: Subject, create: str) -> str:
    return block(
        create,
        f"before = {subject.source('values')}",
        subject.convert(),
        f"after = {subject.source('values')}",
        f"changed = {subject.differing('before', 'after')}",
        'print(changed, "of", before.size, "values of x were changed by the call")',
        "return changed > 0",
    )


def _source_writable(subject: Subject, create: str) -> str:
    return block(
        create,
        f"before = {subject.source('writable')}",
        subject.convert(),
        f"after = {subject.source('writable')}",
        'print("x can be written:", before, "before the call,", after, "after it")',
        "return before != after",
    )


def _earlier_result(subject: Subject, create: str) -> str:
    values = subject.converted("values")
    return block(
        create,
        subject.convert(),
        f"before = {values}",
        "held = x",
        "# another array, of other values",
        create,
        subject.source("write"),
        subject.convert("z"),
        f"changed = int((before != {values}).sum())",
        'print(changed, "of", before.size, "values of y changed as z was made")',
        "return held is not x and changed > 0",
    )


def _one_address(subject: Subject, create: str) -> str:
    return block(
        create,
        subject.convert(),
        "held = x",
        "# another array",
        create,
        subject.convert("z"),
        f"addresses = {subject.converted('address')}, {subject.converted('address', 'z')}",
        f"sources = {subject.source('address', 'held')}, {subject.source('address')}",
        'print("y is at %#x, z at %#x" % addresses)',
        "return addresses[0] == addresses[1] and addresses[0] not in sources",
    )


def _after_write(subject: Subject, create: str) -> str:
    return block(
        create,
        subject.convert(),
        subject.source("write"),
        subject.convert("z"),
        f"wrong = int(({subject.source('values')} != {subject.values_like_source('z')}).sum())",
        'print(wrong, "values of z are not those that x has been given")',
        "return wrong > 0",
    )


SHOWN: Mapping[str, Callable[[Subject, str], str]] = {
    changed.SOURCE: _source,
    changed.SOURCE_WRITABLE: _source_writable,
    changed.EARLIER_RESULT: _earlier_result,
    changed.AFTER_WRITE: _after_write,
}
"""By what was changed: from the case and the text that makes ``x`` to what a script does."""
