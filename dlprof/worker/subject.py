"""The subject of a measurement: one case, made real in this interpreter."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

from dlprof.device.cuda import CudaUnavailable, Gpu, open_gpu
from dlprof.probes.base import (
    ANY_DEVICE,
    FLAGS,
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
from dlprof.worker.contract import check_code, check_text
from dlprof.worker.refusal import Answer, FaultyProbe, Refusal, attempt
from dlprof.worker.simulated import OnSimulatedDevice
from dlprof.worker.source_text import compile_call, execute

OTHER_BYTE = b"\xa5"
LINE_BYTES = 64
"""Whether an array begins at such a boundary decides whether JAX, TensorFlow and others copy it."""
PLACES, MOST_PLACED_BYTES = 16, 512 << 20
"""How many arrays are made to get one at a boundary, and with how many bytes."""
FailedImports = dict[str, Exception]
"""Setups that failed in this process, by their text."""


class OneArray:
    """Mixed into a probe whose array comes from a user's text: it makes no other array.

    ``array_name`` is the array's name in that text.
    """

    array_name: ClassVar[str]


class SetupFailed(Exception):
    """A user's own setup raised; the message says what."""


@dataclass(frozen=True)
class Path:
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
        """Make the source array and compile the conversion.

        If ``at_boundary``, the array begins at a multiple of :data:`LINE_BYTES` if the
        framework's own allocator gives one of a few there. Raises :class:`Unsupported` if the array
        is not what ``spec`` asks for, and what the framework raises.
        """
        producer, namespace = self.producer, dict(self.namespace)
        if spec.layout in FLAGS and spec.layout not in producer.flags:
            raise Unsupported(f"{producer.name} has no arrays that are {spec.layout}")
        producer.ready(spec.device)
        text = _created_by(producer, spec)
        execute(text, namespace, "create")
        if "x" not in namespace:
            raise FaultyProbe(f"the text of {producer.name}'s create sets no x")
        # Unfinished work would count as time of the first call.
        settle(producer, spec.device, namespace["x"], namespace)
        at_boundary = at_boundary and not self.is_one_array
        if at_boundary:
            namespace["x"] = _at_a_boundary(producer, spec, namespace["x"], text, self.namespace)
        check_source(producer, spec, namespace["x"])
        code = compose(self.export, self.import_, spec)
        where = result_device(self.consumer, self.import_, spec)
        return Subject(
            producer=producer,
            consumer=self.consumer,
            export=self.export,
            import_=self.import_,
            namespace=namespace,
            spec=spec,
            code=code,
            wait=wait_text(self.consumer, where),
            result_device=where,
            convert=compile_call(code, namespace),
            at_boundary=at_boundary,
        )


@dataclass(frozen=True)
class Subject(Path):
    """One case with its source array in memory, as ``x`` of the namespace.

    ``code`` is the conversion as a user would type it; ``convert`` runs it once and returns the
    result. ``wait`` is source text on ``{x}`` that returns when a result is ready, or empty.
    """

    spec: ArraySpec
    code: str
    wait: str
    result_device: str
    convert: Callable[[], Any] = field(repr=False)
    at_boundary: bool = False
    """Whether its arrays begin at a boundary; see :meth:`Path.subject`."""

    @property
    def source(self) -> Any:
        return self.namespace["x"]

    def of_bytes(self, size_bytes: int) -> Subject:
        """Return the same conversion of about this size, if the producer can make such an array.

        The shape has one axis if the layout allows it. ``source`` and ``convert`` stay the old
        ones.
        """
        if self.is_one_array:
            return self
        spec = self.spec.of_bytes(size_bytes)
        return replace(self, spec=spec, code=compose(self.export, self.import_, spec))

    def made(self) -> dict[str, Any]:
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

    def make_another(self) -> Any:
        """Make a new source array with the same values, ready.

        Raises :class:`Unsupported` if the producer gives the same array again.
        """
        namespace = dict(self.namespace)
        text = _created_by(self.producer, self.spec)
        execute(text, namespace, "create")
        source = namespace["x"]
        settle(self.producer, self.spec.device, source, namespace)
        if self.is_one_array and self._is_source(source):
            raise Unsupported("the setup gives the same array each time, and no new one")
        if self.at_boundary:
            return _at_a_boundary(self.producer, self.spec, source, text, self.namespace)
        return source

    def check_own(self) -> None:
        """Raise :class:`Unsupported` if a write to a user's array would show outside."""
        if self.is_one_array and memory.is_shared(self.producer.pointer(self.source)):
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
        if memory.is_read_only(address) if on_host else gpu is None:
            return False
        memory.write(address, OTHER_BYTE * self.spec.size_bytes, None if on_host else gpu)
        return True

    def _is_source(self, other: Any) -> bool:
        address = self.producer.pointer(other) if self.spec.elements else None
        same_place = address is not None and address == self.producer.pointer(self.source)
        return other is self.source or same_place

    def placed(self, result: Any) -> Subject:
        """Return the same with the device of ``result``. Some put host arrays on a device."""
        if not self.import_.returns_array:
            return self
        where = attempt(lambda: self.consumer.device(result))
        if isinstance(where, Refusal) or where not in ANY_DEVICE or where == self.result_device:
            return self
        return replace(self, result_device=where, wait=wait_text(self.consumer, where))

    def converting(self, source: Any) -> Callable[[], Any]:
        return compile_call(self.code, {**self.namespace, "x": source})

    def waiter(self) -> Callable[[Any], Any]:
        """Return a function that waits until the values of its argument, a result, are there."""
        return compile_call(self.wait.format(x="_result") or "None", self.namespace, "_result")

    def wait_for(self, result: Any) -> None:
        if self.wait:
            self.waiter()(result)


