"""OrtValues on the host, as the probe makes and reads them."""

from __future__ import annotations

import ctypes

import numpy
import pytest

from dlprof.probes.base import ArraySpec, Unsupported
from dlprof.probes.onnxruntime import OnnxRuntime
from dlprof.worker.subject import check_source

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore")]

onnxruntime = pytest.importorskip("onnxruntime")
torch = pytest.importorskip("torch")


def made(dtype="float32", layout="C"):
    spec = ArraySpec((4, 8), dtype, layout)
    namespace = {}
    exec(OnnxRuntime.setup, namespace)
    exec(OnnxRuntime().create(spec), namespace)
    check_source(OnnxRuntime(), spec, namespace["x"])
    return namespace["x"]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_to_numpy_shows_memory_as_it_is_now(dtype):
    probe = OnnxRuntime()
    x = made(dtype)
    probe.to_numpy(x)
    ctypes.memset(probe.pointer(x), 0, 64)
    assert not probe.to_numpy(x)[:2].any()


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [
        ("bfloat16", [0, 0x3F80, 0x4000, 0x4040]),
        ("float8_e4m3fn", [0, 0x38, 0x40, 0x44]),
        ("float8_e5m2", [0, 0x3C, 0x40, 0x42]),
    ],
)
def test_a_dtype_that_numpy_lacks_is_read_as_its_bits(dtype, bits):
    assert OnnxRuntime().to_numpy(made(dtype))[0, :4].tolist() == bits


@pytest.mark.parametrize("dtype", ["bool", "float64", "bfloat16"])
def test_a_write_leaves_the_memory_where_it_is(dtype):
    probe = OnnxRuntime()
    x = made(dtype)
    before = probe.pointer(x)
    probe.write(x, 1)
    assert probe.pointer(x) == before
    assert len(set(probe.to_numpy(x).ravel().tolist())) == 1


def test_a_slice_is_over_memory_of_numpy_and_off_a_64_byte_boundary():
    assert OnnxRuntime().pointer(made(layout="sliced")) % 64 == 4


def test_a_slice_of_a_dtype_that_numpy_lacks_is_refused():
    with pytest.raises(Unsupported, match="no slices"):
        made("bfloat16", layout="sliced")


def test_there_is_no_operation_and_no_queue_outside_a_session():
    with pytest.raises(Unsupported, match="session"):
        OnnxRuntime().use("cpu")
    assert OnnxRuntime().enqueue(ArraySpec((4, 8), "float32")) is None


def bound(code, x):
    """A session with ``x`` bound to its input, by the import whose code begins so."""
    import_ = next(way for way in OnnxRuntime.imports if way.code.startswith(code))
    namespace = {"x": x}
    exec(OnnxRuntime.setup + "\n" + import_.setup, namespace)
    eval(import_.code.format(x="x", dtype="float32", shape="(4, 8)"), namespace)
    return namespace


def run(namespace):
    namespace["binding"].bind_output("y")
    namespace["session"].run_with_iobinding(namespace["binding"])
    return namespace["binding"].copy_outputs_to_cpu()[0]


def of_numpy():
    return numpy.ones((4, 8), "float32")


def of_torch():
    return torch.ones(4, 8)


BINDINGS = {
    "binding.bind_cpu_input": of_numpy,
    "binding.bind_ortvalue_input": of_numpy,
    "binding.bind_input('x', 'cpu'": of_torch,
}


@pytest.mark.parametrize("code", BINDINGS)
def test_a_session_reads_what_was_bound(code):
    assert run(bound(code, BINDINGS[code]())).tolist() == [[1.0] * 8] * 4


@pytest.mark.parametrize("code", BINDINGS)
def test_what_was_bound_is_not_copied(code):
    x = BINDINGS[code]()
    namespace = bound(code, x)
    x[...] = 7
    assert run(namespace)[0, 0] == 7


def test_a_bare_address_is_bound_of_contiguous_arrays_only():
    (import_,) = [way for way in OnnxRuntime.imports if way.name == "bind_input_torch_cpu"]
    assert not {"F", "strided", "reversed", "broadcast"} & set(import_.layouts)


def test_a_bare_address_can_be_bound_of_a_dtype_that_numpy_lacks():
    (import_,) = [way for way in OnnxRuntime.imports if way.name == "bind_input_torch_cpu"]
    namespace = {"x": torch.ones(4, 8, dtype=torch.bfloat16)}
    exec(OnnxRuntime.setup + "\n" + import_.setup, namespace)
    eval(import_.code.format(x="x", dtype="bfloat16", shape="(4, 8)"), namespace)
