"""What an instrument saw of a case, process by process, in words: how sure a finding is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dlprof.analysis.case_view import seen
from dlprof.analysis.changed import first
from dlprof.analysis.owner_times import by_process, medians_ns
from dlprof.analysis.quantity import plain_time, size_text
from dlprof.session.evidence import Lifetime, Ownership
from dlprof.session.model import Result
from dlprof.text.clean import clean, first_line

LONGEST = 300
MOST = 12
SIZE = re.compile("[0-9]{1,18}")
DIAGNOSIS = ("ordering", "lifetime", "early_write", "peak_memory")
ONCE = "seen once, in a process of its own, at the first shape of each path"
DROPPED = "the source was dropped, its memory used again, and the result read once more"
COMPARED = "shape and dtype and, where these agree, every element were compared"
AFTERMATH = (
    "new arrays were converted one after the other; the sources, and the results that were held,"
    " were read before and after"
)
SHOWS = {True: "shows", False: "does not show"}
ADDRESS = {True: "at the same address", False: "at another address"}


def first_lines(told: Sequence[str]) -> list[str]:
    """The lines as they may be shown, and how many more there are."""
    shown = [clean(line, LONGEST) for line in told[:MOST]]
    more = len(told) - MOST
    return [*shown, f"and {more:,} more processes"] if more > 0 else shown


def side_by_side(result: Result, against: Result) -> list[str]:
    """The medians of each process that timed both: a load of the machine slows both alike."""
    these, those = (medians_ns(one) for one in (result, against))
    both = [
        f"{plain_time(these[round_])} against {plain_time(those[round_])}"
        for round_ in sorted(these.keys() & those.keys())
    ]
    more = len(both) - MOST
    if len(both) <= 1:
        return []
    rest = f" and {more:,} more" if more > 0 else ""
    return [f"round by round, in fresh processes: {', '.join(both[:MOST])}{rest}"]


def ownership(result: Result) -> list[str]:
    """Every process looks; of processes that agree the session keeps what the first one saw."""
    verdict = result.ownership
    if verdict is None:
        return []
    told = [_look(word, evidence) for word, evidence in seen(verdict)]
    if verdict.verdict == "varies":
        took = [time for _, time in by_process(result)] or [None] * len(told)
        return [
            f"process {place} of {len(told)}: {one}"
            + (f"; {plain_time(ns)} per call" if ns else "")
            for place, (one, ns) in enumerate(zip(told, took, strict=True), 1)
        ]
    count = len(result.rounds)
    if count <= 1:
        return [f"in one process: {one}" for one in told]
    in_all = _in_all(verdict.evidence)
    return [
        f"the same verdict in {count} fresh processes{in_all}; in the first: {one}" for one in told
    ]


def _in_all(evidence: Ownership) -> str:
    """Where the arrays of several processes began, where that was not the same."""
    known = [f"{size:.0f}" for size in evidence.alignments if size]
    if len(known) < 2:  # noqa: PLR2004 - several
        return ""
    return f", of sources at multiples of {', '.join(known[:-1])} and {known[-1]} bytes"


def _look(word: str, evidence: Ownership) -> str:
    writes = evidence.source_write_shows, evidence.result_write_shows
    facts = [
        *_writes(*writes),
        "" if evidence.same_address is None else ADDRESS[evidence.same_address],
        _alignment(evidence),
    ]
    told = "; ".join(filter(None, facts))
    return f"a {word}" + (f": {told}" if told else "")


def _writes(of_source: object, of_result: object) -> list[str]:
    if of_source is of_result and isinstance(of_source, bool):
        how = "a write to either shows" if of_source else "a write to neither shows"
        return [f"{how} in the other"]
    return [
        f"a write to {one} {SHOWS[shows]} in {other}"
        for one, other, shows in (
            ("the source", "the result", of_source),
            ("the result", "the source", of_result),
        )
        if isinstance(shows, bool)
    ]


def _alignment(evidence: Ownership) -> str:
    known = evidence.source_alignment_bytes
    return f"the source began at a multiple of {known:.0f} bytes" if known else ""


def ownership_by_address(result: Result) -> list[str]:
    """What every process saw, and what was tried of memory that begins elsewhere."""
    found = result.alignment
    if found is None or found.verdict != "dependent":
        return ownership(result)
    tried = [
        f"{look.verdict} of a source at a multiple of {look.alignment_bytes:.0f} bytes"
        for _, look in found.evidence.places
        if look.alignment_bytes and look.verdict
    ]
    return (
        [*ownership(result), f"tried once more: {', '.join(tried)}"] if tried else ownership(result)
    )


def lifetime(result: Result) -> list[str]:
    evidence = result.lifetime.evidence if result.lifetime else Lifetime()
    if evidence.changed_after_drop:
        return [f"{DROPPED}: its values had changed ({ONCE})"]
    return [f"{evidence.reason} ({ONCE})"] if evidence.reason is not None else []


def retained(result: Result) -> list[str]:
    evidence = result.lifetime.evidence if result.lifetime else Lifetime()
    if evidence.conversions is None:
        return []
    runs = (
        f"counted over {evidence.runs or 2:.0f} runs of {evidence.conversions:.0f} conversions"
        " each, after one to warm up"
    )
    return [f"{runs}; the smallest growth counts ({ONCE})"]


SOURCES = {"sizes_bytes": "", "unaligned_bytes": " of a source that is not aligned"}


def early_write(result: Result) -> list[str]:
    told = []
    for word, evidence in seen(result.early_write):
        looks = [
            f"{', '.join(f'{_size(size)} {what}' for size, what in sizes.items())}{where}"
            for name, where in SOURCES.items()
            if (sizes := getattr(evidence, name))
        ]
        if looks:
            told.append(f"written right after the call: {'; '.join(looks)} ({ONCE})")
        elif word:
            told.append(f"{word} ({ONCE})")
    return told


def _size(size: object) -> str:
    return size_text(int(str(size))) if SIZE.fullmatch(str(size)) else str(size)


def values(result: Result) -> list[str]:
    if result.values is None:
        return []
    looks = seen(result.values)
    words = [word for word, _ in looks]
    besides = any(first(evidence.changed) for _, evidence in looks)
    how = AFTERMATH if besides else COMPARED
    if len(words) > 1:
        return [f"{how} in {len(words)} processes: {', '.join(words)}"]
    return [f"{how} in one process, the first"]


def read_only(result: Result) -> list[str]:
    return ["both sides were asked whether they can be written", *ownership(result)]


def ordering(result: Result) -> list[str]:
    return [f"work of known length was queued before the call ({ONCE})"] if result.ordering else []


def peak_memory(result: Result) -> list[str]:
    return [f"memory was watched during the call ({ONCE})"] if result.peak_memory else []


def handshake(result: Result) -> list[str]:
    count = len(result.handshake)
    return [f"recorded in one process, {count} steps: see Handshake"] if count else []


def end(result: Result) -> list[str]:
    if result.status != "ok":
        return [f"{result.status}: {first_line(result.reason)}"]
    verdicts = (getattr(result, name) for name in DIAGNOSIS)
    reasons = (one.evidence.reason or "" for one in verdicts if one is not None)
    return [f"{first_line(reason)} ({ONCE})" for reason in reasons if " during " in reason]
