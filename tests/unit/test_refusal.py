"""Refusals in a loop: the memory they leave behind, and loops that end early."""

import time
from dataclasses import replace

import pytest
from builders import make_subject

from dlprof.probes.base import ArraySpec, Import, Protocol
from dlprof.probes.numpy import NumPy
from dlprof.worker import growth
from dlprof.worker.instruments import refusal
from dlprof.worker.subject import OneArray


@pytest.fixture(autouse=True)
def _no_refusal_before(monkeypatch):
    monkeypatch.setattr(refusal, "_refusal_keys", set())
    monkeypatch.setattr(refusal, "_working", {})


def measured(take):
    """The verdict on a path that only refuses."""
    subject = make_subject(import_=Import("take", (Protocol.DLPACK,), "take({x})"), take=take)
    return refusal.measure(subject, TypeError("no"))


def measured_after_a_plain_array(take):
    def take_plain(array):
        return array if array.dtype == "float32" else take(array)

    import_ = Import("take", (Protocol.DLPACK,), "take({x})")
    plain, other = (
        make_subject(import_=import_, spec=ArraySpec((4, 8), dtype), take=take_plain)
        for dtype in ("float32", "int8")
    )
    refusal.note_working(plain)
    return refusal.measure(other, TypeError("no"))


def test_a_refusal_that_leaves_nothing_behind_is_clean():
    def refuse(array):
        raise TypeError("no")

    assert measured_after_a_plain_array(refuse)["verdict"] == "clean"


def test_memory_kept_for_each_refused_array_is_retained(monkeypatch):
    monkeypatch.setattr(growth, "RELEASED_S", 0.0)
    kept = []

    def refuse(array):
        kept.append(array)
        raise TypeError("no")

    assert measured(refuse)["verdict"] == "retained"


class Own(OneArray, NumPy):
    """An array of a user's own setup."""

    array_name = "x"

    def create(self, spec):
        return "x = numpy.arange(4096, dtype='float32')"


def test_memory_kept_for_each_refusal_of_a_users_own_array_is_retained(monkeypatch):
    monkeypatch.setattr(growth, "RELEASED_S", 0.0)
    kept = []

    def refuse(array):
        kept.append(array.copy())
        raise TypeError("no")

    spec = ArraySpec((4096,), "float32")
    import_ = Import("take", (Protocol.DLPACK,), "take({x})")
    subject = make_subject(import_=import_, spec=spec, producer=Own(), take=refuse)
    assert refusal.measure(subject, TypeError("no"))["verdict"] == "retained"


def test_a_slow_refusal_is_not_repeated():
    calls = []

    def refuse(array):
        calls.append(array.shape)
        time.sleep(0.05)
        raise TypeError("no")

    found = measured(refuse)
    assert (found["verdict"], "too long" in found["evidence"]["reason"]) == ("unknown", True)
    assert len(calls) < growth.FEW


def test_a_refusal_is_not_clean_if_no_framework_counts_the_devices_memory():
    def refuse(array):
        raise TypeError("no")

    subject = make_subject(import_=Import("take", (Protocol.DLPACK,), "take({x})"), take=refuse)
    found = refusal.measure(replace(subject, result_device="cuda"), TypeError("no"))
    assert found["verdict"] == "unknown"


class Guarded(NumPy):
    """NumPy whose arrays can be made only while ``guard`` allows it."""

    def create(self, spec):
        return f"{super().create(spec)}\nguard()"


def test_a_plain_array_that_cannot_be_made_after_the_refusals_is_broken():
    refused = []

    def take(array):
        if array.dtype.kind == "c":
            refused.append(array.shape)
            raise TypeError("no complex numbers")
        return array

    def guard():
        if refused:
            raise RuntimeError("no arrays any more")

    names = {"take": take, "guard": guard}
    import_ = Import("take", (Protocol.DLPACK,), "take({x})")
    plain, other = (
        make_subject(producer=Guarded(), import_=import_, spec=ArraySpec((4, 8), dtype), **names)
        for dtype in ("float32", "complex64")
    )
    refusal.note_working(plain)
    found = refusal.measure(other, TypeError("no complex numbers"))
    assert found["verdict"] == "broken"
    assert found["evidence"]["after"] == "RuntimeError: no arrays any more"
    assert found["evidence"]["plain_code"] == "take(x)"
