"""Peak memory: the number of arrays that a conversion of host memory needs."""

import pytest
from builders import make_subject

from dlprof.probes.base import Import, Protocol
from dlprof.worker.instruments import peak_memory


def subject(code="{x}[...]", **names):
    return make_subject(import_=Import("any", (Protocol.DLPACK,), code), **names)


@pytest.mark.parametrize(
    ("code", "arrays"),
    [
        ("{x}[...]", 0),
        ("{x}.copy()", 1),
        ("{x}.copy().copy()", 2),
        ("kept.setdefault('once', {x}.copy())[:0]", 1),
    ],
    ids=["view", "copy", "copy of a copy", "kept from the first time"],
)
def test_numpy_needs_the_memory_of_its_copies(code, arrays):
    found = peak_memory.measure(subject(code, kept={}))
    if found["verdict"] == "unknown":
        pytest.skip(found["evidence"]["reason"])
    assert found["evidence"]["arrays"] == pytest.approx(arrays, abs=0.25)
