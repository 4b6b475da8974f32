"""View or copy: a write to the source is looked for in the result."""

from __future__ import annotations

from dlprof.errors import NoReproducer
from dlprof.repro.effect import Effect
from dlprof.repro.lines import block, inside
from dlprof.repro.subject import Subject
from dlprof.session import FindingRecord

KINDS = {"view": "a view", "copy": "a copy"}


def promise_broken(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """Documented to copy and a view, or documented not to copy and a copy."""
    promise = subject.result.case.promise
    if promise == "copy":
        body = block(
            subject.create("view"),
            subject.convert(),
            witness(subject, "view"),
            "return view",
        )
        return Effect(f"{subject.code} is documented to copy, and is a view", body)
    refusal = "print('it refuses, as it should:', refusal)\nreturn False"
    body = block(
        subject.create("copy"),
        f"try:\n{inside(f'y = {subject.code}')}",
        f"except (ValueError, BufferError) as refusal:\n{inside(refusal)}",
        subject.wait_for_result(),
        witness(subject, "view"),
        "return not view",
    )
    return Effect(f"{subject.code} is documented not to copy, and copies", body)


def avoidable_copy(subject: Subject, other: Subject | None, _: FindingRecord) -> Effect:
    """It copies, and another expression gives a view of the same array."""
    view = compared(other)
    body = block(
        subject.create("copy"),
        "# the copy",
        subject.convert(),
        witness(subject, "first_is_view"),
        "# the view that could be had instead",
        view.convert(),
        witness(view, "second_is_view"),
        "return second_is_view and not first_is_view",
    )
    return Effect(f"{subject.code} copies although {view.code} is a view", body)


def layout_copy(subject: Subject, other: Subject | None, _: FindingRecord) -> Effect:
    """A view of one layout or alignment, a silent copy of another."""
    function = block(
        f"y = {subject.code}",
        subject.wait_for_result(),
        witness(subject, "view"),
        "return view",
    )
    address = subject.source("address", "x")
    where = f"print('x begins at an address that is', {address} % 64, 'beyond a multiple of 64')"
    if other is not None and other.result.case.layout != subject.result.case.layout:
        copied, viewed = subject.create("copy"), other.create("view")
        what = f"a {subject.result.case.layout} array"
        instead = f"a {other.result.case.layout} one"
    else:
        copied, viewed = subject.create_as("sliced"), subject.create_as("aligned")
        what, instead = "an array that is not 64-byte aligned", "an aligned one"
    body = block(
        f"def is_view(x):\n{inside(function)}",
        copied,
        where,
        "first_is_view = is_view(x)",
        viewed,
        where,
        "second_is_view = is_view(x)",
        "return second_is_view and not first_is_view",
    )
    return Effect(f"{subject.code} copies {what}, and is a view of {instead}", body)


def read_only_lost(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """The result lets memory be written that its owner calls read-only."""
    source, result = subject.source("writable"), subject.converted("writable")
    flags = f"print('x can be written:', {source}, '- y can be written:', {result})"
    changed = "print(changed, 'of', before.size, 'values of x were overwritten through y')"
    write = block(
        f"if {result}:",
        inside(subject.converted("write")),
        f"changed = int((before != {subject.source('values')}).sum())",
        changed,
        "return changed > 0",
    )
    body = block(
        subject.create("view"),
        subject.convert(),
        flags,
        f"before = {subject.source('values')}",
        write,
    )
    return Effect(f"{subject.code} makes a writable view of a read-only array", body)


def witness(subject: Subject, name: str) -> str:
    """Text that finds out whether ``y`` shares the memory of ``x``, and says how it knows."""
    if subject.writable and subject.has("result", "values"):
        return _by_write(subject, name)
    sides = (subject.has("source", "address"), subject.has("result", "address"))
    if not all(sides):
        raise NoReproducer("neither a write nor an address of the arrays can be had in text")
    return block(
        f"begins = {subject.source('address')}, {subject.converted('address')}",
        "print('x begins at %#x, y at %#x' % begins)",
        f"{name} = begins[0] == begins[1]",
    )


def _by_write(subject: Subject, name: str) -> str:
    values = subject.converted("values")
    return block(
        f"before = {values}",
        f"{subject.source('write')}",
        f"changed = int((before != {values}).sum())",
        "print('a write to x changed', changed, 'of', before.size, 'values of y')",
        f"{name} = changed > 0",
    )


def compared(other: Subject | None) -> Subject:
    """The case that the finding compares with."""
    if other is None:
        raise NoReproducer("the finding does not say what it compares with: measure again")
    return other