def gpu_of(subject: Subject) -> tuple[Any, str | None]:
    """Return the device that a case needs; None with the reason if there is none."""
    if "cuda" not in (subject.spec.device, subject.result_device):
        return None, None
    try:
        return open_gpu(), None
    except CudaUnavailable as reason:
        return None, str(reason)


def lies_within(address: int, begin: int, source: Any, spec: ArraySpec) -> bool:
    """Whether ``address`` lies in the memory of ``source``, whose first element is at ``begin``."""
    low, high = memory.span(source) or (0, max(spec.size_bytes, 1))
    return begin + low <= address < begin + high


def compose(export: Export, import_: Import, spec: ArraySpec | None = None) -> str:
    """Return the conversion of ``x``, an array of ``spec``, as one expression."""
    known = () if spec is None else (spec.dtype, spec.shape)
    return written(import_.code, written(export.code, "x", *known), *known)


def namespace_for(
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
    with rarely_collected():
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
    done = attempt(lambda: execute(setup, namespace, "setup"), BaseException)
    if isinstance(done, Refusal):
        raise SetupFailed(f"the setup fails: {done.reason}") from done.error
    return namespace


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Collect garbage rarely inside: TensorFlow 2.21 then imports in 2.1 s instead of 3.0 s."""
    before = gc.get_threshold()
    ours = (1_000_003, *before[1:])
    gc.set_threshold(*ours)
    try:
        yield
    finally:
        if gc.get_threshold() == ours:  # else a framework has set its own
            gc.set_threshold(*before)


def _answer_of(probe: Probe, method: str, call: Callable[[], Answer]) -> Answer:
    """Return what a method of a probe gives.

    By contract it raises nothing but :class:`Unsupported`. A user's own object may raise anything.
    """
    found = attempt(call, BaseException)
    if not isinstance(found, Refusal):
        return found
    if isinstance(found.error, (Unsupported, FaultyProbe)) or isinstance(probe, OneArray):
        raise found.error
    why = f"{probe.name}'s {method} raises {words(found.error)}"
    raise FaultyProbe(why) from found.error


def _created_by(producer: Probe, spec: ArraySpec) -> str:
    """Return the text that makes the array."""
    text = _answer_of(producer, "create", lambda: producer.create(spec))
    return check_text(text, f"what {producer.name}'s create returns")


def settle(producer: Probe, device: str, source: Any, namespace: dict[str, Any]) -> None:
    wait = wait_text(producer, device)
    if wait:
        compile_call(wait.format(x="_made"), namespace, "_made")(source)
    if isinstance(producer, OnSimulatedDevice) and not isinstance(producer, OneArray):
        producer.fill(source)


def wait_text(consumer: Probe, device: str) -> str:
    """Return the consumer's wait, checked; empty if there is nothing to wait for."""
    text = _answer_of(consumer, "wait", lambda: consumer.wait(device))
    where = f"what {consumer.name}'s wait returns"
    return check_code(text, where, needs_array=False) if text else ""  # it may wait for a stream


def result_device(consumer: Probe, import_: Import, spec: ArraySpec) -> str:
    """Return where the result will be: as declared, else with the source if possible."""
    if import_.result_device:
        return import_.result_device
    return spec.device if spec.device in consumer.devices else consumer.devices[0]


def _at_a_boundary(
    producer: Probe, spec: ArraySpec, first: Any, text: str, namespace: dict[str, Any]
) -> Any:
    """Make a host array that begins at a multiple of :data:`LINE_BYTES`, or return the first."""
    made, spacers = [first], []
    on_host = spec.device == "cpu" and spec.elements > 0
    while on_host and len(made) * spec.size_bytes < MOST_PLACED_BYTES:
        address = _answer_of(producer, "pointer", partial(producer.pointer, made[-1]))
        if address is None or address % LINE_BYTES == 0:
            return made[-1]
        if len(made) == PLACES:
            break
        # The text may make two arrays each time, and glibc's headers have 16 bytes: without other
        # lengths between them each would be as far off as the one before.
        spacers.append(bytearray(spec.size_bytes + 16 * len(made)))
        again = dict(namespace)
        execute(text, again, "create")
        settle(producer, spec.device, again["x"], again)
        made.append(again["x"])  # the others stay, so that each has another address
    return first


PLACED = ("aligned", "sliced")
"""Layouts that say where the array begins."""


def check_source(producer: Probe, spec: ArraySpec, array: Any) -> None:
    """Raise :class:`Unsupported` for an array that is not what ``spec`` says."""
    made: dict[str, Any] = {
        what: _answer_of(producer, what, partial(getattr(producer, what), array))
        for what in ("dtype", "shape", "device")
    }
    if spec.layout in RETYPED:
        del made["dtype"]
    elif made["dtype"] is None:  # plain memory: the import says what it is
        made = {what: got for what, got in made.items() if got is not None}
    for what, got in made.items():
        asked = getattr(spec, what)
        if got != asked:
            raise Unsupported(f"{producer.name} made {what} {got} when asked for {asked}")
    if not spec.elements:
        return
    pointer = _answer_of(producer, "pointer", lambda: producer.pointer(array))
    if pointer is None or spec.layout not in PLACED:
        return
    beyond = pointer % 64
    if spec.layout == "aligned" and beyond:
        raise Unsupported(f"{producer.name} put the array {beyond} bytes off a 64-byte boundary")
    if spec.layout == "sliced" and not beyond:
        raise Unsupported(f"{producer.name} moved the slice back to a 64-byte boundary")
