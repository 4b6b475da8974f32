"""Ownership: the verdict on address and writes, tested on real memory."""

import ctypes
import itertools
from dataclasses import replace

import numpy
import pytest
from builders import Immutable, make_subject

from dlprof.probes.base import LAYOUTS, ArraySpec, Export, Import, Protocol
from dlprof.probes.numpy import NumPy
from dlprof.worker.instruments import ownership
from dlprof.worker.instruments.ownership import judge
from dlprof.worker.subject import OneArray

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


@pytest.mark.parametrize("seen", list(itertools.product(ANSWERS, repeat=3)), ids=str)
def test_every_combination_of_address_and_writes_has_its_verdict(seen):
    keys = ("same_address", "source_write_shows", "result_write_shows")
    verdict, reason = judge(dict(zip(keys, seen, strict=True)))
    assert verdict == TRUTH.get(seen, "unknown")
    assert reason or verdict != "unknown"


def subject_of(code, **options):
    return make_subject(import_=Import("any", (Protocol.DLPACK,), code), **options)


def measured(code, spec=None, producer=None):
    subject = subject_of(code, spec=spec, producer=producer)
    before = subject.source.copy()
    found = ownership.measure(subject)
    assert numpy.array_equal(subject.source, before), "the source was not put back"
    return found


@pytest.mark.parametrize(
    "spec",
    [
        *(ArraySpec((4, 8), "float32", layout) for layout in LAYOUTS),
        *(ArraySpec((4, 8), dtype) for dtype in ("bool", "int8", "float16", "complex128")),
    ],
    ids=lambda spec: f"{spec.dtype}-{spec.layout}",
)
def test_views_and_copies_of_every_layout_and_dtype(spec):
    assert measured("{x}.view()", spec)["verdict"] == "view"
    assert measured("numpy.array({x})", spec)["verdict"] == "copy"


@pytest.mark.parametrize("code", ["{x}[::-1, ::-1]", "{x}[::-1]", "numpy.flip({x}).reshape(4, 8)"])
def test_a_view_that_begins_elsewhere_in_the_same_memory_is_no_copy(code):
    assert measured(code)["verdict"] != "copy"


class WithoutAddress(NumPy):
    def pointer(self, array):
        return None


class Unreachable(WithoutAddress, Immutable):
    """Arrays that have no address and cannot be written."""


@pytest.mark.parametrize(
    ("consumer", "producer"),
    [(WithoutAddress(), WithoutAddress()), (Unreachable(), None)],
    ids=["no address", "one address and no write"],
)
def test_writes_decide_without_two_addresses(consumer, producer):
    for code, verdict in (("{x}[:]", "view"), ("{x}.copy()", "copy")):
        subject = subject_of(code, producer=producer, consumer=consumer)
        assert ownership.measure(subject)["verdict"] == verdict


def test_a_write_without_effect_proves_nothing():
    class Frozen(WithoutAddress):
        def write(self, array, value):
            pass

    subject = subject_of("{x}[:]", producer=Frozen(), consumer=Unreachable())
    assert ownership.measure(subject)["verdict"] == "unknown"


class TestFiles:
    """Memory that maps a file."""

    def subject(self, tmp_path, mode, code="{x}[...]"):
        path = tmp_path / "a.npy"
        numpy.save(path, numpy.arange(8.0))

        class OnesOwn(OneArray, NumPy):
            def create(self, spec):
                return f"x = numpy.load({str(path)!r}, mmap_mode={mode!r})"

        return make_subject(
            export=Export("array", Protocol.NATIVE, "{x}"),
            import_=Import("any", (Protocol.NATIVE,), code),
            producer=OnesOwn(),
            spec=ArraySpec((8,), "float64"),
        )

    @pytest.mark.parametrize("mode", ["r", "r+"])
    @pytest.mark.parametrize(
        ("code", "verdict"), [("numpy.array({x})", "copy"), ("{x}[...]", "view")]
    )
    def test_a_file_is_not_written_and_has_its_verdict(self, tmp_path, mode, code, verdict):
        found = ownership.measure(self.subject(tmp_path, mode, code))
        assert found["evidence"]["source_write_shows"] is None
        assert found["evidence"]["not_written"] == ownership.NOT_WRITTEN
        assert found["verdict"] == verdict

    def test_no_framework_may_write_read_only_memory(self, tmp_path):
        """The write would kill the process."""

        class Fills(NumPy):
            def write(self, array, value):
                ctypes.memset(array.ctypes.data, value, array.nbytes)

        subject = replace(self.subject(tmp_path, "r"), consumer=Fills())
        assert ownership.measure(subject)["verdict"] == "view"
