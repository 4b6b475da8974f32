"""The Numba probe on the CPU, with real Numba."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from dlprof.probes.base import LAYOUTS, ArraySpec, Protocol, Unsupported
from dlprof.probes.numba import Numba
from dlprof.probes.numpy import NumPy
from dlprof.worker.subject import namespace_for, prepare

pytest.importorskip("numba")
pytestmark = pytest.mark.integration

NUMBA, NUMPY = Numba(), NumPy()
SPEC = ArraySpec((4, 6), "float32")


def way(ways, name):
    return next(one for one in ways if one.name == name)


def case(producer, export, consumer, import_, spec=SPEC):
    out, into = way(producer.exports, export), way(consumer.imports, import_)
    return prepare(producer, consumer, out, into, spec, namespace_for(producer, consumer, into))


def from_numba(spec):
    return case(NUMBA, "ndarray", NUMPY, "ndarray", spec).source


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_array_of_numba_equals_one_of_numpy(layout):
    spec = replace(SPEC, layout=layout)
    expected = case(NUMPY, "ndarray", NUMPY, "ndarray", spec).source
    made = from_numba(spec)
    assert made.tolist() == expected.tolist()
    assert made.strides == expected.strides


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float64", "complex64"])
def test_every_dtype_that_numba_compiles_can_be_made(dtype):
    assert from_numba(replace(SPEC, dtype=dtype)).dtype.name == dtype


@pytest.mark.parametrize("layout", ["C", "strided", "broadcast"])
def test_the_memory_belongs_to_numbas_runtime(layout):
    owner = from_numba(replace(SPEC, layout=layout))
    while getattr(owner, "base", None) is not None:
        owner = owner.base
    assert type(owner).__name__ == "_MemInfo"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e5m2"])
def test_a_dtype_that_numba_lacks_is_refused_in_words(dtype):
    with pytest.raises(Unsupported, match=dtype):
        NUMBA.create(replace(SPEC, dtype=dtype))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_argument_comes_back_as_a_view(layout):
    spec = replace(SPEC, layout=layout)
    subject = case(NUMPY, "ndarray", NUMBA, "argument", spec)
    assert NUMBA.pointer(subject.convert()) == NUMPY.pointer(subject.source)


def test_a_read_only_argument_stays_read_only():
    subject = case(NUMPY, "ndarray", NUMBA, "argument", replace(SPEC, layout="readonly"))
    assert NUMBA.writable(subject.convert()) is False


def test_a_foreign_array_is_refused_by_numba_itself():
    torch = pytest.importorskip("torch")
    import numba

    subject = case(NUMPY, "array", NUMBA, "argument")
    subject.namespace["x"] = torch.zeros(3)
    with pytest.raises(numba.core.errors.TypingError, match="pyobject"):
        subject.convert()


def test_numpy_takes_the_array_over_by_dlpack():
    subject = case(NUMBA, "dlpack", NUMPY, "from_dlpack")
    assert NUMPY.pointer(subject.convert()) == NUMBA.pointer(subject.source)


def test_a_write_shows():
    array = from_numba(SPEC)
    NUMBA.write(array, 3)
    assert set(NUMBA.to_numpy(array).flat) == {3.0}


def test_a_read_only_array_cannot_be_written():
    assert NUMBA.write(from_numba(replace(SPEC, layout="readonly")), 3) is NotImplemented


def test_a_scalar_can_be_written():
    array = from_numba(replace(SPEC, shape=()))
    NUMBA.write(array, 3)
    assert array == 3


def test_the_small_operation_runs():
    subject = case(NUMPY, "ndarray", NUMBA, "argument")
    names = {**subject.namespace, "y": subject.convert()}
    added = eval(NUMBA.use("cpu").format(x="y"), names)
    assert added.tolist() == (subject.source + 1).tolist()


def test_nothing_can_be_queued_on_the_host():
    assert NUMBA.enqueue(SPEC) is None
    assert NUMBA.current_stream("cpu") is None


@pytest.mark.parametrize("import_", NUMBA.imports, ids=lambda one: one.name)
def test_setting_up_an_import_needs_no_gpu(import_):
    assert "numba" in namespace_for(NUMPY, NUMBA, import_)


@pytest.mark.parametrize("layout", sorted(set(LAYOUTS) - {"readonly"}))
@pytest.mark.parametrize("shape", [(16,), (4, 6), (2, 3, 4)])
def test_the_text_for_a_device_array_compiles(layout, shape):
    spec = ArraySpec(shape, "float16", layout, "cuda")
    assert compile(NUMBA.create(spec), "<create>", "exec")
    assert compile(NUMBA.enqueue(spec), "<enqueue>", "exec")


def test_there_are_no_read_only_device_arrays():
    with pytest.raises(Unsupported, match="read-only"):
        NUMBA.create(ArraySpec((4,), "float32", "readonly", "cuda"))


def test_device_arrays_have_the_interfaces_that_the_probe_declares():
    cuda = pytest.importorskip("numba.cuda")
    array = cuda.cudadrv.devicearray.DeviceNDArray
    offered = {export.protocol for export in NUMBA.exports if "cuda" in export.devices}
    assert hasattr(array, "__cuda_array_interface__")
    assert hasattr(array, "__dlpack__") == (Protocol.DLPACK in offered)


def test_without_a_gpu_numba_says_so_in_its_own_words():
    # In a child: whoever asks first decides for the whole process whether CUDA is there.
    code = (
        "from dlprof.probes.numba import Numba; import numba.cuda\n"
        "if numba.cuda.is_available(): raise SystemExit('gpu')\n"
        "try: Numba().ready('cuda')\n"
        "except numba.cuda.cudadrv.error.CudaSupportError as error: print(error)"
    )
    child = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    if child.stderr.strip() == "gpu":
        pytest.skip("there is a GPU")
    assert "CUDA driver" in child.stdout
