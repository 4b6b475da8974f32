"""Plain host memory: the idioms of its probes."""

import numpy
import pytest
from builders import make_subject

from dlprof.probes.base import PATTERNS, ArraySpec, Import, Protocol
from dlprof.probes.host import Array, ByteArray, Bytes, Mmap


def expected(spec):
    pattern = PATTERNS[spec.dtype]
    index = numpy.arange(spec.elements).reshape(spec.shape)
    return (index % pattern.modulus + pattern.offset).astype(spec.dtype)


SPEC = ArraySpec((3, 4), "float64")
VIEW = "numpy.frombuffer({x}, '{dtype}').reshape({shape})"


@pytest.mark.parametrize("kind", [Bytes, ByteArray, Array, Mmap], ids=lambda kind: kind.name)
def test_the_idioms_of_a_script_are_right(kind):
    import_ = Import("any", (Protocol.BUFFER,), VIEW)
    made = make_subject(producer=kind(), import_=import_, spec=SPEC)
    says = kind().idioms("cpu", SPEC.dtype)
    names = {"x": made.source, "numpy": numpy}
    look = lambda idiom: eval(says[idiom].format(x="x"), names)  # noqa: E731
    assert numpy.array_equal(look("values"), expected(SPEC).reshape(-1))
    assert look("address") == made.producer.pointer(made.source)
    assert look("writable") is made.producer.writable(made.source) is ("write" in says)
    if "write" in says:
        exec(says["write"].format(x="x"), names)
        assert (look("values") == 1).all()
