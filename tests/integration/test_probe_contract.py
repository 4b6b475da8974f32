"""The contract of every built-in probe, with real frameworks."""

import ctypes
import functools
import importlib.util
import itertools

import numpy as np
import pytest

from dlprof.probes.base import (
    ANY_DEVICE,
    BITS,
    DTYPES,
    LAYOUTS,
    PATTERNS,
    ArraySpec,
    Protocol,
    Unsupported,
)
from dlprof.probes.builtin import BUILTIN
from dlprof.worker.loading import check_probe
from dlprof.worker.source_text import compile_call, execute
from dlprof.worker.subject import check_source, compose, run_setups

# A framework's warning is no refusal: users still get their array.
pytestmark = pytest.mark.filterwarnings("ignore")

PLAIN = ArraySpec((4, 8), "float32")
FEW_DTYPES = ("bool", "float32")
"""The dtypes for every layout. JAX and Numba compile for each dtype and layout."""


def named(kind):
    return kind.name


every_probe = pytest.mark.parametrize("kind", BUILTIN, ids=named)
every_device = pytest.mark.parametrize("device", ANY_DEVICE)


def in_words(error):
    assert str(error), repr(error)
    return str(error)


@functools.cache
def refusal(kind, device):
    """Return why the framework or the device is missing, or an empty text."""
    try:
        kind().ready(device)
    except Exception as error:  # noqa: BLE001 - a framework may raise anything
        return in_words(error)
    return ""


def need_installed(kind):
    try:
        found = importlib.util.find_spec(kind.module)
    except ModuleNotFoundError:  # of a package that holds the module
        found = None
    if found is None:
        pytest.skip(f"{kind.name} is not installed")


def usable(kind, device):
    """Return the probe, ready for ``device``, or skip the test."""
    need_installed(kind)
    if device not in kind.devices:
        pytest.skip(f"{kind.name} owns no arrays on {device}")
    if reason := refusal(kind, device):
        pytest.skip(f"{kind.name} cannot use {device}: {reason}")
    probe = kind()
    probe.ready(device)
    return probe


@functools.cache
def names_of(setup):
    """Return the names that a setup makes, compiled once."""
    namespace = {}
    execute(setup, namespace, "setup")
    return namespace


def names_with(probe, spec):
    """Return the names after the setup, with the array as ``x``."""
    namespace = dict(names_of(probe.setup))
    execute(probe.create(spec), namespace, "create")
    check_source(probe, spec, namespace["x"])
    return namespace


def make(probe, spec):
    return names_with(probe, spec)["x"]


def expected(spec, first=0):
    """Return the values of ``spec``, or their bits if NumPy lacks the dtype."""
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
    if spec.dtype in BITS:
        ml_dtypes = pytest.importorskip("ml_dtypes")
        return values.astype(getattr(ml_dtypes, spec.dtype)).view(BITS[spec.dtype])
    return values.astype(spec.dtype)


def check_made(probe, spec):
    """Check that an array matches its spec or is refused in words."""
    try:
        array = make(probe, spec)
    except Exception as error:  # noqa: BLE001 - a framework may raise anything
        in_words(error)
        return
    values = probe.to_numpy(array)
    # A slice may begin with the first or with the second value of the larger array.
    choices = [expected(spec, first) for first in ((0, 1) if spec.layout == "sliced" else (0,))]
    assert (values.shape, values.dtype) == (spec.shape, choices[0].dtype), spec
    assert any((values == choice).all() for choice in choices), spec


@every_probe
@every_device
def test_an_array_is_made_as_asked_or_refused_in_words(kind, device):
    probe = usable(kind, device)
    for dtype in DTYPES:
        check_made(probe, ArraySpec((4, 8), dtype, "C", device))
    for layout, dtype in itertools.product(LAYOUTS, FEW_DTYPES):
        check_made(probe, ArraySpec((4, 8), dtype, layout, device))
    for shape in ((), (0, 3), (5,), (2, 3, 4)):
        check_made(probe, ArraySpec(shape, "float32", "C", device))


