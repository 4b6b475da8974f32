"""The evidence of each instrument, one record per instrument.

Rules and reports read the declared fields. Other keys of an answer are kept as they are. A value
that is missing, or of another form, is None. Times are in ns, sizes in bytes. The instruments in
``dlprof/worker/instruments/`` explain each key.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    Strict,
    ValidationError,
    WrapValidator,
    model_serializer,
)

from dlprof.protocol.messages import OTHER_AFTER_DROP, SAME, SOURCE_AFTER_DROP
from dlprof.text.json_text import finite

MEMORY_SIGNALS = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGTRAP", "SIGILL", "SIGFPE")
"""Signals that bad memory raises; others come from outside."""
VARIES = "varies"
"""The verdict if processes disagree; ``processes`` then holds the verdict of each."""

DEEPEST = 64
"""Levels of a value without a fixed form. Evidence has four."""
Free = Annotated[Any, BeforeValidator(lambda value: finite(value, DEEPEST))]
"""A value without a fixed form, as JSON."""


class Model(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="allow", populate_by_name=True, allow_inf_nan=False
    )
    __pydantic_extra__: dict[str, Free] = Field(init=False)


def _or_none(value: Any, validate: Callable[[Any], Any]) -> Any:
    try:
        return validate(value)
    except ValidationError:
        return None


T = TypeVar("T")
Maybe = Annotated[T | None, WrapValidator(_or_none)]
"""A value that may be missing; one of another form counts as missing."""


def _packed(value: Any) -> array[float]:
    try:
        found = array("d", value)
    except (TypeError, OverflowError):
        raise ValueError("expected a list of numbers") from None
    if not (math.isfinite(sum(found)) or all(map(math.isfinite, found))):
        raise ValueError("expected finite numbers")
    return found


Samples = Annotated[Sequence[float], PlainValidator(_packed), PlainSerializer(list)]
"""Numbers without an object for each: a large session has millions."""
Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Whole = Annotated[int, Strict(), Field(ge=-(2**63), lt=2**64)]
Flag = Annotated[bool, Strict()]


class Record(Model):
    """Part of an evidence. Only keys that were read are written again."""

    @model_serializer(mode="wrap")
    def _serialize(self, dump: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        return {key: value for key, value in dump(self).items() if key in self.model_fields_set}


class Lost(Record):
    """The end of a worker, and its stage."""

    how: Maybe[str] = None
    """``killed by SIGSEGV (Segmentation fault)``"""
    stage: Maybe[str] = None
    signal: Maybe[Annotated[str, Field(pattern=r"^SIG[A-Z0-9]{2,9}$")]] = None
    exit_code: Maybe[Whole] = None
    limit_s: Maybe[Number] = None

    def __str__(self) -> str:
        return f"{self.how} during {self.stage}"

    @property
    def is_of_bad_memory(self) -> bool:
        """Whether the process died of a signal that bad memory raises."""
        return self.signal in MEMORY_SIGNALS


class Evidence(Record):
    """Fields that the evidence of every instrument may have."""

    reason: Maybe[str] = None
    """The reason of the verdict; ``unknown`` always has one."""
    moot: Maybe[Flag] = None
    """Whether the question does not apply, so that ``unknown`` is no gap."""
    worker: Maybe[str] = None
    """The status of the worker that was lost in this instrument."""
    lost: Maybe[Lost] = None
    create: Maybe[str] = None
    """Source text that made the array, if it was not the case's own."""
    created_shape: Maybe[tuple[Whole, ...]] = None
    code: Maybe[str] = None


class Fork(Evidence):
    returned: Maybe[Flag] = None
    """Whether the call returned, so that the wait for its result hangs."""


E = TypeVar("E", bound=Evidence)


class Verdict(Record, Generic[E]):
    """The answer of an instrument in a word, with its evidence."""

    verdict: str
    evidence: E = Field(default_factory=dict, validate_default=True)
    processes: list[Verdict[E]] = []
    """The verdict of each process, if they disagree."""

    @property
    def looks(self) -> tuple[tuple[str, E], ...]:
        """Return each verdict with its evidence: several if processes disagree."""
        found = self.processes if self.verdict == VARIES else [self]
        return tuple((look.verdict, look.evidence) for look in found)

    def first(self, word: str) -> E | None:
        """Return the evidence of the first process with the verdict ``word``."""
        return next((evidence for verdict, evidence in self.looks if verdict == word), None)

    def how_often(self, word: str) -> str:
        """Return ``Seen in 1 of 3 processes.``; empty if all that could see it did."""
        words = [
            verdict
            for verdict, evidence in self.looks
            # A brief look repeats nothing, and sees no leak.
            if word != "retained" or not isinstance(evidence, Lifetime) or evidence.conversions
        ]
        if words.count(word) in (0, len(words)):
            return ""
        return f"Seen in {words.count(word)} of {len(words)} processes."

    def saw(self, word: str) -> bool:
        """Whether this is the verdict of any process."""
        return word in (self.verdict, *(verdict for verdict, _ in self.looks))

    def says(self, *words: str) -> bool:
        """Whether the verdict is one of ``words``."""
        return self.verdict in words


