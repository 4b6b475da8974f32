"""Ownership: the verdict on three witnesses, and real memory to hear them about."""

from __future__ import annotations

import itertools

import numpy
import pytest
from builders import make_subject

from dlprof.probes.base import ArraySpec, Import, Protocol
from dlprof.probes.numpy import NumPy
from dlprof.worker.instruments import ownership
from dlprof.worker.instruments.ownership import judge
from dlprof.worker.subject import OneArray

pytestmark = pytest.mark.unit

ANSWERS = (True, False, None)

TRUTH = {
    # same address, source write shows, result write shows
    (True, True, True): "view",
    (True, True, None): "view",
    (True, None, True): "view",
    (None, True, True): "view",
    (None, True, None): "view",
    (None, None, True): "view",
    (False, True, True): "view",
    (False, True, None): "view",
    (False, None, True): "view",
    (False, False, False): "copy",
    (False, False, None): "copy",
    (False, None, False): "copy",
    (None, False, False): "copy",
    (None, False, None): "copy",
    (None, None, False): "copy",
}


@pytest.mark.parametrize("witnesses", list(itertools.product(ANSWERS, repeat=3)), ids=str)
def test_the_verdict_on_every_combination_of_witnesses(witnesses):
    keys = ("same_address", "source_write_shows", "result_write_shows")
    verdict, reason = judge(dict(zip(keys, witnesses, strict=True)))
    assert verdict == TRUTH.get(witnesses, "unknown")
    assert reason or verdict != "unknown"


def importing(code, **changes):
    return Import("any", (Protocol.DLPACK,), code, **changes)


def measured(code, spec=None, producer=None, consumer=None, **names):
    subject = make_subject(
        import_=importing(code), spec=spec, producer=producer, consumer=consumer, **names
    )
    before = subject.source.copy()
    found = ownership.measure(subject)
    assert numpy.array_equal(subject.source, before), "the source was not put back"
    return found


DTYPES = ("bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex128")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("code", "verdict"), [("{x}[:]", "view"), ("{x}.copy()", "copy")])
def test_views_and_copies_of_every_dtype(code, verdict, dtype):
    assert measured(code, ArraySpec((4, 8), dtype))["verdict"] == verdict


@pytest.mark.parametrize(
    "layout", ["C", "aligned", "F", "strided", "sliced", "reversed", "broadcast", "readonly"]
)
@pytest.mark.parametrize(
    ("code", "verdict"), [("{x}.view()", "view"), ("numpy.array({x})", "copy")]
)
def test_views_and_copies_of_every_layout(code, verdict, layout):
    assert measured(code, ArraySpec((4, 8), "float32", layout))["verdict"] == verdict


@pytest.mark.parametrize("shape", [(0,), (4, 0), (0, 8)])
def test_an_array_without_elements_has_no_owner(shape):
    found = measured("{x}[:]", ArraySpec(shape, "float32"))
    assert found["verdict"] == "unknown"
    assert "without elements" in found["evidence"]["reason"]


def test_a_call_that_leaves_nothing_behind_has_no_owner():
    found = ownership.measure(make_subject(import_=importing("len({x})", returns_array=False)))
    assert found["verdict"] == "unknown"
    assert "leaves no array behind" in found["evidence"]["reason"]


def test_a_read_only_view_of_a_writable_array_is_a_view():
    def frozen(array):
        view = array.view()
        view.flags.writeable = False
        return view

    assert measured("frozen({x})", frozen=frozen)["verdict"] == "view"


@pytest.mark.parametrize("code", ["{x}[::-1, ::-1]", "{x}[::-1]", "numpy.flip({x}).reshape(4, 8)"])
def test_a_view_that_begins_elsewhere_in_the_same_memory_is_no_copy(code):
    assert measured(code)["verdict"] != "copy"


def test_a_copy_beside_its_source_in_one_block_of_memory_is_a_copy():
    class Beside(NumPy):
        def create(self, spec):
            return (
                "block = numpy.zeros((2, 32), 'float32')\n"
                "block[0] = numpy.arange(32)\n"
                "x = block[0].reshape(4, 8)"
            )

    code = "(numpy.copyto(block[1], {x}.reshape(-1)), block[1].reshape(4, 8))[1]"
    assert measured(code, producer=Beside())["verdict"] == "copy"


class WithoutAddress(NumPy):
    """A framework that does not tell where its arrays are."""

    def pointer(self, array):
        return None


class Immutable(WithoutAddress):
    """A framework without addresses whose arrays cannot be written."""

    def write(self, array, value):
        return NotImplemented


def without_address(code, consumer, producer=None):
    subject = make_subject(import_=importing(code), producer=producer, consumer=consumer)
    return ownership.measure(subject)


def test_without_addresses_the_frameworks_own_writes_are_the_witnesses():
    pair = {"consumer": WithoutAddress(), "producer": WithoutAddress()}
    assert without_address("{x}[:]", **pair)["verdict"] == "view"
    assert without_address("{x}.copy()", **pair)["verdict"] == "copy"


def test_one_address_is_enough():
    assert without_address("{x}[:]", Immutable())["verdict"] == "view"
    assert without_address("{x}.copy()", Immutable())["verdict"] == "copy"


def test_without_address_and_write_nobody_can_tell():
    found = without_address("{x}[:]", Immutable(), Immutable())
    assert found["verdict"] == "unknown"
    assert found["evidence"]["reason"] == "no write could be tried on either side"


class Column(OneArray, NumPy):
    """A column of a wide matrix of the user's own."""

    array_name = "x"

    def create(self, spec):
        return "x = numpy.zeros((100, 1000), 'float32')[:, 0]"


def test_a_view_that_begins_far_away_in_a_users_own_array_is_no_copy():
    spec = ArraySpec((100,), "float32", "strided")
    import_ = Import("any", (Protocol.DLPACK,), "{x}[::-1]")
    subject = make_subject(import_=import_, producer=Column(), spec=spec)
    assert ownership.measure(subject)["verdict"] == "view"
