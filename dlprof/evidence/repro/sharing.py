"""View or copy: a write to the source is looked for in the result."""

from __future__ import annotations

import json

from dlprof.analysis.known import Known, number
from dlprof.errors import NoReproducer
from dlprof.evidence.repro.effect import Effect
from dlprof.evidence.repro.lines import block, inside
from dlprof.evidence.repro.subject import Subject
from dlprof.session.model import FindingRecord
from dlprof.text.clean import clean


def promise_broken(subject: Subject, _: Subject | None, finding: FindingRecord) -> Effect:
    """Documented to copy and a view, or documented not to copy and a copy."""
    look, is_view = witness(subject)
    viewed, copied = (
        number(finding.evidence.get(f"{word}_alignment_bytes")) for word in ("view", "copy")
    )
    if subject.result.case.promise == "copy":
        body = block(subject.create("view"), subject.convert(), look, f"return {is_view}")
        where = f" where x begins at a multiple of {viewed:.0f} bytes" if viewed else ""
        return Effect(f"{subject.code} is documented to copy, and is a view{where}", body)
    refusal = 'print("it refuses, as documented:", refusal)\nreturn False'
    body = block(
        subject.create("copy"),
        f"try:\n{inside(f'y = {subject.code}')}",
        f"except (ValueError, BufferError) as refusal:\n{inside(refusal)}",
        subject.wait_for_result(),
        look,
        f"return not ({is_view})",
    )
    where = f" where x begins at a multiple of {copied:.0f} bytes and no more" if copied else ""
    return Effect(f"{subject.code} is documented not to copy, and copies{where}", body)


def avoidable_copy(subject: Subject, other: Subject | None, _: FindingRecord) -> Effect:
    """It copies, and another expression gives a view of the same array."""
    view = compared(other)
    body = block(
        subject.create("copy"),
        "# the copy",
        subject.convert("y"),
        "# what could be had instead",
        view.convert("z"),
        *_both(subject),
        "return second and not first",
    )
    return Effect(f"{subject.code} copies although {view.code} is a view", body)


def _both(subject: Subject) -> tuple[str, ...]:
    """Text that says of ``y`` and ``z`` whether they share the memory of ``x``."""
    if _can_write(subject):
        values = f"{subject.converted('values', 'y')}, {subject.converted('values', 'z')}"
        return (
            f"before = {values}",
            subject.source("write"),
            f"after = {values}",
            "first, second = (bool((b != a).any()) for b, a in zip(before, after))",
            'print("a write to x shows in the first:", first, "- in the second:", second)',
        )
    addresses = (subject.source("address"), *(subject.converted("address", y) for y in "yz"))
    return (
        f"begins = {', '.join(addresses)}",
        'print("x begins at %#x, the first at %#x, the second at %#x" % begins)',
        "first, second = begins[1] == begins[0], begins[2] == begins[0]",
    )


def layout_copy(subject: Subject, other: Subject | None, _: FindingRecord) -> Effect:
    """A view of one layout or alignment, a silent copy of another."""
    look, is_view = witness(subject)
    function = block(f"y = {subject.code}", subject.wait_for_result(), look, f"return {is_view}")
    address = subject.source("address", "x")
    where = f'print("x begins", {address} % 64, "bytes after a multiple of 64:")'
    if other is not None and other.result.case.layout != subject.result.case.layout:
        copied, viewed = subject.create("copy"), other.create("view")
        what = f"a {subject.result.case.layout} array"
        instead = f"a {other.result.case.layout} one"
    else:
        copied, viewed = subject.create_as("sliced"), subject.create_as("aligned")
        what, instead = "an array that is not 64-byte aligned", "an aligned one"
    body = block(
        f"def is_view(x):\n{inside(function)}\n",
        copied,
        where,
        "first = is_view(x)",
        viewed,
        where,
        "second = is_view(x)",
        "return second and not first",
    )
    return Effect(f"{subject.code} copies {what}, and is a view of {instead}", body)


def read_only_lost(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """The result lets memory be written that its owner calls read-only."""
    flags, asked = _flags(subject)
    unwritten = subject.is_own or _is_not_written(subject)
    before, shown = _by_address(subject) if unwritten else _by_write(subject)
    body = block(
        subject.create("view"),
        subject.convert(),
        flags,
        before,
        f"if {asked}:\n{inside(shown)}" if asked else shown,
    )
    return Effect(f"{subject.code} makes a writable view of a read-only array", body)


def _by_write(subject: Subject) -> tuple[str, str]:
    """What is kept before, and the text that shows it."""
    return f"before = {subject.source('values')}", block(
        subject.converted("write"),
        f"changed = int((before != {subject.source('values')}).sum())",
        'print(changed, "of", before.size, "values of x were overwritten through y")',
        "return changed > 0",
    )


def _by_address(subject: Subject) -> tuple[str, str]:
    """The same, told by where both begin: the memory itself is not written."""
    return f"begins = {subject.source('address')}, {subject.converted('address')}", block(
        'print("x begins at", hex(begins[0]), "and y at", hex(begins[1]))',
        "return begins[0] == begins[1]",
    )


def _is_not_written(subject: Subject) -> bool:
    """Whether a write would end the process, or change a file or what others have mapped."""
    owned = subject.result.ownership
    return owned is not None and bool(owned.evidence.get("not_written"))


def _flags(subject: Subject) -> tuple[str, str]:
    """Text that tells who can be written, and the expression that asks the result.

    A framework whose arrays are all immutable, or none, has no flag to ask for: then it is as its
    probe says. What is told to be writable without one is written, whatever comes of it.
    """
    known = Known(0, subject.result).writable
    if known.get("source") is False and not subject.has("source", "writable"):
        x = json.dumps(f"{clean(subject.result.case.producer, 40)} does not let x be written")
    else:
        x = f'"x can be written:", {subject.source("writable")}'
    if known.get("result") is True and not subject.has("result", "writable"):
        return f"print({x})", ""
    y = subject.converted("writable")
    return f'print({x}, "- y can be written:", {y})', y


def witness(subject: Subject) -> tuple[str, str]:
    """Text that looks whether ``y`` shares the memory of ``x``, and the expression that says so."""
    if _can_write(subject):
        values = subject.converted("values")
        look = block(
            f"before = {values}",
            subject.source("write"),
            f"changed = int((before != {values}).sum())",
            'print("a write to x changed", changed, "of", before.size, "values of y")',
        )
        return look, "changed > 0"
    if not (subject.has("source", "address") and subject.has("result", "address")):
        raise NoReproducer("neither a write nor an address of the arrays can be had in text")
    look = block(
        f"begins = {subject.source('address')}, {subject.converted('address')}",
        'print("x begins at %#x, y at %#x" % begins)',
    )
    return look, "begins[0] == begins[1]"


def _can_write(subject: Subject) -> bool:
    return subject.writable and subject.has("result", "values")


def compared(other: Subject | None) -> Subject:
    """The case that the finding compares with."""
    if other is None:
        raise NoReproducer("the finding does not say what it compares with: measure again")
    return other