@pytest.mark.parametrize("name", ["numpy", "numba", "torch"])
def test_an_aligned_array_begins_at_an_odd_multiple_of_64_bytes(name):
    probe = usable(next(kind for kind in BUILTIN if kind.name == name), "cpu")
    for shape, dtype in itertools.product([(0, 3), (5,), (64, 64)], FEW_DTYPES):
        spec = ArraySpec(shape, dtype, "aligned")
        array = make(probe, spec)
        assert not spec.elements or (probe.pointer(array) or 0) % 128 == 64, spec


@every_probe
def test_the_memory_at_the_pointer_holds_the_values_as_they_are_now(kind):
    probe = usable(kind, "cpu")
    array = make(probe, PLAIN)
    values = probe.to_numpy(array)
    values.setflags(write=True)
    values[...] = 7
    assert (probe.to_numpy(array) == expected(PLAIN)).all(), "the values are no copy"
    pointer = probe.pointer(array)
    if pointer is not None:
        assert ctypes.string_at(pointer, PLAIN.size_bytes) == expected(PLAIN).tobytes()
        ctypes.memset(pointer, 0, PLAIN.size_bytes)
        assert not probe.to_numpy(array).any(), "the values were kept"


@every_probe
@every_device
def test_a_write_changes_the_array_in_place_or_is_not_implemented(kind, device):
    probe = usable(kind, device)
    array = make(probe, ArraySpec((4, 8), "float32", "C", device))
    before = probe.pointer(array)
    if probe.write(array, 3) is NotImplemented:
        assert probe.writable(array) is not True
        return
    assert probe.pointer(array) == before
    assert (probe.to_numpy(array) == 3).all()


@every_probe
@every_device
def test_an_array_can_be_waited_for_used_and_queued_behind_work(kind, device):
    probe = usable(kind, device)
    for dtype in ("float32", "bool"):
        spec = ArraySpec((4, 8), dtype, "C", device)
        try:
            namespace = names_with(probe, spec)
        except Unsupported as error:
            in_words(error)
            continue
        compile_call(probe.wait(device).format(x="x") or "None", namespace)()
        assert (probe.to_numpy(namespace["x"]) == expected(spec)).all()
        text = probe.enqueue(spec)
        if text is not None:
            namespace["work"] = 3
            execute(probe.queue_setup(spec), namespace, "queue setup")
            execute(text, namespace, "enqueue")
            check_source(probe, spec, namespace["y"])
    try:
        code = probe.use(device)
    except Unsupported as error:
        in_words(error)
    else:
        namespace = names_with(probe, ArraySpec((4, 8), "float32", "C", device))
        assert compile_call(code.format(x="x"), namespace)() is not None
    assert probe.current_stream(device) is None or probe.current_stream(device) >= 0


@every_probe
def test_the_declarations_of_a_probe_can_be_used(kind):
    check_probe(kind)
    for text in (kind.setup, *(import_.setup for import_ in kind.imports)):
        assert compile(text, "<setup>", "exec")
    for import_ in kind.imports:
        if import_.producers:
            assert {Protocol.NATIVE, Protocol.BUFFER} & set(import_.protocols), import_.name
        else:
            assert Protocol.NATIVE not in import_.protocols, import_.name


def paths(producer, consumer):
    """Yield the paths from ``producer`` to ``consumer`` for an array on the host."""
    for export, import_ in itertools.product(producer.exports, consumer.imports):
        on_host = "cpu" in export.devices and "cpu" in import_.devices
        taken = not import_.producers or producer.name in import_.producers
        if export.protocol in import_.protocols and on_host and taken:
            yield export, import_


@every_probe
@pytest.mark.parametrize("consumer_kind", BUILTIN, ids=named)
def test_every_path_on_the_host_runs_or_is_refused_in_words(kind, consumer_kind):
    need_installed(consumer_kind)
    producer, consumer = usable(kind, "cpu"), consumer_kind()
    for export, import_ in paths(kind, consumer_kind):
        code = compose(export, import_, PLAIN)
        try:
            namespace = run_setups(producer, consumer, import_)
            execute(producer.create(PLAIN), namespace, "create")
            result = compile_call(code, namespace)()
        except Exception as error:  # noqa: BLE001 - a framework may raise anything
            in_words(error)
            continue
        if import_.returns_array:
            # Some ways lose the shape (torch.asarray of a buffer); that is for an instrument.
            assert consumer.to_numpy(result).shape == consumer.shape(result), code
