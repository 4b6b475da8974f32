"""What is worth knowing of single paths: modes, setup, alignment, doubts, notes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from dlprof.analysis.quantity import plain_time, size_text
from dlprof.reports.document import Lines, Section
from dlprof.reports.paths import Array, Path
from dlprof.text.lists import listed

WORDS = {"view": "a view", "copy": "a copy", "refused": "refused"}


def notes_section(arrays: Sequence[Array]) -> tuple[Section, ...]:
    """One line for each note, with the paths that share it."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for array in arrays:
        for path in array.paths:
            for note in _notes(path):
                found[note][path.code] = None
    lines = tuple(f"{listed(codes)}: {note}" for note, codes in found.items())
    return (Section("Notes", (Lines(lines),)),) if lines else ()


def _notes(path: Path) -> Iterator[str]:
    result = path.case.result
    if result.case.setup:
        yield f"needs {' / '.join(result.case.setup.strip().splitlines())}"
    yield from _modes(path)
    yield from _alignment(path)
    yield from _kept(path)
    for rule in path.safety.suspected:
        yield f"{rule}? Others into this framework break the rule, and this path may break it too."
    if path.safety.unknown and path.is_timed:
        yield f"not called safe: {path.safety.unknown}"
    for condition in path.safety.conditions:
        yield f"safe only if you do not write to the result ({condition})"
    if path.is_timed and result.reason:
        yield f"{result.status}: {result.reason.strip().splitlines()[0]}"
    if result.in_company is not None:
        yield f"beside other cases: {result.in_company.status}: {result.in_company.reason}"
    if result.interrupted:
        yield f"interrupted: {result.interrupted}"
    for note in result.notes:
        yield note.strip().splitlines()[0] if note.strip() else note


def _modes(path: Path) -> Iterator[str]:
    ready = path.case.ready
    if ready is None or not ready.modes:
        return
    told = [
        plain_time(mode.median_ns)
        + (
            ""
            if mode.page_faults_per_call is None
            else f" with {mode.page_faults_per_call:,.0f} page faults"
        )
        for mode in ready.modes
    ]
    yield f"{len(told)} modes: {', '.join(told)}"


def _alignment(path: Path) -> Iterator[str]:
    tried = path.case.tried
    if tried is None or not tried.says("dependent", "inconstant"):
        return
    told = [
        f"{' or '.join(WORDS.get(word, word) for word in tried.evidence.words_at(place))}"
        f" {'at any address' if look.alignment_bytes is None else _at(look.alignment_bytes)}"
        for place, look in tried.evidence.places
    ]
    yield "; ".join(told)


def _at(bytes_: float) -> str:
    return f"where the array begins at a multiple of {bytes_:.0f} bytes"


def _kept(path: Path) -> Iterator[str]:
    fresh = path.case.result.fresh_source
    if fresh is None or not fresh.says("kept"):
        return
    seen = fresh.evidence
    if seen.first_ns is None or seen.second_ns is None:
        return
    of = f" of {size_text(int(seen.size_bytes))}" if seen.size_bytes else ""
    yield (
        f"the first conversion of a new array{of} takes {plain_time(seen.first_ns)},"
        f" the next {plain_time(seen.second_ns)}"
    )
