"""What every probe that comes with dlprof keeps to."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Iterator

import pytest

from dlprof.probes import BUILTIN
from dlprof.probes.base import (
    ANY_DEVICE,
    DTYPES,
    LAYOUTS,
    PATTERNS,
    ArraySpec,
    Export,
    Import,
    Probe,
    Protocol,
    Unsupported,
)
from dlprof.worker.contract import check_probe
from dlprof.worker.source_text import compile_call
from dlprof.worker.subject import check_source, compose, namespace_for

pytestmark = [
    pytest.mark.integration,
    # A framework's warning is no refusal: users see it and get their array.
    pytest.mark.filterwarnings("ignore"),
]

PLAIN = ArraySpec((4, 8), "float32")


def named(kind: type[Probe]) -> str:
    return kind.name


every_probe = pytest.mark.parametrize("kind", BUILTIN, ids=named)


def in_words(error: Exception) -> str:
    """The message of a refusal; the test fails if there is none."""
    assert str(error), repr(error)
    return str(error)


def usable(kind: type[Probe], device: str) -> Probe:
    """The probe, ready for ``device``; the test is skipped where this machine has not both."""
    if importlib.util.find_spec(kind.module) is None:
        pytest.skip(f"{kind.name} is not installed")
    if device not in kind.devices:
        pytest.skip(f"{kind.name} owns no arrays on {device}")
    probe = kind()
    try:
        probe.ready(device)
    except Exception as error:  # noqa: BLE001 - a framework may raise anything
        pytest.skip(f"{kind.name} cannot use {device}: {in_words(error)}")
    return probe


def make(probe: Probe, spec: ArraySpec) -> object:
    namespace: dict[str, object] = {}
    exec(compile(probe.setup, "<setup>", "exec"), namespace)
    exec(compile(probe.create(spec), "<create>", "exec"), namespace)
    check_source(probe, spec, namespace["x"])
    return namespace["x"]


def expected(spec: ArraySpec, first: int = 0):
    """The values, or their bits where NumPy lacks the dtype, that ``spec`` asks for."""
    import numpy as np

    index = np.arange(first, first + spec.elements).reshape(spec.shape)
    if spec.layout == "strided":
        index = np.arange(0, 2 * spec.elements, 2).reshape(spec.shape)
    elif spec.layout == "reversed":
        index = index[::-1]
    elif spec.layout == "broadcast":
        index = np.broadcast_to(index[:1], spec.shape)
    pattern = PATTERNS[spec.dtype]
    values = index % pattern.modulus + pattern.offset
    if spec.dtype.startswith("complex"):
        values = values + 2j * values
    if spec.dtype in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        ml_dtypes = pytest.importorskip("ml_dtypes")
        bits = f"uint{8 * DTYPES[spec.dtype]}"
        return values.astype(getattr(ml_dtypes, spec.dtype)).view(bits)
    return values.astype(spec.dtype)


@every_probe
@pytest.mark.parametrize("device", ANY_DEVICE)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_array_of_any_dtype_is_made_as_asked_or_refused_in_words(kind, layout, device):
    probe = usable(kind, device)
    for dtype in DTYPES:
        spec = ArraySpec((4, 8), dtype, layout, device)
        try:
            array = make(probe, spec)
        except Exception as error:  # noqa: BLE001 - a framework may raise anything
            in_words(error)
            continue
        values = probe.to_numpy(array)
        # A slice may begin with the first or with the second value of the larger array.
        choices = [expected(spec, first) for first in ((0, 1) if layout == "sliced" else (0,))]
        assert values.dtype == choices[0].dtype, dtype
        assert any((values == choice).all() for choice in choices), dtype


@pytest.mark.parametrize("name", ["numpy", "numba", "torch"])
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (64, 64)], ids=str)
def test_an_aligned_array_begins_at_an_odd_multiple_of_64_bytes(name, shape):
    probe = usable(next(kind for kind in BUILTIN if kind.name == name), "cpu")
    for dtype in ("bool", "int16", "float32", "complex128"):
        spec = ArraySpec(shape, dtype, "aligned")
        array = make(probe, spec)
        assert not spec.elements or (probe.pointer(array) or 0) % 128 == 64, dtype
        assert (probe.to_numpy(array) == expected(spec)).all()


@every_probe
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3, 4)], ids=str)
def test_an_array_of_any_shape_is_made_as_asked_or_refused_in_words(kind, shape):
    probe = usable(kind, "cpu")
    spec = ArraySpec(shape, "float32")
    try:
        array = make(probe, spec)
    except Exception as error:  # noqa: BLE001 - a framework may raise anything
        in_words(error)
        return
    assert probe.to_numpy(array).shape == shape
    assert (probe.to_numpy(array) == expected(spec)).all()


@every_probe
def test_the_memory_at_the_pointer_holds_the_values(kind):
    probe = usable(kind, "cpu")
    array = make(probe, PLAIN)
    pointer = probe.pointer(array)
    if pointer is not None:
        assert ctypes.string_at(pointer, PLAIN.size_bytes) == expected(PLAIN).tobytes()


@every_probe
def test_an_empty_array_has_no_pointer_or_a_harmless_one(kind):
    probe = usable(kind, "cpu")
    try:
        array = make(probe, ArraySpec((0, 3), "float32"))
    except Unsupported:
        return
    assert probe.pointer(array) != 0


@every_probe
def test_the_values_on_the_host_are_a_copy(kind):
    probe = usable(kind, "cpu")
    array = make(probe, PLAIN)
    values = probe.to_numpy(array)
    values.setflags(write=True)
    values[...] = 7
    assert (probe.to_numpy(array) == expected(PLAIN)).all()


@every_probe
@pytest.mark.parametrize("device", ANY_DEVICE)
def test_a_write_changes_the_array_where_it_is_or_is_not_implemented(kind, device):
    probe = usable(kind, device)
    array = make(probe, ArraySpec((4, 8), "float32", "C", device))
    before = probe.pointer(array)
    if probe.write(array, 3) is NotImplemented:
        assert probe.writable(array) is not True
        return
    assert probe.pointer(array) == before
    assert (probe.to_numpy(array) == 3).all()


@every_probe
@pytest.mark.parametrize("device", ANY_DEVICE)
def test_waiting_for_an_array_returns(kind, device):
    probe = usable(kind, device)
    spec = ArraySpec((4, 8), "float32", "C", device)
    namespace = {"x": make(probe, spec)}
    exec(compile(probe.setup, "<setup>", "exec"), namespace)
    compile_call(probe.wait(device).format(x="x") or "None", namespace)()
    assert (probe.to_numpy(namespace["x"]) == expected(spec)).all()


@every_probe
@pytest.mark.parametrize("device", ANY_DEVICE)
def test_the_small_operation_works_or_is_refused_in_words(kind, device):
    probe = usable(kind, device)
    namespace = {"x": make(probe, ArraySpec((4, 8), "float32", "C", device))}
    exec(compile(probe.setup, "<setup>", "exec"), namespace)
    try:
        code = probe.use(device)
    except Unsupported as error:
        in_words(error)
        return
    assert compile_call(code.format(x="x"), namespace)() is not None


@every_probe
@pytest.mark.parametrize("device", ANY_DEVICE)
def test_queued_work_leaves_an_array_of_the_same_kind_or_there_is_no_queue(kind, device):
    probe = usable(kind, device)
    spec = ArraySpec((4, 8), "float32", "C", device)
    text = probe.enqueue(spec)
    if text is None:
        return
    namespace = {"x": make(probe, spec), "work": 3}
    exec(compile(probe.setup, "<setup>", "exec"), namespace)
    exec(compile(probe.queue_setup(spec), "<queue setup>", "exec"), namespace)
    exec(compile(text, "<enqueue>", "exec"), namespace)
    check_source(probe, spec, namespace["y"])


@every_probe
@pytest.mark.parametrize("device", ANY_DEVICE)
def test_what_the_framework_says_of_a_device_is_a_number_or_nothing(kind, device):
    probe = usable(kind, device)
    for answer in (probe.current_stream(device), probe.memory_in_use(device)):
        assert answer is None or (isinstance(answer, int) and answer >= 0)


@every_probe
def test_what_a_probe_declares_can_be_used(kind):
    check_probe(kind)


def test_no_two_probes_answer_to_the_same_name():
    names = [name for kind in BUILTIN for name in (kind.name, *kind.aliases)]
    assert len(names) == len(set(names))


@every_probe
def test_only_a_native_door_or_one_for_plain_memory_names_its_producers(kind):
    for import_ in kind.imports:
        if import_.producers:
            assert {Protocol.NATIVE, Protocol.BUFFER} & set(import_.protocols), import_.name
        else:
            assert Protocol.NATIVE not in import_.protocols, import_.name


@every_probe
def test_the_setup_text_compiles(kind):
    for text in (kind.setup, *(import_.setup for import_ in kind.imports)):
        assert compile(text, "<setup>", "exec")


@every_probe
def test_the_text_that_makes_an_array_compiles_for_any_array(kind):
    for device in kind.devices:
        for layout in LAYOUTS:
            for dtype in DTYPES:
                try:
                    text = kind().create(ArraySpec((4, 8), dtype, layout, device))
                except Unsupported as error:
                    in_words(error)
                    continue
                assert compile(text, "<create>", "exec")


def paths(producer: type[Probe], consumer: type[Probe]) -> Iterator[tuple[Export, Import]]:
    """The ways from ``producer`` to ``consumer`` for an array on the host."""
    for export in producer.exports:
        for import_ in consumer.imports:
            if (
                export.protocol in import_.protocols
                and "cpu" in export.devices
                and "cpu" in import_.devices
                and (not import_.producers or producer.name in import_.producers)
            ):
                yield export, import_


@every_probe
@pytest.mark.parametrize("consumer_kind", BUILTIN, ids=named)
def test_every_path_on_the_host_runs_or_is_refused_in_words(kind, consumer_kind):
    if importlib.util.find_spec(consumer_kind.module) is None:
        pytest.skip(f"{consumer_kind.name} is not installed")
    producer, consumer = usable(kind, "cpu"), consumer_kind()
    for export, import_ in paths(kind, consumer_kind):
        code = compose(export, import_, PLAIN)
        try:
            namespace = namespace_for(producer, consumer, import_)
            exec(compile(producer.create(PLAIN), "<create>", "exec"), namespace)
            result = compile_call(code, namespace)()
        except Exception as error:  # noqa: BLE001 - a framework may raise anything
            in_words(error)
            continue
        if import_.returns_array:
            # Some ways lose the shape (torch.asarray of a buffer): that is for a measure to tell.
            assert consumer.to_numpy(result).shape == consumer.shape(result), code
