"""The subject of a measurement: one case, made real in this interpreter."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from dlprof.device.cuda import CudaUnavailable, driver_devices, open_gpu
from dlprof.probes.base import (
    ANY_DEVICE,
    ArraySpec,
    Export,
    Import,
    Probe,
    Unsupported,
    shape_of,
    written,
)
from dlprof.protocol.messages import words
from dlprof.worker import memory
from dlprof.worker.contract import FaultyProbe, check_code, check_text

Refused = dict[tuple[str, ...], ImportError]
"""Imports that failed, by the texts that were run until then."""


class OneArray:
    """Mixed into a probe whose arrays come from a user's own text: it makes one, and no other.

    ``array_name`` is what the user's text calls it.
    """

    array_name: ClassVar[str]


class SetupFailed(Exception):
    """A user's own setup raised; the message says what."""


@dataclass(frozen=True)
class Subject:
    """One case with its source array in memory.

    ``namespace`` holds the frameworks' names and the source array as ``x``. ``code`` is the
    conversion as a user would type it; ``convert`` runs it once and returns the result.
    ``wait`` is source text on ``{x}`` that returns when a result is ready, or empty.
    ``result_device`` is where the result will be, as declared.
    """

    producer: Probe
    consumer: Probe
    export: Export
    import_: Import
    spec: ArraySpec
    code: str
    wait: str
    result_device: str
    namespace: dict[str, Any] = field(repr=False)
    convert: Callable[[], Any] = field(repr=False)
    create_ns: int | None = None
    """How long the source took to be made and to be ready; None where a user's setup made it."""
    setup_ns: int = 0
    """How long the text took that made the source, and all else that is in it."""

    @property
    def source(self) -> Any:
        return self.namespace["x"]

    @property
    def is_one_array(self) -> bool:
        """Whether the producer makes the source as it is and none of another shape."""
        return isinstance(self.producer, OneArray)

    def of_elements(self, elements: int) -> Subject:
        """The same conversion of an array of about so many elements, where the producer can make
        one: of one axis, if that leaves the layout what it is.

        ``source`` and ``convert`` are still those of the old array.
        """
        if self.is_one_array:
            return self
        spec = replace(self.spec, shape=shape_of(elements, self.spec.layout))
        return replace(self, spec=spec, code=compose(self.export, self.import_, spec))

    def made(self) -> dict[str, Any]:
        """Evidence of how the array was made, and of the code where the shape stands in it; empty
        for a user's own array, of which there is one.
        """
        if self.is_one_array:
            return {}
        created = self.producer.create(self.spec)
        found: dict[str, Any] = {"create": created, "created_shape": list(self.spec.shape)}
        if self.code != compose(self.export, self.import_):
            found["code"] = self.code
        return found

    def make_another(self) -> Any:
        """A new source array, ready, with the same values.

        Raises :class:`Unsupported` where the producer gives the same array again.
        """
        namespace = dict(self.namespace)
        text = self.producer.create(self.spec)
        exec(compile(text, "<create>", "exec"), namespace)  # noqa: S102 - the probes' own text
        source = namespace["x"]
        settle(self.producer, self.spec.device, source, namespace)
        if self.is_one_array and self._is_source(source):
            raise Unsupported("the setup gives the same array each time, and no new one")
        return source

    def check_own(self) -> None:
        """Raise :class:`Unsupported` where a write to the user's array would be seen outside: all
        that its setup makes would be the same memory.
        """
        if self.is_one_array and memory.is_shared(self.producer.pointer(self.source)):
            raise Unsupported("the array is a file's, or shared with other processes: not written")

    def _is_source(self, other: Any) -> bool:
        address = self.producer.pointer(other) if self.spec.elements else None
        same_place = address is not None and address == self.producer.pointer(self.source)
        return other is self.source or same_place

    def placed(self, result: Any) -> Subject:
        """The same with the device where the result of a conversion was seen to be: some put arrays
        of the host on a device, if there is one.
        """
        if not self.import_.returns_array:
            return self
        try:
            where = self.consumer.device(result)
        except Exception:  # noqa: BLE001 - a foreign probe: then it is as declared
            return self
        if where == self.result_device or where not in ANY_DEVICE:
            return self
        return replace(self, result_device=where, wait=wait_text(self.consumer, where))

    def converting(self, source: Any) -> Callable[[], Any]:
        """The conversion of another source than the subject's."""
        return compile_call(self.code, {**self.namespace, "x": source})

    def waiter(self) -> Callable[[Any], Any]:
        """A function that returns when the values of its argument, a result, are there."""
        return compile_call(self.wait.format(x="_result") or "None", self.namespace, "_result")

    def wait_for(self, result: Any) -> None:
        """Return when the values of ``result`` are there."""
        if self.wait:
            self.waiter()(result)