class Ownership(Evidence):
    """``view``, ``copy`` or ``unknown``: whether a write to one array shows in the other."""

    source_alignment_bytes: Maybe[Number] = None
    source_alignments_bytes: Maybe[tuple[Number, ...]] = None
    result_device: Maybe[str] = None
    declared_device: Maybe[str] = None
    """The device of the result by its declaration, if it is elsewhere."""
    crosses_twice: Maybe[Flag] = None
    """Whether all of the array was copied to the host and to a device; by a simulated device."""
    devices: Maybe[tuple[str, ...]] = None
    """The devices of source and result, if these differ."""

    @property
    def alignments(self) -> tuple[float, ...]:
        """Return bytes that divide the source's address, for each process with this verdict."""
        if self.source_alignments_bytes is not None:
            return self.source_alignments_bytes
        alignment = self.source_alignment_bytes
        return () if alignment is None else (alignment,)


class Loaded(Record):
    """The call's host time behind the longest queue, and the length of that queue."""

    host_ns: Maybe[Number] = None
    queued_ns: Maybe[Number] = None


class Ordering(Evidence):
    """The wait of a call: ``host-sync``, ``device-sync``, ``stream-ordered``, ``unordered``,
    ``synchronous`` or ``unknown``.
    """

    values_right: Maybe[Flag] = None
    recorded: Maybe[Flag] = None
    """Whether the record of a simulated device decides, and no times."""
    loaded: Maybe[Loaded] = None
    waits: Maybe[Literal["host-sync", "device-sync"]] = None
    """The wait of an ``unordered`` call, if it has one."""
    waits_in: Maybe[str] = None
    """The producer's call, if that alone waits."""
    waits_for_later: Maybe[Flag] = None
    """Whether the call waits for all work that the producer has queued, also after ``x``."""
    upload_waits: Maybe[Flag] = None
    """Whether a copy to the device waits for other work on the consumer's stream."""
    streams: Maybe[str] = None
    by_streams: Maybe[dict[str, Free]] = None
    size_bytes: Maybe[Whole] = None
    """The size of the array, if it stood for a larger one."""


class Count(Record):
    """The number of different values among all (``of``)."""

    different: Maybe[Whole] = None
    of: Maybe[Whole] = None


