"""The bench: instruments that need memory which a framework takes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from builders import make_subject

from dlprof.probes.base import ArraySpec, Import, Protocol
from dlprof.worker.bench import Bench

pytestmark = pytest.mark.unit

SPEC = ArraySpec((4, 8), "float32")
REQUEST = {"instruments": [], "budget_ns": 1, "largest_bytes": 1}


def refuse_unaligned(array):
    if array.ctypes.data % 64:
        raise ValueError("not aligned to 64 bytes")
    return array


def bench(convert, spec=SPEC):
    def subject(spec):
        way = Import("any", (Protocol.DLPACK,), "convert({x})")
        return make_subject(import_=way, spec=spec, convert=convert)

    return Bench(subject(spec), REQUEST, None, SimpleNamespace(subject=subject))


def refused_but_aligned(subject):
    if subject.spec.layout != "aligned":
        raise ValueError("not aligned to 64 bytes")
    return {"verdict": "safe", "evidence": {}}


def test_an_instrument_whose_arrays_are_refused_looks_at_aligned_ones_and_says_so():
    found = bench(refuse_unaligned)._where_it_works(refused_but_aligned)
    assert found == {"verdict": "safe", "evidence": {"layout": "aligned"}}


@pytest.mark.parametrize(
    ("convert", "spec"),
    [(lambda array: array, SPEC), (refuse_unaligned, ArraySpec((4, 8), "float32", "strided"))],
    ids=["other memory is taken", "another layout"],
)
def test_what_fails_for_another_reason_fails(convert, spec):
    with pytest.raises(ValueError, match="not aligned"):
        bench(convert, spec)._where_it_works(refused_but_aligned)
