"""May the source be written as soon as the call has returned? The rule on torn copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

from dlprof.analysis import thresholds
from dlprof.analysis.case_view import CaseView, seen
from dlprof.analysis.cases import Cases, groups
from dlprof.analysis.quantity import size_text
from dlprof.rules import words
from dlprof.rules.observed import ONCE
from dlprof.rules.rule import Rule, expect, finding, number
from dlprof.rules.script import Effect, Subject, flat_values
from dlprof.rules.standards import ASYNCHRONOUS, LIKE_OTHERS
from dlprof.rules.words import advised, for_each_producer, or_else
from dlprof.session.evidence import EarlyWrite
from dlprof.session.model import FindingRecord, Result

UNALIGNED, COPIED = "the source is not aligned", "it copies"
TRIED_ONCE_BYTES = 8 << 20
"""From here on the early write tries a size once: it was torn at the first try."""
MOST_DIGITS = 18


class Where(Enum):
    """Of which sources copies were torn."""

    ANY = None
    UNALIGNED = UNALIGNED
    """No torn copy of aligned memory was seen."""
    COPIED = COPIED
    """Others are no copies: their results share the source's memory."""


def unsafe_copy(cases: Cases) -> Iterator[FindingRecord]:
    """The copy still reads its source after the call has returned."""
    unsafe = [case for case in cases.cases if case.torn]
    for found in groups(unsafe, lambda case: (case.pair[1], case.result.case.device, where(case))):
        ranked = sorted(found, key=lambda case: _how_sure(_torn_bytes(case)))
        worst = ranked[0]
        size = _torn_bytes(worst)
        returns = words.several(ranked, "returns before it has", "return before they have")
        limit = _where_text(ranked)
        torn = f" of {size_text(size)}" if size else ""
        yield finding(
            "error",
            ranked,
            f"{words.paths(ranked)} {returns} read x{limit}. {BRIEF[where(worst)]}",
            f"{words.subject(ranked)} {returns} read the source{limit}. A write right after the"
            f" call changed the copy{torn}{words.example(ranked)}.",
            {
                "size_bytes": size or None,
                "only_where": where(worst).value,
                "torn_alignment_bytes": _torn_alignment(worst),
            },
            _advice(cases, ranked),
        )


BRIEF = {
    Where.ANY: "Wait for the result before you write x.",
    Where.UNALIGNED: "Wait for the result before you write x.",
    Where.COPIED: "Do not write x while the result is used.",
}


def where(case: CaseView) -> Where:
    """Of which sources copies of the case were torn."""
    if _may_be_view(case):
        return Where.COPIED
    return Where.UNALIGNED if all(map(_is_of_unaligned, _torn(case))) else Where.ANY


def _is_of_unaligned(evidence: EarlyWrite) -> bool:
    """Whether what was torn is known to have been of a source that was not aligned."""
    begins = evidence.torn_alignment_bytes
    if begins is not None:
        return begins < thresholds.ALIGNED_BYTES
    here, elsewhere = _looks(evidence)
    return "torn" in elsewhere.values() and "torn" not in here.values()


def _may_be_view(case: CaseView) -> bool:
    """Whether any instrument saw it share the source's memory."""
    looks = [
        look
        for _, evidence in seen(case.result.early_write)
        for sizes in _looks(evidence)
        for look in sizes.values()
    ]
    owners = [word for word, _ in case.owners]
    return "view" in (*owners, *case.tried_words, *looks)


def _is_view_if_aligned(case: CaseView) -> bool:
    """Whether aligned memory decides: known of the views that are copies of other memory only."""
    aligned = case.tried.evidence.aligned if case.tried is not None else None
    return case.owner == "view" or (aligned is not None and aligned.verdict == "view")


def _where_text(ranked: Sequence[CaseView]) -> str:
    """What a sentence must say to be true of every path in it."""
    how = where(ranked[0])
    if how is Where.ANY:
        return ""
    if how is Where.UNALIGNED:
        return f", if {UNALIGNED}"
    copies = words.several(ranked, "it copies", "they copy")
    elsewhere = "aligned x gives a view" if all(map(_is_view_if_aligned, ranked)) else "not always"
    return f", if {copies} ({elsewhere})"


def _advice(cases: Cases, ranked: Sequence[CaseView]) -> str:
    whole = or_else(for_each_producer(ranked, lambda case: _whole_copy(cases, case)))
    if where(ranked[0]) is not Where.COPIED:
        return f"Wait for the result before you write the source.{whole}"
    if not whole:
        free = [case for case in ranked if case.promise != "copy"]  # no code asks for a copy
        whole = or_else(for_each_producer(free, lambda case: _never_copied(cases, case)))
    return (
        "A wait for the result helps only if it was copied. Otherwise the result shares memory with"
        f" the source: do not write the source while the result is used.{whole}"
    )


def _whole_copy(cases: Cases, case: CaseView) -> tuple[str, str]:
    """A copy that cannot be torn: one that is safe, and not only was whole when it was tried."""
    other = cases.instead(case, lambda other: _is_safe_copy(other) and cases.copies(other))
    return advised(case, other, "is not torn")