class Changed(Record):
    """Properties that the conversion changed: before and after, or the number of values."""

    shape: Maybe[tuple[tuple[Whole, ...], tuple[Whole, ...]]] = None
    dtype: Maybe[tuple[str, str]] = None
    device: Maybe[tuple[str, str]] = None
    """The device of the memory, and the one that the result names."""
    values: Maybe[Count] = None
    source: Maybe[Count] = None
    earlier_result: Maybe[Count] = None
    after_write: Maybe[Count] = None
    freed: Maybe[Count] = None
    in_thread: Maybe[Count] = None
    unfinished: Maybe[Count] = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the names of the changed properties."""
        return tuple(self.model_dump()) if self else ()

    def __bool__(self) -> bool:
        return bool(self.model_fields_set)


class Writable(Record):
    """Whether the arrays can be written; None if unknown."""

    source: Maybe[Flag] = None
    result: Maybe[Flag] = None
    read_only: Maybe[str] = None
    """The text of a read-only array between source and result, such as ``x.to_numpy()``."""
    immutable: Maybe[Flag] = None
    """Whether the consumer declares that no array of it can be written."""


class Values(Evidence):
    """``ok``, ``wrong`` or ``unknown``: whether shape, dtype and values survive."""

    changed: Maybe[Changed] = None
    writable: Maybe[Writable] = None
    dropped: Maybe[tuple[str, ...]] = None
    """Properties of the source that the result lacks, such as ``mask``."""
    orders: Maybe[tuple[str, str]] = None
    """``F`` or ``C``, of a source in column-major order and of its result."""
    strides: Maybe[tuple[tuple[Whole, ...], tuple[Whole, ...]]] = None
    """Strides in elements, if those of source and result differ."""


class Setting(Record):
    """A setting of a framework or of the process, as text before and after the call."""

    name: Maybe[str] = None
    code: Maybe[str] = None
    before: Maybe[str] = None
    after: Maybe[str] = None


class ChangedSettings(Evidence):
    """``kept``, ``changed`` or ``unknown``: whether the first call changed a setting."""

    changed: Maybe[tuple[Setting, ...]] = None


class Warned(Evidence):
    """``silent`` or ``warns``: whether the first call gave warnings of Python."""

    texts: Maybe[tuple[str, ...]] = None
    """Each with its class: ``UserWarning: …``."""


class FreshSource(Evidence):
    """``kept`` or ``not kept``: whether a second conversion of an array is answered from memory."""

    first_ns: Maybe[Number] = None
    second_ns: Maybe[Number] = None
    new_ns: Maybe[Number] = None


class AlignmentLook(Record):
    verdict: Maybe[str] = None
    alignment_bytes: Maybe[Number] = None
    reason: Maybe[str] = None


class Alignment(Evidence):
    """Whether the address of the source decides between view, copy and refusal:
    ``dependent``, ``independent`` or ``unknown``.
    """

    aligned: Maybe[AlignmentLook] = None
    sliced: Maybe[AlignmentLook] = None

    @property
    def places(self) -> Iterator[tuple[str, AlignmentLook]]:
        """Yield the name of each place with its result."""
        for name, look in (("aligned", self.aligned), ("sliced", self.sliced)):
            if look is not None:
                yield name, look


class LeftBehind(Evidence):
    """Resources that stay allocated for each conversion, or for each refusal."""

    bytes_per_conversion: Maybe[Number] = None
    references_per_conversion: Maybe[Number] = None
    objects_per_conversion: Maybe[Number] = None
    descriptors_per_conversion: Maybe[Number] = None
    threads_per_conversion: Maybe[Number] = None
    maps_per_conversion: Maybe[Number] = None
    conversions: Maybe[Number] = None
    size_bytes: Maybe[Number] = None
    per_source: Maybe[Flag] = None
    """Whether each conversion had a new source."""


class Lifetime(LeftBehind):
    """Whether the result outlives its source, and leaves nothing behind: ``safe``, ``dangling``,
    ``retained`` or ``unknown``.
    """

    changed_after_drop: Maybe[Flag] = None
    error_after_drop: Maybe[str] = None
    source_after_drop: Maybe[str] = None
    """The source after its result was dropped: ``same``, ``changed``, or the error of a read."""
    other_after_drop: Maybe[str] = None
    """The same of another result of the source."""
    released_by: Maybe[str] = None
    """Words for the way in which the result was released, if not by ``del``."""
    release: Maybe[str] = None
    """The source text of that way, for a result ``y``."""
    reused: Maybe[Flag] = None
    """Whether its memory was given out again while another stream read the dropped result."""

    @property
    def is_source_lost(self) -> bool:
        """Whether the source was lost with its result, not the result with its source."""
        died = self.lost is not None and self.lost.stage == SOURCE_AFTER_DROP
        return died or self.source_after_drop not in (None, SAME)

    @property
    def is_other_lost(self) -> bool:
        """Whether a result was lost with another result of its source."""
        died = self.lost is not None and self.lost.stage == OTHER_AFTER_DROP
        return died or self.other_after_drop not in (None, SAME)


class Refused(LeftBehind):
    """The effect of a refusal: ``clean``, ``retained``, ``broken`` or ``unknown``."""

    error: Maybe[tuple[str, ...]] = None
    """Classes of the error, the narrowest first."""
    other_device: Maybe[tuple[Whole, ...]] = None
    """The DLPack device to which a copy was forbidden."""
    words: Maybe[str] = None
    after: Maybe[str] = None
    """The result of a plain array after the refusal, if it is not the same as before."""
    plain_create: Maybe[str] = None
    plain_code: Maybe[str] = None


class EarlyWrite(Evidence):
    """``safe``, ``unsafe`` or ``unknown``: whether a write right after the call tears the copy."""

    sizes_bytes: Maybe[dict[str, str]] = None
    """The result at each size: ``whole``, ``torn``, ``view``, ``immutable`` …"""
    unaligned_bytes: Maybe[dict[str, str]] = None
    """The same for sources that are not aligned."""
    aligned: Maybe[str] = None
    """The result for an aligned source as large as the torn one that was not aligned."""


class PeakMemory(Evidence):
    """``ok`` or ``unknown``; ``arrays`` is the peak without the source, in arrays of its size."""

    arrays: Maybe[Number] = None
    size_bytes: Maybe[Number] = None


class TraceEvent(Record):
    name: Maybe[str] = None
    duration_ns: Maybe[Number] = None
    bytes: Maybe[Number] = None
    direction: Maybe[str] = None
    waited: Maybe[Flag] = None


class Trace(Evidence):
    """``traced`` or ``no trace``: the CUDA calls inside one conversion."""

    waited: Maybe[tuple[str, ...]] = None
    events: Maybe[tuple[TraceEvent, ...]] = None


class Reuse(Evidence):
    """``overwritten``, ``kept`` or ``unknown``: whether a step's output survives later calls."""

    after_calls: Maybe[Whole] = None


class HandshakeEvent(Record):
    """One call between consumer and producer, in their order."""

    call: Maybe[str] = None
    arguments: Maybe[dict[str, Free]] = None
    outcome: Maybe[str] = None
    """``returned``, or the exception in words."""
