"""The CuPy probe, as far as it goes without a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from dlprof.device.cuda import driver_devices
from dlprof.probes.base import DTYPES, LAYOUTS, ArraySpec, Unsupported
from dlprof.probes.cupy import CuPy
from dlprof.probes.numpy import NumPy
from dlprof.worker.subject import namespace_for

cupy = pytest.importorskip("cupy")
pytestmark = pytest.mark.integration

CUPY = CuPy()
WITHOUT_GPU = pytest.mark.skipif(isinstance(driver_devices(), int), reason="there is a GPU")


def layouts():
    return [name for name in LAYOUTS if name != "readonly"]


@pytest.mark.parametrize("layout", [name for name in layouts() if name != "sliced"])
@pytest.mark.parametrize("dtype", [one for one in DTYPES if not one.startswith(("bfl", "float8"))])
def test_the_text_makes_what_numpy_makes(layout, dtype):
    # CuPy follows NumPy's interface, so its text is run with NumPy under its name.
    spec = ArraySpec((4, 6), dtype, layout, "cuda")
    ours, expected = {"cupy": np}, {"numpy": np}
    exec(CUPY.create(spec), ours)
    exec(NumPy().create(spec), expected)
    assert ours["x"].dtype.name == dtype
    assert ours["x"].strides == expected["x"].strides
    assert ours["x"].tolist() == expected["x"].tolist()


def test_a_slice_begins_one_element_into_its_memory():
    names = {"cupy": np}
    exec(CUPY.create(ArraySpec((4, 6), "float32", "sliced", "cuda")), names)
    owner = names["x"].base
    while owner.base is not None:
        owner = owner.base
    assert names["x"].ctypes.data - owner.ctypes.data == 4


def test_a_host_array_is_refused_in_words():
    with pytest.raises(Unsupported, match="CUDA devices only"):
        CUPY.create(ArraySpec((4,), "float32", device="cpu"))


@pytest.mark.parametrize("import_", CUPY.imports, ids=lambda one: one.name)
def test_setting_up_an_import_needs_no_gpu(import_):
    assert namespace_for(NumPy(), CUPY, import_)["cupy"] is cupy


@pytest.mark.parametrize("way", [*CUPY.exports, *CUPY.imports], ids=lambda one: one.name)
def test_every_way_names_something_that_this_cupy_has(way):
    name = way.code.partition("(")[0].replace("{x}", "cupy.ndarray")
    found = cupy
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    assert callable(found)


@WITHOUT_GPU
def test_a_host_array_by_dlpack_is_refused_by_cupy_itself():
    with pytest.raises(TypeError, match="CPU arrays cannot be directly imported"):
        eval(CUPY.imports[0].code.format(x="x"), {"cupy": cupy, "x": np.zeros(3)})
