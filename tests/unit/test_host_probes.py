"""Plain host memory as a source: bytes without shape and dtype, which the way in says."""

from __future__ import annotations

import numpy
import pytest

from dlprof.probes import ALL, BUILTIN
from dlprof.probes.base import (
    CPU,
    HOST_MEMORY,
    PATTERNS,
    ArraySpec,
    Import,
    Probe,
    Protocol,
    Unsupported,
)
from dlprof.probes.host import HOST, Array, ByteArray, Bytes, Mmap, PyArrow
from dlprof.worker import memory
from dlprof.worker.contract import check_probe
from dlprof.worker.instruments import ownership, values
from dlprof.worker.subject import namespace_for, prepare

pytestmark = pytest.mark.unit

KINDS = (Bytes, ByteArray, Array, Mmap)
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
SPEC = ArraySpec((3, 4), "float64")


class Consumer(Probe):
    name = "consumer"
    module = "numpy"
    distributions = ("numpy",)
    devices = CPU
    imports = (
        Import(
            "view", (Protocol.BUFFER,), "numpy.frombuffer({x}, dtype='{dtype}').reshape({shape})"
        ),
        Import(
            "copy", (Protocol.BUFFER,), "numpy.frombuffer({x}, '{dtype}').reshape({shape}).copy()"
        ),
        Import("flat", (Protocol.BUFFER,), "numpy.frombuffer({x}, '{dtype}').copy()"),
        Import("bits", (Protocol.BUFFER,), "numpy.frombuffer({x}, 'int64').reshape({shape})"),
    )

    def pointer(self, array):
        return array.ctypes.data

    def to_numpy(self, array):
        return array


def subject(kind=ByteArray, way=0, spec=SPEC):
    producer, consumer = kind(), Consumer()
    import_ = consumer.imports[way]
    names = namespace_for(producer, consumer, import_)
    return prepare(producer, consumer, producer.exports[0], import_, spec, names)


def expected(spec):
    pattern = PATTERNS[spec.dtype]
    index = numpy.arange(spec.elements).reshape(spec.shape)
    found = index % pattern.modulus + pattern.offset
    return (found * (1 + 2j) if spec.dtype.startswith("complex") else found).astype(spec.dtype)


@every_kind
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float64", "complex64"])
def test_the_memory_holds_the_values_that_were_asked_for(kind, dtype):
    spec = ArraySpec((3, 400), dtype)
    if kind is Array and dtype in ("bool", "complex64"):
        pytest.skip("array.array has no such type")
    assert numpy.array_equal(subject(kind, 0, spec).convert(), expected(spec))


def test_an_array_without_such_a_type_is_refused_in_words():
    with pytest.raises(Unsupported, match="complex64"):
        Array().create(ArraySpec((4,), "complex64"))


def test_a_buffer_of_arrow_holds_the_values_too():
    pytest.importorskip("pyarrow")
    assert numpy.array_equal(subject(PyArrow).convert(), expected(SPEC))


def test_the_code_is_what_a_user_types_for_this_array():
    made = subject()
    assert made.code == "numpy.frombuffer(x, dtype='float64').reshape((3, 4))"
    assert made.of_elements(7).code == "numpy.frombuffer(x, dtype='float64').reshape((7,))"


@every_kind
def test_what_a_script_says_of_plain_memory_is_right(kind):
    made = subject(kind)
    says = kind().idioms("cpu", SPEC.dtype)

    def look(idiom):
        return eval(says[idiom].format(x="x"), {"x": made.source, "numpy": numpy})

    assert numpy.array_equal(look("values"), expected(SPEC).reshape(-1))
    assert look("address") == made.producer.pointer(made.source)
    assert look("writable") is made.producer.writable(made.source)
    assert ("write" in says) is look("writable")
    if "write" in says:
        exec(says["write"].format(x="x"), {"x": made.source, "numpy": numpy})
        assert (look("values") == 1).all()


@every_kind
@pytest.mark.parametrize(("way", "verdict"), [(0, "view"), (1, "copy")])
def test_a_view_of_plain_memory_is_told_from_a_copy(kind, way, verdict):
    assert ownership.measure(subject(kind, way))["verdict"] == verdict


@pytest.mark.parametrize(
    ("way", "changed"), [(0, set()), (1, set()), (2, {"shape"}), (3, {"dtype", "values"})]
)
def test_memory_without_shape_and_dtype_is_compared_with_what_was_asked_for(way, changed):
    assert set(values.measure(subject(way=way))["evidence"]["changed"]) == changed


def test_one_wrong_value_is_found_in_its_part(monkeypatch):
    monkeypatch.setattr(values, "PART_BYTES", 1)
    monkeypatch.setattr(memory, "fits", lambda needed: needed <= SPEC.size_bytes)
    made = subject(way=1)
    wrong = made.convert()
    wrong[2, 1] = -1
    object.__setattr__(made, "convert", lambda: wrong)
    found = values.measure(made)["evidence"]["changed"]["values"]
    assert found == {"different": 1, "of": 12, "first_index": 9}


@every_kind
@pytest.mark.parametrize("layout", ["F", "strided", "broadcast"])
def test_plain_memory_has_no_layout(kind, layout):
    with pytest.raises(Unsupported, match=layout):
        kind().create(ArraySpec((3, 4), "float64", layout))


@every_kind
def test_no_bytes_are_refused(kind):
    with pytest.raises(Unsupported):
        kind().create(ArraySpec((0,), "float64"))


def test_a_file_that_does_not_fit_is_refused_before_it_is_written():
    with pytest.raises(Unsupported, match="temporary"):
        Mmap().create(ArraySpec((2**60,), "uint8"))


@pytest.mark.parametrize("kind", HOST, ids=lambda kind: kind.name)
def test_a_probe_of_memory_keeps_to_the_contract(kind):
    check_probe(kind)
    assert kind.name in HOST_MEMORY
    assert kind not in BUILTIN
    assert kind in ALL


def test_a_single_byte_is_refused_where_all_share_it():
    with pytest.raises(Unsupported, match="a single byte"):
        Bytes().create(ArraySpec((1,), "int8"))
    ByteArray().create(ArraySpec((1,), "int8"))
