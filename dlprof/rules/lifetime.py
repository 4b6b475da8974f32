"""Does it live long enough, and not too long? Rules on lifetime and on sources written early."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from dlprof.quantity import size_text
from dlprof.rules import words
from dlprof.rules.advice import Advise, for_each_producer
from dlprof.rules.known import Known, mapping, number, seen
from dlprof.rules.rule import Claim
from dlprof.rules.survey import Survey, groups

DIED_OF_READING = re.compile(r"killed by SIG(SEGV|BUS|ABRT|TRAP|ILL|FPE)\b")
"""Signals that bad memory raises; others come from outside."""


def memory_retained(survey: Survey) -> Iterator[Claim]:
    """Every conversion leaves something behind after its result is gone."""
    leaking = [case for case in survey.cases if _verdict(case) == "retained"]
    for cases in groups(leaking, lambda case: case.way_in):
        ranked = sorted(cases, key=_kept_bytes, reverse=True)
        found = _evidence(ranked[0])
        yield Claim(
            "error" if _kept_bytes(ranked[0]) >= LEAST_BYTES else "warning",
            ranked,
            f"{words.codes(ranked)} {words.several(ranked, 'leaves', 'leave')} something behind"
            f" {_how_often(ranked)}, after the result was dropped"
            f"{words.shared(ranked, _kept_text)}",
            {name: found.get(name) for name in (*_KEPT, "conversions")},
            for_each_producer(
                ranked, lambda case: _instead(case, survey.instead(case), "leaves nothing")
            ),
        )


def _instead(case: Known, other: Known | None, what: str) -> tuple[str, str]:
    """The code that is advised, and the advice; nothing where there is no other."""
    return ("", "") if other is None else (other.code, words.instead_of(case, other, what))


_KEPT = ("bytes_per_conversion", "references_per_conversion", "objects_per_conversion")
EACH = 0.9
"""So much for each conversion is one for each: a run counts a few more or less."""
LEAST = 0.1
"""Fewer references or blocks for each conversion are nothing to tell: counting leaves some."""
LEAST_BYTES = 64
"""Fewer bytes for each conversion are an allocator's own."""
SIZE_BYTES = 65536.0
"""Of the array that was converted, where an older session does not say."""


def _how_often(cases: Sequence[Known]) -> str:
    each = all(_kept_arrays(case) >= EACH for case in cases)
    return "at every conversion" if each else "at some conversions"


def _kept_arrays(case: Known) -> float:
    """How many arrays, references or blocks stay for each conversion, whichever is most."""
    kept, references, objects = (number(_evidence(case).get(name)) or 0.0 for name in _KEPT)
    size = number(_evidence(case).get("size_bytes")) or SIZE_BYTES
    return max(kept / size, references, objects)


def _kept_bytes(case: Known) -> float:
    return number(_evidence(case).get("bytes_per_conversion")) or 0.0


def _kept_text(case: Known) -> str:
    kept, references, objects = (number(_evidence(case).get(name)) or 0.0 for name in _KEPT)
    texts = [size_text(round(kept))] if kept >= LEAST_BYTES else []
    texts += [f"{_count(references)} references to the source"] if references >= LEAST else []
    texts += [f"{_count(objects)} blocks of Python's memory"] if objects >= LEAST else []
    return ", ".join(texts) + ("" if _kept_arrays(case) >= EACH else " for each on average")


def _count(number_: float) -> str:
    return f"{number_:.0f}" if number_ >= EACH else f"{number_:.2g}"


def dangling(survey: Survey) -> Iterator[Claim]:
    """The result's memory is gone with its source."""
    lost = [case for case in survey.cases if is_dangling(case)]
    for cases in groups(lost, lambda case: _loser(survey, case)):
        reason = _evidence(cases[0]).get("reason")
        yield Claim(
            "error",
            cases,
            f"{words.codes(cases)} {words.several(cases, 'does', 'do')} not keep the source alive:"
            f" when the source was dropped and the result read, {_how_lost(cases)}"
            f"{_all_lose(survey, cases[0])}",
            {"reason": reason if isinstance(reason, str) else None},
            "Keep the source as long as the result."
            + _or(cases, lambda case: _instead(case, survey.instead(case), "keeps it")),
        )


def _or(cases: Sequence[Known], advise: Advise) -> str:
    """What is advised besides what always helps; empty where there is nothing."""
    other = for_each_producer(cases, advise)
    return f" Or: {other}" if other else ""


def _how_lost(cases: Sequence[Known]) -> str:
    changed = {_evidence(case).get("changed_after_drop") is True for case in cases}
    if len(changed) > 1:
        return "its values changed or its process died of it"
    return "its values changed" if changed.pop() else "its process died of it"


