"""May the source be written as soon as the call has returned? The rule on torn copies."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from enum import Enum

from dlprof.analysis import thresholds
from dlprof.analysis.case_view import PLACES, CaseView, seen
from dlprof.analysis.cases import Cases, groups
from dlprof.analysis.quantity import size_text
from dlprof.rules import observations, words
from dlprof.rules.lifetime import instead, or_else
from dlprof.rules.rule import Claim, Rule
from dlprof.session.evidence import EarlyWrite

UNALIGNED, COPIED = "the source is not aligned", "it copies"


class Where(Enum):
    """Of which sources copies were torn."""

    ANY = "any"
    UNALIGNED = "unaligned"
    """No torn copy of aligned memory was seen."""
    COPIED = "copied"
    """Others are no copies: their results share the source's memory."""


def unsafe_copy(survey: Cases) -> Iterator[Claim]:
    """The copy still reads its source after the call has returned."""
    unsafe = [case for case in survey.cases if _torn_bytes(case) is not None]
    for cases in groups(unsafe, lambda case: (case.pair[1], case.result.case.device, where(case))):
        ranked = sorted(cases, key=lambda case: _how_sure(_torn_bytes(case) or 0))
        size = _torn_bytes(ranked[0])
        at = f" of {size_text(size)}" if size else ""
        at += _source_text(ranked[0])
        smallest = min(ranked, key=lambda case: _torn_bytes(case) or math.inf)
        reads = words.several(ranked, "reads its", "read their")
        yield Claim(
            "error",
            ranked,
            f"{words.codes(ranked)} still {reads} source after the call has returned"
            f"{_where_text(ranked)}{words.of_first(ranked)}: a write right after it changed"
            f" the copy{at}" + _already(smallest, ranked[0]),
            {
                "size_bytes": size,
                "only_where": ONLY_WHERE[where(ranked[0])],
                "torn_alignment_bytes": _torn_alignment(ranked[0]),
            },
            _advice(survey, ranked),
        )


ONLY_WHERE = {Where.ANY: None, Where.UNALIGNED: UNALIGNED, Where.COPIED: COPIED}


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


def _where_text(cases: Sequence[CaseView]) -> str:
    """What a headline must say to be true of every path in it."""
    how = where(cases[0])
    if how is Where.UNALIGNED:
        return f" where {UNALIGNED}"
    if how is Where.ANY:
        return ""
    if all(map(_is_view_if_aligned, cases)):
        several = words.several(cases, "it copies: it is a view", "they copy: they are views")
        return f" where {several} of aligned memory"
    several = words.several(cases, "it copies: it is a view", "they copy: they are views")
    return f" where {several} elsewhere"


def _advice(survey: Cases, cases: Sequence[CaseView]) -> str:
    whole = or_else(cases, lambda case: _whole_copy(survey, case))
    if where(cases[0]) is not Where.COPIED:
        return f"Wait for the result before you write the source.{_begins(survey, cases)}{whole}"
    return SHARED + (whole or or_else(_free(cases), lambda case: _never_copied(survey, case)))


SHARED = (
    "A wait for the result helps only where it was copied. Elsewhere it shares the memory of the"
    " source, and shows every write to it: do not write the source while the result is used."
)


def _begins(survey: Cases, cases: Sequence[CaseView]) -> str:
    """Whose arrays are no aligned sources by themselves, where only other sources are torn."""
    if where(cases[0]) is not Where.UNALIGNED:
        return ""
    found = {
        name: begins
        for name in dict.fromkeys(case.pair[0] for case in cases)
        if (begins := _begins_at(survey, name, cases)) < thresholds.ALIGNED_BYTES
    }
    return "".join(
        f" Arrays of {name} are such sources too: some begin at a multiple of {begins:.0f} bytes"
        " and no more."
        for name, begins in found.items()
    )


