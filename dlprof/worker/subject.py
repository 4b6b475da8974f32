"""The subject of a measurement: one case, made real in this interpreter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from dlprof.device.cuda import Gpu, device_ordinal
from dlprof.probes.base import (
    ANY_DEVICE,
    RETYPED,
    WHOLE_LAYOUTS,
    ArraySpec,
    Export,
    Import,
    Probe,
    Unsupported,
    written,
)
from dlprof.protocol.messages import words
from dlprof.worker import memory
from dlprof.worker.refusal import FaultyProbe, Refusal, attempt
from dlprof.worker.simulated import OnSimulatedDevice
from dlprof.worker.source_text import check_code, check_text, compile_call, execute
from dlprof.worker.timer import collector_off

OTHER_BYTE = b"\xa5"
LINE_BYTES = 64
"""Whether an array begins at such a boundary decides whether JAX, TensorFlow and others copy it."""
PLACES, MOST_PLACED_BYTES = 16, 512 << 20
"""At most this many arrays, and bytes in all, are made to get one at a boundary."""
FailedImports = dict[str, Exception]
"""Setups that failed in this process, by their text."""


class OneArray:
    """Mixed into a probe whose array comes from a user's text: it makes no other array.

    ``array_name`` is the array's name in that text, and ``created`` the text of a script.
    """

    array_name: ClassVar[str]
    created: ClassVar[str]


class SetupFailed(Exception):
    """A user's own setup raised; the message says what."""


@dataclass(frozen=True)
class LoadedPath:
    """An export and an import of two frameworks; ``namespace`` holds the names of their setups."""

    producer: Probe
    consumer: Probe
    export: Export
    import_: Import
    namespace: dict[str, Any] = field(repr=False)

    @property
    def is_one_array(self) -> bool:
        """Whether the producer makes one array and no other."""
        return isinstance(self.producer, OneArray)

    def subject(self, spec: ArraySpec, at_boundary: bool = False) -> Subject:
        """Make the source array.

        If ``at_boundary``, the array begins at a multiple of :data:`LINE_BYTES` if the
        framework's own allocator gives one of a few there. Raises :class:`Unsupported` if the array
        is not what ``spec`` asks for, and what the framework raises.
        """
        producer = self.producer
        producer.ready(spec.device)
        place = result_device(self.consumer, self.import_, spec)
        ways = self.producer, self.consumer, self.export, self.import_
        subject = Subject(*ways, self.namespace, spec, place)
        subject = replace(subject, namespace=subject.new_namespace())
        if at_boundary and not self.is_one_array:
            subject = replace(subject, at_boundary=True)
            subject.namespace["x"] = subject.place_at_boundary(subject.source)
        check_source(producer, spec, subject.source)
        return subject