def _never_copied(cases: Cases, case: CaseView) -> tuple[str, str]:
    """What shares the memory wherever it works, and so is the same everywhere."""
    other = cases.instead(case, lambda other: _refuses_to_copy(cases, other))
    return advised(case, other, "never copies: it is a view or refuses")


def _refuses_to_copy(cases: Cases, case: CaseView) -> bool:
    return case.owner == "view" and (
        case.tried_words == {"view", "refused"} or (cases.holds(case) and case.forbids_copy)
    )


def _is_safe_copy(case: CaseView) -> bool:
    early_write = case.result.early_write
    return case.owner == "copy" and early_write is not None and early_write.verdict == "safe"


def _torn(case: CaseView) -> list[EarlyWrite]:
    """What the processes tell that saw a torn copy."""
    return [evidence for word, evidence in seen(case.result.early_write) if word == "unsafe"]


def _looks(evidence: EarlyWrite) -> tuple[dict[str, str], dict[str, str]]:
    """What was seen at each size, of aligned sources and of others."""
    return evidence.sizes_bytes or {}, evidence.unaligned_bytes or {}


def _torn_alignment(case: CaseView) -> float | None:
    found = (evidence.torn_alignment_bytes for evidence in _torn(case))
    return next((begins for begins in found if begins is not None), None)


def _torn_bytes(case: CaseView) -> int:
    """The smallest size at which a torn copy was seen by the first process; 0 if not known."""
    torn = [
        _bytes(size) or 0
        for evidence in _torn(case)[:1]
        for sizes in _looks(evidence)
        for size, look in sizes.items()
        if look == "torn"
    ]
    return min(filter(None, torn), default=0)


def _bytes(size: str) -> int | None:
    """The key of a size as a number; a file may hold anything in its place."""
    return int(size) if size.isdecimal() and len(size) <= MOST_DIGITS else None


def _how_sure(torn_bytes: int) -> tuple[bool, int]:
    """Sorts copies that are torn most surely first, and of these the smallest.

    Small copies are tried several times, until one is torn: that may have been one of many. Large
    ones are tried once. What is torn at a larger size only is torn the more surely at it.
    """
    at_once = torn_bytes >= TRIED_ONCE_BYTES
    return not at_once, torn_bytes if at_once else -torn_bytes


def seen_after_write(result: Result) -> list[str]:
    told = []
    for word, evidence in seen(result.early_write):
        looks = [
            ", ".join(f"{_size(size)} {what}" for size, what in sizes.items()) + of
            for sizes, of in zip(
                _looks(evidence), ("", " of a source that is not aligned"), strict=True
            )
            if sizes
        ]
        how = f"written right after the call: {'; '.join(looks)}" if looks else word
        told.append(f"{how} ({ONCE})")
    return told


def _size(size: str) -> str:
    number = _bytes(size)
    return size if number is None else size_text(number)


def expected_copy(found: FindingRecord, result: Result) -> str:
    text = "The result is a view, which shows every write to `x`, or a copy, which shows none."
    open_ = f"{LIKE_OTHERS} The specification does not say when a copy must be complete."
    return (
        f"{expect(text, open_)(found, result)} {ASYNCHRONOUS.get(result.case.consumer, '')}".strip()
    )


TORN = """
copies, torn = 0, False
end = perf_counter() + 20
while not torn and copies < 1000 and perf_counter() < end:
    <create>
    before = <values of x>
    y = <code>
    <write of x>
    <wait of y>
    copied = <copied>
    copies += copied
    torn = copied and bool((before != <flat_values>).any())
print("a write to x right after the call changed a copy:", torn, "- copies made:", copies)
return torn
"""
SYMPTOMS = {UNALIGNED: " when x is not aligned", COPIED: " when it copies"}


def show_torn_copy(subject: Subject, _: Subject | None, found: FindingRecord) -> Effect:
    """Where the address decides whether it is a copy at all, the case's own array is made at one
    that is copied, if it is large enough; else the array of which a process saw a torn copy.
    """
    owned, size = subject.result.ownership, number(found, "size_bytes") or 0
    if owned and owned.verdict == "varies" and CaseView(0, subject.result).size_bytes >= size:
        source = subject.create("copy")
    else:
        looks = [evidence for _, evidence in seen(subject.result.early_write)]
        made = next((look for look in looks if look.create is not None), EarlyWrite())
        subject = subject.as_made(made)
        source = subject.create_by(made)
    told_apart = subject.has("address", "x") and subject.has("address", "y")
    body = subject.filled(
        TORN,
        create=source,
        # A view must show the write.
        copied=subject.filled("<address of y> != <address of x>") if told_apart else "True",
        flat_values=flat_values(subject, "y") or subject.said("values", "y"),
    )
    symptom = SYMPTOMS.get(str(found.evidence.get("only_where")), "")
    return Effect(f"{subject.code} still reads x after it has returned{symptom}", body, subject)


RULES = (
    Rule(
        "DLP020",
        "unsafe-copy",
        "error",
        unsafe_copy,
        expected_copy,
        show_torn_copy,
        seen_after_write,
        needs="early_write",
        other_arrays=True,
        made_again=True,
    ),
)