def gpu_of(subject: Subject) -> tuple[Any, str | None]:
    """The device that a case needs; None with the reason where it needs none or has none."""
    if "cuda" not in (subject.spec.device, subject.result_device):
        return None, None
    if not isinstance(driver_devices(), int):
        return None, "no CUDA driver"
    try:
        return open_gpu(), None
    except CudaUnavailable as reason:
        return None, str(reason)


def lies_within(address: int, begin: int, source: Any, spec: ArraySpec) -> bool:
    """Whether a result at ``address`` is a view of ``source``, whose first element is at ``begin``:
    a copy lies outside its memory, and a view may begin anywhere in it.
    """
    low, high = _span(source) or (0, max(spec.size_bytes, 1))
    return begin + low <= address < begin + high


def _span(source: Any) -> tuple[int, int] | None:
    """The first and the last byte of an array, and one, from its first element, by its strides;
    None where it has none, as what is contiguous has.
    """
    try:
        if hasattr(source, "element_size"):
            strides, size = source.stride(), source.element_size()
            strides = [step * size for step in strides]
        else:
            strides, size = source.strides, source.itemsize
        ends = [(count - 1) * step for count, step in zip(source.shape, strides, strict=True)]
        empty = 0 in source.shape
    except (AttributeError, TypeError, ValueError):
        return None
    return (0, 1) if empty else (sum(min(e, 0) for e in ends), sum(max(e, 0) for e in ends) + size)


def compose(export: Export, import_: Import, spec: ArraySpec | None = None) -> str:
    """The conversion of ``x``, an array of ``spec``, as one expression."""
    known = () if spec is None else (spec.dtype, spec.shape)
    return written(import_.code, written(export.code, "x", *known), *known)


def compile_call(code: str, namespace: dict[str, Any], arguments: str = "") -> Callable[..., Any]:
    """A function of ``arguments`` that evaluates ``code`` in ``namespace``."""
    scope: dict[str, Any] = {}
    text = f"def call({arguments}):\n    return {code}\n"
    exec(compile(text, "<dlprof>", "exec"), namespace, scope)  # noqa: S102 - the probes' own text
    call: Callable[..., Any] = scope["call"]
    return call


def namespace_for(
    producer: Probe,
    consumer: Probe,
    import_: Import,
    setup: str = "",
    refused: Refused | None = None,
) -> dict[str, Any]:
    """Run the setup text of both frameworks, then the user's; names that a conversion may use.

    Raises :class:`SetupFailed` where the user's raises, and whatever a framework's raises. An
    import that fails is not tried again after the same texts: what it left half done would give
    another reason. ``refused`` remembers those of this process.
    """
    namespace: dict[str, Any] = {}
    with rarely_collected():
        _run((producer.setup, consumer.setup, import_.setup), namespace, refused)
    try:
        exec(compile(setup, "<setup>", "exec"), namespace)  # noqa: S102 - the user's own text
    except BaseException as fault:  # he may call sys.exit
        raise SetupFailed(f"the setup fails: {words(fault)}") from fault
    return namespace