@dataclass(frozen=True)
class Subject(LoadedPath):
    """One case with its source array in memory, as ``x`` of the namespace."""

    spec: ArraySpec
    result_device: str
    at_boundary: bool = False
    """Whether its arrays begin at a boundary; see :meth:`Path.subject`."""
    result_ordinal: int = 0
    """The number of the CUDA device on which the result is."""

    @property
    def is_one_array(self) -> bool:
        return super().is_one_array and not self.spec.corners

    @cached_property
    def code(self) -> str:
        """The conversion as a user would type it."""
        return compose(self.export, self.import_, self.spec)

    @property
    def export_code(self) -> str:
        """The part that the producer makes."""
        return written(self.export.code, "x", self.spec.dtype, self.spec.shape)

    @cached_property
    def convert(self) -> Callable[[], Any]:
        """A function that converts the source once and returns the result."""
        return compile_call(self.code, self.namespace)

    @cached_property
    def wait(self) -> str:
        """Source text on ``{x}`` that returns when a result is ready, or empty."""
        return wait_text(self.consumer, self.result_device)

    @property
    def source(self) -> Any:
        return self.namespace["x"]

    def of_bytes(self, size_bytes: int) -> Subject:
        """Return the same conversion of about this size, if the producer can make such an array.

        The shape has one axis if the layout allows it. ``source`` stays the old one.
        """
        if self.is_one_array:
            return self
        return replace(self, spec=self.producer.resized(self.spec, size_bytes))

    def array_evidence(self) -> dict[str, Any]:
        """Return evidence: the text that made the array, and the code if the shape stands in it.

        Empty for a user's own array.
        """
        if self.is_one_array:
            return {}
        created = self.producer.create(self.spec)
        found: dict[str, Any] = {"create": created, "created_shape": list(self.spec.shape)}
        if self.spec.corners:
            found["corners"] = True
        if self.code != compose(self.export, self.import_):
            found["code"] = self.code
        return found

    def new_namespace(self) -> dict[str, Any]:
        """Run the producer's text; return the names with its array, ready, as ``x``."""
        producer, namespace = self.producer, dict(self.namespace)
        text = _call(producer, "create", self.spec)
        execute(check_text(text, f"what {producer.name}'s create returns"), namespace, "create")
        if "x" not in namespace:
            raise FaultyProbe(f"the text of {producer.name}'s create sets no x")
        # Unfinished work would count as time of the first call.
        if wait := wait_text(producer, self.spec.device):
            compile_call(wait.format(x="_made"), namespace, "_made")(namespace["x"])
        if isinstance(producer, OnSimulatedDevice) and not self.is_one_array:
            producer.fill(namespace["x"])
        return namespace

    def make_another(self) -> Any:
        """Make a new source array with the same values, ready.

        Raises :class:`Unsupported` if the producer gives the same array again.
        """
        source = self.new_namespace()["x"]
        if self.is_one_array:
            address = self.producer.pointer(source) if self.spec.elements else None
            same_place = address is not None and address == self.producer.pointer(self.source)
            if source is self.source or same_place:
                raise Unsupported("the setup gives the same array each time, and no new one")
        return self.place_at_boundary(source) if self.at_boundary else source

    def place_at_boundary(self, first: Any) -> Any:
        """Make a host array at a multiple of :data:`LINE_BYTES`, or return ``first``."""
        arrays, spacers, spec = [first], [], self.spec
        on_host = spec.device == "cpu" and spec.elements > 0
        while on_host and len(arrays) * spec.size_bytes < MOST_PLACED_BYTES:
            address = _call(self.producer, "pointer", arrays[-1])
            if address is None or address % LINE_BYTES == 0:
                return arrays[-1]
            if len(arrays) == PLACES:
                break
            # The text may make two arrays each time, and glibc's headers have 16 bytes: without
            # other lengths between them each would be as far off as the one before.
            spacers.append(bytearray(spec.size_bytes + 16 * len(arrays)))
            arrays.append(self.new_namespace()["x"])  # each stays: the next has another address
        return first

    def check_own(self) -> None:
        """Raise :class:`Unsupported` if a write to a user's array would show outside."""
        if not self.is_one_array:
            return
        mapping = memory.find_mapping(self.producer.pointer(self.source))
        if mapping is not None and mapping.shared:
            raise Unsupported("the array is a file's, or shared with other processes: not written")

    def overwrite(self, array: Any, gpu: Gpu | None) -> bool:
        """Give an array of the producer other values: by its framework, else by its address.

        False if it keeps its values: without an address, and if it must not be written.
        """
        if self.producer.write(array, 1) is not NotImplemented:
            return True
        address = self.producer.pointer(array) if self.spec.elements else None
        on_host = self.spec.device == "cpu"
        if address is None or self.spec.layout not in WHOLE_LAYOUTS:
            return False
        mapping = memory.find_mapping(address) if on_host else None
        is_read_only = mapping is not None and not mapping.writable
        if is_read_only or (gpu is None and not on_host):
            return False
        memory.write(address, OTHER_BYTE * self.spec.size_bytes, None if on_host else gpu)
        return True

    def relocate(self, result: Any) -> Subject:
        """Return the same with the device of ``result``: some consumers move host arrays."""
        if not self.import_.returns_array:
            return self
        device = attempt(lambda: self.consumer.device(result))
        if isinstance(device, Refusal) or device not in ANY_DEVICE:
            return self
        address = attempt(lambda: self.consumer.pointer(result)) if device == "cuda" else None
        ordinal = 0 if isinstance(address, Refusal) else device_ordinal(address)
        if (device, ordinal) == (self.result_device, self.result_ordinal):
            return self
        return replace(self, result_device=device, result_ordinal=ordinal)

    def converter(self, source: Any) -> Callable[[], Any]:
        return compile_call(self.code, {**self.namespace, "x": source})

    def waiter(self) -> Callable[[Any], Any]:
        """Return a function that waits until the values of its argument, a result, are there."""
        return compile_call(self.wait.format(x="_result") or "None", self.namespace, "_result")

    def wait_for(self, result: Any) -> None:
        if self.wait:
            self.waiter()(result)


