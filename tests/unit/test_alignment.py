"""Alignment on real memory: whether view or copy depends on the start of the source."""

from dataclasses import replace

import pytest
from builders import make_subject

from dlprof.probes.base import ArraySpec, Import, Protocol
from dlprof.worker.instruments import alignment

SPEC = ArraySpec((4, 8), "float32")


def refuse():
    raise ValueError("not aligned")


def measured(code, spec=SPEC, **changes):
    import_ = Import("any", (Protocol.DLPACK,), code, **changes)
    subject = make_subject(import_=import_, spec=spec, refuse=refuse)
    return alignment.measure(subject, spec)


@pytest.mark.parametrize(
    ("unaligned", "seen"), [("{x}.copy()", "copy"), ("refuse()", "refused")], ids=["copy", "refuse"]
)
def test_an_import_that_treats_unaligned_memory_differently_depends_on_it(unaligned, seen):
    found = measured(f"({{x}} if {{x}}.ctypes.data % 64 == 0 else {unaligned})")
    assert found["verdict"] == "dependent"
    assert found["evidence"]["aligned"]["verdict"] == "view"
    assert found["evidence"]["sliced"]["verdict"] == seen


def test_an_import_that_refuses_both_is_unknown_with_its_message():
    found = measured("refuse()")
    assert found["verdict"] == "unknown"
    assert "not aligned" in found["evidence"]["reason"]
    assert "{" not in found["evidence"]["reason"]  # the message, without evidence


@pytest.mark.parametrize("layout", ["F", "strided", "reversed", "broadcast", "readonly"])
def test_other_layouts_and_calls_without_a_result_have_no_answer(layout):
    assert measured("{x}[:]", replace(SPEC, layout=layout)) is None
    assert measured("{x}[:]", returns_array=False) is None