def _loser(survey: Survey, case: Known) -> tuple[str, ...]:
    """Whose fault it is: the producer's where views by several ways in are all lost."""
    return case.pair[:1] if _all_lose(survey, case) else case.way_in


def _all_lose(survey: Survey, case: Known) -> str:
    views = [other for other in survey.arrays[case.array] if other.owner == "view"]
    alone = len({view.way_in for view in views}) == 1
    if alone or case not in views or not all(map(is_dangling, views)):
        return ""
    return f"; so it is with every measured view from {case.pair_text}"


def is_dangling(case: Known) -> bool:
    """A change was seen, or the process died of a signal that bad memory raises."""
    if _verdict(case) != "dangling":
        return False
    evidence = _evidence(case)
    died = DIED_OF_READING.match(str(evidence.get("reason"))) is not None
    return evidence.get("changed_after_drop") is True or died


def _verdict(case: Known) -> str | None:
    return case.result.lifetime.verdict if case.result.lifetime else None


def _evidence(case: Known) -> dict[str, object]:
    return dict(case.result.lifetime.evidence) if case.result.lifetime else {}


def unsafe_copy(survey: Survey) -> Iterator[Claim]:
    """The copy still reads its source after the call has returned."""
    unsafe = [case for case in survey.cases if _torn_bytes(case) is not None]
    for cases in groups(unsafe, _way_of_tearing):
        ranked = sorted(cases, key=lambda case: _how_sure(_torn_bytes(case) or 0))
        size = _torn_bytes(ranked[0])
        at = f" of {size_text(size)}" if size else ""
        if _torn_layout(ranked[0]) == "sliced" != ranked[0].result.case.layout:
            at += ", of a source that is not aligned"
        smallest = min(ranked, key=lambda case: _torn_bytes(case) or math.inf)
        reads = words.several(ranked, "reads its", "read their")
        yield Claim(
            "error",
            ranked,
            f"{words.codes(ranked)} still {reads} source after the call has returned"
            f"{_where_copied(ranked)}{words.of_first(ranked)}: a write right after it changed"
            f" the copy{at}" + _already(smallest, ranked[0]),
            {"size_bytes": size},
            "Wait for the result before you write the source."
            + _or(ranked, lambda case: _whole_copy(survey, case)),
        )


def _way_of_tearing(case: Known) -> tuple[str, str, bool]:
    return case.pair[1], case.result.case.device, case.owner == "view"


def _where_copied(cases: Sequence[Known]) -> str:
    """Of views that they are copies of other memory."""
    if cases[0].owner != "view":
        return ""
    several = words.several(cases, "it copies: it is a view", "they copy: they are views")
    return f" where {several} of aligned memory"


def _whole_copy(survey: Survey, case: Known) -> tuple[str, str]:
    """A copy that cannot be torn: one that is safe, and not only was whole when it was tried."""
    other = survey.instead(case, lambda other: _is_safe_copy(other) and survey.copies(other))
    return _instead(case, other, "is not torn")


def _torn_layout(case: Known) -> object:
    evidences = (evidence for word, evidence in seen(case.result.early_write) if word == "unsafe")
    return next((evidence.get("torn_layout") for evidence in evidences), None)


def _how_sure(torn_bytes: int) -> tuple[bool, int]:
    """Sorts copies that are torn most surely first, and of these the smallest.

    Small copies are tried several times, until one is torn: that may have been one of many. Large
    ones are tried once. What is torn at a larger size only is torn the more surely at it.
    """
    at_once = torn_bytes >= TRIED_ONCE_BYTES
    return not at_once, torn_bytes if at_once else -torn_bytes


TRIED_ONCE_BYTES = 8 << 20
"""From here on the early write tries a size once: it was torn at the first try."""


def _already(smallest: Known, first: Known) -> str:
    size = _torn_bytes(smallest)
    if not size or size >= (_torn_bytes(first) or 0):
        return ""
    return f"; that of {words.code(smallest)} already at {size_text(size)}, in one of a few tries"


def _is_safe_copy(case: Known) -> bool:
    early_write = case.result.early_write
    return case.owner == "copy" and early_write is not None and early_write.verdict == "safe"


def _torn_bytes(case: Known) -> int | None:
    """The smallest size at which a torn copy was seen (0: not known); None if none was."""
    for word, evidence in seen(case.result.early_write):
        if word == "unsafe":
            looks = (mapping(evidence.get(name)) for name in ("sizes_bytes", "unaligned_bytes"))
            torn = [
                int(size)
                for sizes in looks
                for size, what in sizes.items()
                if what == "torn" and re.fullmatch(r"\d{1,18}", str(size))
            ]
            return min(torn, default=0)
    return None
