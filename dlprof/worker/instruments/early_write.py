"""Early write: may the source be written as soon as a copying import has returned?

A copy that is still being read when the source changes is torn. The source is written, by its own
framework's in-place write, right after the call returned, at sizes from 4 KiB to 256 MiB; the
result is then waited for and compared with what the source held before. Proof of an unsafe copy is
one changed value, if the same conversion without a write changes none; no changed value does not
prove that there is no race. What was whole, or a view, is tried again from a source one element
further, since another way of copying may serve memory that is not aligned. It cannot tell for
views (which must change), and for sources that their framework does not let be written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dlprof.probes.base import DTYPES
from dlprof.probes.capsule import alignment
from dlprof.protocol.messages import unknown
from dlprof.worker import memory
from dlprof.worker.subject import Subject, lies_within

SIZES_BYTES = (4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20)
REPEATS_BYTES = 8 << 20
"""Sizes are repeated until so many bytes have been converted, once at least."""
MOST_REPEATS = 8
VIEW_BYTES = 4 << 10
"""What is a view at a larger size than this is taken to be one at every larger size."""

LARGE_BYTES = 128 << 20
"""Sizes from here on take seconds; they are tried once for each import, whatever the export."""

MOSTLY = 0.5
"""From this share of ones on, zeros show more."""
BLOCK_WORDS = 8 << 10
"""Of large arrays sums are compared, of so many words of 8 bytes each."""

ORDINARY, UNALIGNED = "C", "sliced"

CHANGED = "changed without a write"
CONTROLS = 2
"""A torn copy counts if so many more conversions than it took, without a write, change nothing."""
REASONS = {
    CHANGED: "the result differs from the source without a write, too",
    "immutable": "the source cannot be written",
}

_tried_large: set[tuple[str, str]] = set()


@dataclass
class Tried:
    """What was seen at each size in bytes: of the source that was asked for, and of one that is not
    aligned.
    """

    here: dict[int, str] = field(default_factory=dict)
    elsewhere: dict[int, str] = field(default_factory=dict)
    torn_at: set[int] = field(default_factory=set)
    """Bytes that divide the addresses of the sources of torn copies."""

    def torn(self) -> tuple[int, bool] | None:
        """The size at which a copy was torn, and whether that was elsewhere; None if none was."""
        for looks in (self.here, self.elsewhere):
            found = next((size for size, seen in looks.items() if seen == "torn"), None)
            if found is not None:
                return found, looks is self.elsewhere
        return None


def measure(subject: Subject, sizes_bytes: Sequence[int] = SIZES_BYTES) -> dict[str, Any]:
    """Verdict ``safe``, ``unsafe`` or ``unknown``; the evidence holds the sizes that were tried."""
    if not subject.import_.returns_array:
        return unknown("the call leaves no array behind to compare")
    subject.check_own()
    if subject.is_one_array:
        sizes_bytes = [subject.spec.size_bytes] if subject.spec.size_bytes else []
    elsewhere = _elsewhere(subject)
    tried = _try_sizes(subject, elsewhere, sizes_bytes)
    found = judge(tried)
    torn = tried.torn()
    if torn is not None:
        size, is_elsewhere = torn
        source = elsewhere if is_elsewhere and elsewhere is not None else subject
        found["evidence"]["torn_layout"] = source.spec.layout
        if tried.torn_at:
            found["evidence"]["torn_alignment_bytes"] = min(tried.torn_at)
        found["evidence"] |= _of_size(source, size).made()
    return found


def _try_sizes(subject: Subject, elsewhere: Subject | None, sizes_bytes: Sequence[int]) -> Tried:
    tried = Tried()
    way = (subject.consumer.name, subject.import_.name)
    for size in sizes_bytes:
        if size >= LARGE_BYTES and "view" in tried.here.values():
            break  # so it is at this size, and elsewhere is not tried at it
        if size >= LARGE_BYTES and way in _tried_large:
            tried.here[size] = "tried on another path of this import"
            break
        seen = tried.here[size] = _try_size(subject, size, tried.torn_at)
        if seen in ("whole", "view") and size < LARGE_BYTES and elsewhere is not None:
            tried.elsewhere[size] = _try_elsewhere(elsewhere, size, tried.torn_at)
        looks = {seen, tried.elsewhere.get(size, seen)}
        if looks & {"torn", "immutable"} or (looks == {"view"} and size > VIEW_BYTES):
            break
        if size >= LARGE_BYTES:
            _tried_large.add(way)
    return tried


def _elsewhere(subject: Subject) -> Subject | None:
    """The same conversion of memory that is not aligned; None where it is a question of its own."""
    spec = subject.spec
    if subject.is_one_array or spec.layout != ORDINARY or spec.device != "cpu":
        return None
    return replace(subject, spec=replace(spec, layout=UNALIGNED))


def _try_elsewhere(subject: Subject, size_bytes: int, torn_at: set[int]) -> str:
    try:
        return _try_size(subject, size_bytes, torn_at)
    except Exception:  # noqa: BLE001 - any framework, any error: it refuses that memory
        return "refused"


def judge(tried: Tried) -> dict[str, Any]:
    """The verdict on what was seen at each size."""
    evidence = {"sizes_bytes": {str(size): seen for size, seen in tried.here.items()}}
    if tried.elsewhere:
        evidence["unaligned_bytes"] = {str(size): seen for size, seen in tried.elsewhere.items()}
    looks = [*tried.here.values(), *tried.elsewhere.values()]
    if "torn" in looks:
        return {"verdict": "unsafe", "evidence": evidence}
    reason = next((why for seen, why in REASONS.items() if seen in looks), "no size was copied")
    if "whole" in looks and CHANGED not in looks:
        return {"verdict": "safe", "evidence": evidence}
    # Nobody can write it, or it is a view wherever it could be made.
    moot = set(looks) <= {"immutable", "view", "refused"} and bool(looks)
    return {"verdict": "unknown", "evidence": {**evidence, "reason": reason, "moot": moot}}


def _try_size(subject: Subject, size_bytes: int, torn_at: set[int]) -> str:
    """``whole``, ``torn``, ``view``, ``immutable`` or why it was not tried.

    ``torn_at`` is given the bytes that divide the address of a source whose copy was torn.
    """
    other = _of_size(subject, size_bytes)
    try:
        memory.check_room(other.spec)
    except memory.TooLarge:
        return "no memory"
    value = _value_that_shows(other)
    seen, kept = "whole", _Kept(size_bytes >= LARGE_BYTES and not subject.is_one_array)
    for tries in range(1, 1 + max(1, min(MOST_REPEATS, REPEATS_BYTES // size_bytes))):
        seen, address = _try_once(other, kept, value)
        if seen == "torn":
            # A conversion may be wrong by itself, and only now and then.
            controls = tries + CONTROLS if size_bytes < LARGE_BYTES else 1
            calm = [_try_once(other, kept, None)[0] for _ in range(controls)]
            if "torn" in calm:
                return CHANGED
            torn_at |= {alignment(address)} if address else set()
            return "torn"
        if seen != "whole":
            break
    return seen


def _of_size(subject: Subject, size_bytes: int) -> Subject:
    return subject.of_elements(max(1, size_bytes // DTYPES[subject.spec.dtype]))


class _Kept:
    """Values of a source, to be compared when it has been written: in the same memory each time,
    or as sums of blocks (``by_sums``), since new pages are slow to come by.

    Sums are for the values that probes make: those of a user's own array may cancel each other.
    """

    def __init__(self, by_sums: bool) -> None:
        self._by_sums = by_sums
        self._values: Any = None
        self._sums: list[int] = []

    def keep(self, values: Any, is_view: bool) -> None:
        """``is_view``: whether they would change with the source."""
        if self._by_sums:
            self._values, self._sums = values[:0].copy(), _sums(values)
        elif not is_view or self._values is None:
            self._values = values.copy() if is_view else values
        else:
            self._values[...] = values
        self._nbytes = values.nbytes

    def is_like(self, values: Any, has_dtype: bool) -> bool:
        """Whether ``values`` have as many bytes, and the same dtype if the source has one."""
        return values.nbytes == self._nbytes and not (
            has_dtype and values.dtype != self._values.dtype
        )

    def equal(self, values: Any) -> bool:
        if self._by_sums:
            return _sums(values) == self._sums
        return bool((_words(values) == _words(self._values)).all())


def _words(values: Any) -> Any:
    # Sizes are multiples of 8 bytes; wide words make the comparison's own array small.
    return values.reshape(-1).view("uint64" if values.nbytes % 8 == 0 else "uint8")


def _sums(values: Any) -> list[int]:
    """Of each block of words, modulo their range."""
    words = _words(values)
    whole = len(words) // BLOCK_WORDS * BLOCK_WORDS
    sums = words[:whole].reshape(-1, BLOCK_WORDS).sum(axis=1, dtype="uint64")
    return [*sums.tolist(), int(words[whole:].sum(dtype="uint64"))]


def _value_that_shows(subject: Subject) -> int:
    """What to write: values that the source has already would hide a torn copy.

    Those that probes make are of all kinds; a user's own array may be full of ones.
    """
    if not subject.is_one_array:
        return 1
    source = subject.make_another()
    before = subject.producer.to_numpy(source).copy()
    if subject.producer.write(source, 1) is NotImplemented:
        return 1
    same = _words(subject.producer.to_numpy(source)) == _words(before)
    return 0 if same.mean() > MOSTLY else 1


def _try_once(subject: Subject, kept: _Kept, value: int | None) -> tuple[str, int | None]:
    """What became of one copy, and the address of its source; it is written unless ``value`` is
    None.
    """
    source = subject.make_another()
    begins = subject.producer.pointer(source)
    before = subject.producer.to_numpy(source)
    kept.keep(before, is_view=begins in (None, before.ctypes.data))
    del before
    convert = subject.converting(source)
    result = convert()
    if value is not None and subject.producer.write(source, value) is NotImplemented:
        return "immutable", begins
    subject.wait_for(result)
    address = subject.consumer.pointer(result)
    begins_now = subject.producer.pointer(source)
    located = address is not None and begins_now is not None
    if located and lies_within(address or 0, begins_now or 0, source, subject.spec):
        return "view", begins
    after = subject.consumer.to_numpy(result)
    if not kept.is_like(after, subject.producer.dtype(source) is not None):
        return "other dtype", begins
    if kept.equal(after):
        return "whole", begins
    # What lies elsewhere is a copy, whatever it shows later: it may still be read.
    follows = not located and _follows(subject, source, result, value)
    return ("view" if follows else "torn"), begins


def _follows(subject: Subject, source: Any, result: Any, value: int | None) -> bool:
    """Whether a result that has been waited for, and of which nobody knows where it is, shows a
    later write: then it is a view.
    """
    if value is None:
        return False
    before = subject.consumer.to_numpy(result).copy()
    subject.producer.write(source, 1 - value)
    return bool((_words(subject.consumer.to_numpy(result)) != _words(before)).any())
