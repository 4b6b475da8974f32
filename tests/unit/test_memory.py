"""The memory of a process: mappings, meters, control groups."""

import sys

import numpy
import pytest

from dlprof.probes.base import ArraySpec
from dlprof.worker.subject import lies_within

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="told by Linux only")


BYTES = numpy.zeros(400, "uint8")


@pytest.mark.parametrize(
    ("source", "inside", "outside"),
    [
        (BYTES[:100], (1000, 1099), (999, 1100)),
        (BYTES[:100][::-1], (901, 1000), (900, 1001)),
        (BYTES[:200:2], (1000, 1198), (1199,)),
        (numpy.broadcast_to(BYTES[:10], (10, 10)), (1009,), (1010,)),
        (b"no strides", (1099,), (1100,)),
    ],
    ids=["plain", "reversed", "strided", "broadcast", "without strides"],
)
def test_a_view_may_begin_anywhere_in_the_memory_of_its_source(source, inside, outside):
    spec = ArraySpec((100,), "uint8")
    assert all(lies_within(address, 1000, source, spec) for address in inside)
    assert not any(lies_within(address, 1000, source, spec) for address in outside)
