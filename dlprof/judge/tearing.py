"""May the source be written as soon as the call has returned? The rule on torn copies."""

from __future__ import annotations

from collections.abc import Iterator

from dlprof.judge.case_view import CaseView, seen
from dlprof.judge.cases import Cases, groups
from dlprof.judge.rule import Rule, expect, finding, number, replacements
from dlprof.judge.safety import Fault, gap
from dlprof.judge.script import Effect, Subject
from dlprof.judge.standards import ASYNCHRONOUS, LIKE_OTHERS
from dlprof.runner.evidence import EarlyWrite
from dlprof.runner.quantity import size_text
from dlprof.runner.session import FindingRecord, Result

UNALIGNED, COPIED = "x is not aligned", "x is copied"
"""Of which sources only copies were torn: no torn copy of aligned memory was seen; or the results
of others are views.
"""


def unsafe_copy(cases: Cases) -> Iterator[FindingRecord]:
    """The copy still reads its source after the call has returned."""
    unsafe = [case for case in cases.looked_at("early_write") if case.is_torn]
    for found in groups(
        unsafe,
        lambda case: (case.pair[1], case.result.case.device, _only_where(case)),
        lambda case: -_torn_bytes(case),
    ):
        worst, only_where = found[0], _only_where(found[0])
        size = _torn_bytes(worst)
        advice = "Wait for the result before you write x."
        if only_where == COPIED:
            advice = "Do not write x while you use the result: it may be a view."
        # Not only was it whole when it was tried: it is safe.
        whole = replacements(
            cases,
            found,
            "is not torn",
            lambda other: _is_whole(other) and cases.copies(other),
        )
        yield finding(
            found,
            ("returns before it finishes reading x", "return before they finish reading x"),
            # A race that was not seen may be there: aligned copies were whole when tried.
            f"(seen only where {only_where})" if only_where == UNALIGNED else "",
            evidence={"size_bytes": size or None, "only_where": only_where or None},
            more=(f"Seen only where {only_where}. " if only_where == COPIED else "")
            + "A write right after the call changed the copy"
            + (f" of {size_text(size)}." if size else ".")
            + f" {worst.how_often('early_write', 'unsafe')}".rstrip(),
            advice=f"{advice}{whole and f' Or: {whole}'}",
        )


def _is_whole(case: CaseView) -> bool:
    """Whether no copy changed with a write after the call had returned."""
    look = case.result.early_write
    return look is not None and look.says("safe") and not gap(case, "early_write")


def _only_where(case: CaseView) -> str:
    """Of which sources copies of the case were torn; empty for any."""
    looks = [look for _, one in seen(case.result.early_write) for look in _looks(one)]
    if "view" in (
        *(word for word, _ in case.kinds_seen),
        *case.alignment_words,
        *(w for _, w in looks),
        *(one.aligned for one in _torn(case)),
    ):
        return COPIED
    # Only an aligned source of the size that was torn tells whether the address decides.
    return UNALIGNED if all(one.aligned == "whole" for one in _torn(case)) else ""


def _torn(case: CaseView) -> list[EarlyWrite]:
    """What the processes tell that saw a torn copy."""
    return [evidence for word, evidence in seen(case.result.early_write) if word == "unsafe"]


def _looks(evidence: EarlyWrite) -> list[tuple[str, str]]:
    """Sizes in bytes and what was seen, of aligned sources and of others."""
    return [*(evidence.sizes_bytes or {}).items(), *(evidence.unaligned_bytes or {}).items()]


def _torn_bytes(case: CaseView) -> int:
    """The smallest size at which a torn copy was seen by the first process; 0 if not known."""
    looks = [look for evidence in _torn(case)[:1] for look in _looks(evidence)]
    return min((int(size) for size, what in looks if what == "torn"), default=0)


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
    torn = copied and bool((before != <flat_values of y>).any())
print("a write to x right after the call changed a copy:", torn, "- copies made:", copies)
return torn
"""


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
    )
    only = {UNALIGNED: " when x is not aligned", COPIED: " when it copies"}
    where = only.get(str(found.evidence.get("only_where")), "")
    return Effect(f"returns before it finishes reading x{where}", body, subject)


RULES = (
    Rule(
        "DLP020",
        "unsafe-copy",
        "error",
        unsafe_copy,
        expected_copy,
        show_torn_copy,
        "early_write",
        Fault(lambda case: case.is_torn, ends_with_wait=True),
        other_arrays=True,
        changes=("unsafe",),
    ),
)
