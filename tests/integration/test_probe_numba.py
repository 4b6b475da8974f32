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


def test_a_foreign_array_is_refused_by_numba_itself():
    torch = pytest.importorskip("torch")
    import numba

    subject = case(NUMPY, "array", NUMBA, "argument")
    subject.namespace["x"] = torch.zeros(3)
    with pytest.raises(numba.core.errors.TypingError, match="pyobject"):
        subject.convert()


def test_a_scalar_can_be_written():
    array = from_numba(replace(SPEC, shape=()))
    NUMBA.write(array, 3)
    assert array == 3


@pytest.mark.parametrize("import_", NUMBA.imports, ids=lambda one: one.name)
def test_setting_up_an_import_needs_no_gpu(import_):
    assert "numba" in namespace_for(NUMPY, NUMBA, import_)


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
