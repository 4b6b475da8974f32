"""Plain host memory: layouts, values and ownership."""

import numpy
import pytest
from builders import make_subject

from dlprof.probes.base import PATTERNS, ArraySpec, Import, Protocol
from dlprof.probes.host import Array, ByteArray, Bytes, Mmap
from dlprof.worker.instruments import ownership


def expected(spec):
    pattern = PATTERNS[spec.dtype]
    index = numpy.arange(spec.elements).reshape(spec.shape)
    return (index % pattern.modulus + pattern.offset).astype(spec.dtype)


SPEC = ArraySpec((3, 4), "float64")
VIEW = "numpy.frombuffer({x}, '{dtype}').reshape({shape})"
every_kind = pytest.mark.parametrize(
    "kind", [Bytes, ByteArray, Array, Mmap], ids=lambda kind: kind.name
)


def subject(kind, code=VIEW, spec=SPEC):
    import_ = Import("any", (Protocol.BUFFER,), code)
    return make_subject(producer=kind(), import_=import_, spec=spec)


class TestPlainMemory:
    """Bytes without shape and dtype, which the import adds."""

    @every_kind
    def test_the_memory_holds_the_requested_values(self, kind):
        for dtype in ("int8", "uint16", "int64", "float64"):
            spec = ArraySpec((3, 400), dtype)
            assert numpy.array_equal(subject(kind, spec=spec).convert(), expected(spec))

    @every_kind
    def test_the_idioms_of_a_script_are_right(self, kind):
        made = subject(kind)
        says = kind().idioms("cpu", SPEC.dtype)
        names = {"x": made.source, "numpy": numpy}
        look = lambda idiom: eval(says[idiom].format(x="x"), names)  # noqa: E731
        assert numpy.array_equal(look("values"), expected(SPEC).reshape(-1))
        assert look("address") == made.producer.pointer(made.source)
        assert look("writable") is made.producer.writable(made.source) is ("write" in says)
        if "write" in says:
            exec(says["write"].format(x="x"), names)
            assert (look("values") == 1).all()

    @every_kind
    def test_a_view_of_plain_memory_is_told_apart_from_a_copy(self, kind):
        for code, verdict in ((VIEW, "view"), (f"{VIEW}.copy()", "copy")):
            assert ownership.measure(subject(kind, code))["verdict"] == verdict