def _begins_at(survey: Cases, producer: str, cases: Sequence[CaseView]) -> float:
    """The least alignment that was seen of the producer's own arrays; infinite if none was."""
    own = (
        case for case in cases if case.pair[0] == producer and case.result.case.layout not in PLACES
    )
    torn = [_torn_alignment(case) for case in own if _torn_layout(case) == case.result.case.layout]
    seen_at = [begins for begins in (survey.begins_at(producer), *torn) if begins is not None]
    return min(seen_at, default=math.inf)


def _whole_copy(survey: Cases, case: CaseView) -> tuple[str, str]:
    """A copy that cannot be torn: one that is safe, and not only was whole when it was tried."""
    other = survey.instead(case, lambda other: _is_safe_copy(other) and survey.copies(other))
    return instead(case, other, "is not torn")


def _free(cases: Sequence[CaseView]) -> list[CaseView]:
    """Those that nobody asks for a copy."""
    return [case for case in cases if case.promise != "copy"]


def _never_copied(survey: Cases, case: CaseView) -> tuple[str, str]:
    """What shares the memory wherever it works, and so is the same everywhere."""
    other = survey.instead(case, lambda other: _refuses_to_copy(survey, other))
    return instead(case, other, "never copies, but is a view or refuses")


def _refuses_to_copy(survey: Cases, case: CaseView) -> bool:
    return case.owner == "view" and (
        case.tried_words == {"view", "refused"} or (survey.holds(case) and case.forbids_copy)
    )


def _torn(case: CaseView) -> list[EarlyWrite]:
    """What the processes tell that saw a torn copy."""
    return [evidence for word, evidence in seen(case.result.early_write) if word == "unsafe"]


def _looks(evidence: EarlyWrite) -> tuple[dict[str, str], dict[str, str]]:
    """What was seen at each size, of aligned sources and of others."""
    return evidence.sizes_bytes or {}, evidence.unaligned_bytes or {}


def _torn_layout(case: CaseView) -> str | None:
    return next((evidence.torn_layout for evidence in _torn(case)), None)


def _torn_alignment(case: CaseView) -> float | None:
    found = (evidence.torn_alignment_bytes for evidence in _torn(case))
    return next((begins for begins in found if begins is not None), None)


def _source_text(case: CaseView) -> str:
    """Of which source a torn copy was, where it was not aligned."""
    begins = _torn_alignment(case)
    if begins is not None and begins < thresholds.ALIGNED_BYTES:
        return f", of a source at a multiple of {begins:.0f} bytes and no more"
    if _torn_layout(case) == "sliced" != case.result.case.layout:
        return ", of a source that is not aligned"
    return ""


def _how_sure(torn_bytes: int) -> tuple[bool, int]:
    """Sorts copies that are torn most surely first, and of these the smallest.

    Small copies are tried several times, until one is torn: that may have been one of many. Large
    ones are tried once. What is torn at a larger size only is torn the more surely at it.
    """
    at_once = torn_bytes >= TRIED_ONCE_BYTES
    return not at_once, torn_bytes if at_once else -torn_bytes


TRIED_ONCE_BYTES = 8 << 20
"""From here on the early write tries a size once: it was torn at the first try."""


def _already(smallest: CaseView, first: CaseView) -> str:
    size = _torn_bytes(smallest)
    if not size or size >= (_torn_bytes(first) or 0):
        return ""
    return f"; that of {words.code(smallest)} already at {size_text(size)}, in one of a few tries"


def _is_safe_copy(case: CaseView) -> bool:
    early_write = case.result.early_write
    return case.owner == "copy" and early_write is not None and early_write.verdict == "safe"


def _torn_bytes(case: CaseView) -> int | None:
    """The smallest size at which a torn copy was seen (0: not known); None if none was."""
    for evidence in _torn(case):
        torn = [
            int(size)
            for sizes in _looks(evidence)
            for size, look in sizes.items()
            if look == "torn" and re.fullmatch(r"\d{1,18}", size)
        ]
        return min(torn, default=0)
    return None


RULES = (
    Rule("DLP020", "unsafe-copy", unsafe_copy, needs="early_write", seen=observations.early_write),
)