def lies_within(address: int, begin: int, source: Any, spec: ArraySpec) -> bool:
    """Whether ``address`` lies in the memory of ``source``, whose first element is at ``begin``."""
    low, high = memory.span(source) or (0, max(spec.size_bytes, 1))
    return begin + low <= address < begin + high


def compose(export: Export, import_: Import, spec: ArraySpec | None = None) -> str:
    """Return the conversion of ``x``, an array of ``spec``, as one expression."""
    known = () if spec is None else (spec.dtype, spec.shape)
    return written(import_.code, written(export.code, "x", *known), *known)


def run_setups(
    producer: Probe,
    consumer: Probe,
    import_: Import,
    setup: str = "",
    failed: FailedImports | None = None,
) -> dict[str, Any]:
    """Run the setups of both frameworks, then the user's; return the names that they bind.

    Raises :class:`SetupFailed` for the user's setup, :class:`Unsupported` if a framework cannot be
    imported, and what the import's own setup raises. A setup in ``failed`` is not tried again: its
    half-done state would give another reason.
    """
    namespace: dict[str, Any] = {}
    failed = {} if failed is None else failed
    setups = ((producer.name, producer.setup), (consumer.name, consumer.setup), ("", import_.setup))
    with collector_off():  # TensorFlow 2.21 then imports in 2.1 s instead of 3.0 s
        for name, text in setups:
            if text in failed:
                raise failed[text]
            try:
                execute(text, namespace, "setup")
            except (FaultyProbe, SyntaxError):
                raise
            except Exception as refusal:
                why = f"{name} cannot be imported: {words(refusal)}"
                failed[text] = Unsupported(why) if name else refusal
                raise failed[text] from refusal
    result = attempt(lambda: execute(setup, namespace, "setup"), BaseException)
    if isinstance(result, Refusal):
        raise SetupFailed(f"the setup fails: {result.reason}") from result.error
    return namespace


def _call(probe: Probe, method: str, *arguments: Any) -> Any:
    """Call a method of a probe, which may raise :class:`Unsupported`.

    A user's own object may raise anything.
    """
    found = attempt(lambda: getattr(probe, method)(*arguments), BaseException)
    if not isinstance(found, Refusal):
        return found
    if isinstance(found.error, (Unsupported, FaultyProbe)) or isinstance(probe, OneArray):
        raise found.error
    why = f"{probe.name}'s {method} raises {words(found.error)}"
    raise FaultyProbe(why) from found.error


def wait_text(consumer: Probe, device: str) -> str:
    """Return the consumer's wait, checked; empty if there is nothing to wait for."""
    text = _call(consumer, "wait", device)
    place = f"what {consumer.name}'s wait returns"
    return check_code(text, place, needs_array=False) if text else ""  # it may wait for a stream


def result_device(consumer: Probe, import_: Import, spec: ArraySpec) -> str:
    """Return where the result will be: as declared, else with the source if possible."""
    if import_.result_device:
        return import_.result_device
    return spec.device if spec.device in consumer.devices else consumer.devices[0]


PLACED = ("aligned", "sliced")
"""Layouts that say where the array begins."""


def check_source(producer: Probe, spec: ArraySpec, array: Any) -> None:
    """Raise :class:`Unsupported` for an array that does not match ``spec``."""
    properties: dict[str, Any] = {
        name: _call(producer, name, array) for name in ("dtype", "shape", "device")
    }
    if spec.layout in RETYPED:
        del properties["dtype"]
    elif properties["dtype"] is None:  # plain memory: the import says what it is
        properties = {name: value for name, value in properties.items() if value is not None}
    for name, value in properties.items():
        expected = getattr(spec, name)
        if value != expected:
            raise Unsupported(f"{producer.name} made {name} {value} when asked for {expected}")
    if not spec.elements:
        return
    pointer = _call(producer, "pointer", array)
    if pointer is None or spec.layout not in PLACED:
        return
    if (spec.layout == "aligned") != (pointer % LINE_BYTES == 0):
        raise Unsupported(f"{producer.name} made no array that is {spec.layout}")