RARELY = 1_000_003
"""Objects that are made before a collection: a number that nobody else sets."""


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Hardly a collection inside: TensorFlow 2.21 is imported in 2.1 s instead of 3.0 s so.

    What is run inside may set or switch off the collector itself, and that is left as it is.
    """
    before = gc.get_threshold()
    ours = (RARELY, *before[1:])
    gc.set_threshold(*ours)
    try:
        yield
    finally:
        if gc.get_threshold() == ours:
            gc.set_threshold(*before)


def _run(texts: tuple[str, ...], namespace: dict[str, Any], refused: Refused | None) -> None:
    refused = {} if refused is None else refused
    for place, text in enumerate(texts):
        before = texts[: place + 1]
        if before in refused:
            raise refused[before]
        try:
            exec(compile(text, "<setup>", "exec"), namespace)  # noqa: S102 - the probes' own text
        except ImportError as refusal:
            refused[before] = refusal
            raise


def prepare(
    producer: Probe,
    consumer: Probe,
    export: Export,
    import_: Import,
    spec: ArraySpec,
    namespace: dict[str, Any],
) -> Subject:
    """Make the source array and compile the conversion.

    Raises :class:`Unsupported` where the framework made something other than ``spec`` asks for,
    and whatever the framework raises while making it.
    """
    producer.ready(spec.device)
    text = check_text(producer.create(spec), f"what {producer.name}'s create returns")
    begin = time.perf_counter_ns()
    exec(compile(text, "<create>", "exec"), namespace)  # noqa: S102 - the probe's own text
    if "x" not in namespace:
        raise FaultyProbe(f"the text of {producer.name}'s create sets no x")
    # What is still being made would be in the time of the first call.
    settle(producer, spec.device, namespace["x"], namespace)
    create_ns = time.perf_counter_ns() - begin
    check_source(producer, spec, namespace["x"])
    code = compose(export, import_, spec)
    where = result_device(consumer, import_, spec)
    return Subject(
        producer=producer,
        consumer=consumer,
        export=export,
        import_=import_,
        spec=spec,
        code=code,
        wait=wait_text(consumer, where),
        result_device=where,
        namespace=namespace,
        convert=compile_call(code, namespace),
        create_ns=None if isinstance(producer, OneArray) else create_ns,
        setup_ns=create_ns,
    )


def settle(producer: Probe, device: str, source: Any, namespace: dict[str, Any]) -> None:
    """Return when the values of ``source`` are there."""
    wait = wait_text(producer, device)
    if wait:
        compile_call(wait.format(x="_made"), namespace, "_made")(source)


def wait_text(consumer: Probe, device: str) -> str:
    """The consumer's wait, checked; empty where there is nothing to wait for."""
    text = consumer.wait(device)
    where = f"what {consumer.name}'s wait returns"
    return check_code(text, where, needs_array=False) if text else ""  # a stream may be waited for


def result_device(consumer: Probe, import_: Import, spec: ArraySpec) -> str:
    """Where the result will be: as declared, else with the source if the consumer can be there."""
    if import_.result_device:
        return import_.result_device
    return spec.device if spec.device in consumer.devices else consumer.devices[0]


def check_source(producer: Probe, spec: ArraySpec, array: Any) -> None:
    """Refuse a source that is not what ``spec`` says: it would be measured under a wrong name."""
    made: dict[str, Any] = {
        "dtype": producer.dtype(array),
        "shape": producer.shape(array),
        "device": producer.device(array),
    }
    if made["dtype"] is None:  # plain memory: the way in says what it is
        made = {what: got for what, got in made.items() if got is not None}
    for what, got in made.items():
        asked = getattr(spec, what)
        if got != asked:
            raise Unsupported(f"{producer.name} made {what} {got} when asked for {asked}")
    _check_alignment(producer, spec, array)


def _check_alignment(producer: Probe, spec: ArraySpec, array: Any) -> None:
    pointer = producer.pointer(array) if spec.elements else None
    if pointer is None:
        return
    if spec.layout == "aligned" and pointer % 64:
        raise Unsupported(
            f"{producer.name} put the array {pointer % 64} bytes off a 64-byte boundary"
        )
    if spec.layout == "sliced" and pointer % 64 == 0:
        raise Unsupported(f"{producer.name} moved the slice back to a 64-byte boundary")
