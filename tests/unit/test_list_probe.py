"""Lists of arrays and of numbers, as one array."""

import numpy
import pytest
import torch
from builders import make_subject

from dlprof.probes.base import ArraySpec, Import, Protocol
from dlprof.probes.list import List

SPEC = ArraySpec((3, 4, 5), "float32")
STACK = Import("stack", (Protocol.NATIVE,), "numpy.stack({x})")
TENSORS = [torch.arange(4.0) + index for index in range(3)]
NUMBERS = [[1.5, 2.5], [3.5, 4.5]]


@pytest.mark.parametrize("layout", ["C", "aligned", "F"])
def test_it_makes_a_list_with_the_values_of_one_array(layout):
    spec = ArraySpec(SPEC.shape, SPEC.dtype, layout)
    made = make_subject(producer=List(), import_=STACK, spec=spec)
    assert [item.shape for item in made.source] == [(4, 5)] * 3
    assert numpy.array_equal(made.convert(), List().to_numpy(made.source))
    assert (List().shape(made.source), List().dtype(made.source)) == (SPEC.shape, SPEC.dtype)


@pytest.mark.parametrize(
    ("things", "shape", "dtype"),
    [
        (TENSORS, (3, 4), "float32"),
        (tuple(TENSORS), (3, 4), "float32"),
        (NUMBERS, (2, 2), None),
        (["a", "b"], None, None),
        ([], None, None),
        (b"bytes", None, None),
    ],
)
def test_any_list_of_arrays_or_numbers_is_described(things, shape, dtype):
    assert List().shape(things) == shape
    assert shape is None or List().dtype(things) == dtype


@pytest.mark.parametrize("things", [TENSORS, NUMBERS, [numpy.zeros(3)], list(numpy.zeros(3))])
def test_a_write_reaches_every_array_and_number(things):
    assert List().write(things, 7) is None
    assert (List().to_numpy(things) == 7).all()


def test_what_cannot_be_written_is_left():
    assert List().write(([1.0],), 7) is None
    assert List().write((1.0,), 7) is NotImplemented


def test_a_nan_in_a_list_has_no_payload_to_lose():
    spec = ArraySpec((4, 16), "float16", "aligned", corners=True)
    made = make_subject(producer=List(), import_=STACK, spec=spec)
    items = torch.tensor([item.tolist() for item in made.source], dtype=torch.float16)
    assert items.numpy().tobytes() == List().to_numpy(made.source).tobytes()


def test_a_resized_list_stays_a_list_of_arrays():
    spec = List().resized(SPEC, 1 << 20)
    assert len(spec.shape) == 2
    assert spec.size_bytes == pytest.approx(1 << 20, rel=0.01)


def test_the_idioms_of_a_script_are_right():
    made = make_subject(producer=List(), import_=STACK, spec=SPEC)
    says, names = List().idioms("cpu", SPEC.dtype), {"x": made.source, "numpy": numpy}
    look = {name: eval(says[name].format(x="x"), names) for name in says if name != "write"}
    assert (look["shape"], look["dtype"]) == (SPEC.shape, SPEC.dtype)
    assert look["address"] == List().pointer(made.source)
    exec(says["write"].format(x="x"), names)
    assert (List().to_numpy(made.source) == 1).all()
