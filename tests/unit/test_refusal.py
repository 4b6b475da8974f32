"""What a loop of refusals leaves behind, and when there is none."""

import itertools
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from builders import make_subject

from dlprof.probes.base import ArraySpec, Export, Import, Protocol
from dlprof.probes.numpy import NumPy
from dlprof.protocol.messages import OTHER_VALUES
from dlprof.worker.instruments import lifetime, refusal


@pytest.fixture(autouse=True)
def _no_refusal_before(monkeypatch):
    monkeypatch.setattr(refusal, "_tried", set())
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
    refusal.worked(plain)
    return refusal.measure(other, TypeError("no"))


def test_a_refusal_that_leaves_nothing_behind_is_clean():
    def refuse(array):
        raise TypeError("no")

    assert measured_after_a_plain_array(refuse)["verdict"] == "clean"


def test_a_refusal_is_not_clean_if_no_plain_array_could_show_what_it_broke():
    def refuse(array):
        raise TypeError("no")

    found = measured(refuse)
    assert found["verdict"] == "unknown"
    assert "no plain array" in found["evidence"]["reason"]


def test_what_is_kept_of_each_refused_array_is_retained(monkeypatch):
    monkeypatch.setattr(lifetime, "RELEASED_S", 0.0)
    kept = []

    def refuse(array):
        kept.append(array)
        raise TypeError("no")

    assert measured(refuse)["verdict"] == "retained"


def test_a_refusal_that_takes_long_is_not_repeated():
    calls = []

    def refuse(array):
        calls.append(array.shape)
        time.sleep(0.05)
        raise TypeError("no")

    found = measured(refuse)
    assert (found["verdict"], "too long" in found["evidence"]["reason"]) == ("unknown", True)
    assert len(calls) < refusal.FEWEST


def test_a_refusal_that_takes_rather_long_is_repeated_a_few_times(monkeypatch):
    kept, calls, times = [], [], itertools.count(0.0, refusal.MOST_S / 20)
    monkeypatch.setattr(refusal, "time", SimpleNamespace(perf_counter=lambda: next(times)))

    def refuse(array):
        calls.append(None)
        if len(calls) < 8:  # as a compiler's caches do at first
            kept.append([object() for _ in range(9)])
        raise TypeError("no")

    assert measured_after_a_plain_array(refuse)["verdict"] == "clean"
    assert len(calls) < lifetime.FEW


def test_a_cache_of_errors_that_fills_while_slow_refusals_are_repeated_is_no_leak(monkeypatch):
    monkeypatch.setattr(lifetime, "RELEASED_S", 0.0)
    times = itertools.count(0.0, refusal.MOST_S / 2 / refusal.FEWEST)
    monkeypatch.setattr(refusal, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    cached = []

    def refuse(array):
        if len(cached) < 128:
            cached.append([object() for _ in range(3)])
        raise TypeError("no")

    assert measured_after_a_plain_array(refuse)["verdict"] == "clean"


def counting(monkeypatch, each_s):
    """What refuses, its calls, and a clock for a refusal that takes so long."""
    monkeypatch.setattr(lifetime, "RELEASED_S", 0.0)
    refused, times = [], itertools.count(0.0, each_s)
    monkeypatch.setattr(refusal, "time", SimpleNamespace(perf_counter=lambda: next(times)))

    def refuse(array):
        refused.append(None)
        raise TypeError("no")

    return refuse, refused


BY_SPEED_AND_TYPE = pytest.mark.parametrize(
    ("each_s", "code", "repeats"),
    [
        (2 * refusal.SLOW_S, "{x}.view()", False),
        (2 * refusal.SLOW_S, "({x},)", True),
        (refusal.SLOW_S / 2, "{x}.view()", True),
    ],
    ids=["slow", "of another type", "fast"],
)


@BY_SPEED_AND_TYPE
def test_a_compiler_that_refuses_the_arrays_of_two_exports_is_asked_often_of_one(
    monkeypatch, each_s, code, repeats
):
    refuse, refused = counting(monkeypatch, each_s)
    import_ = Import("take", (Protocol.DLPACK,), "take({x})")
    often = []
    for name, text in (("own", "{x}"), ("other", code)):
        refused.clear()
        export = Export(name, Protocol.DLPACK, text)
        refusal.measure(make_subject(export, import_, take=refuse), TypeError("no"))
        often.append(len(refused) >= refusal.FEWEST)
    assert often == [True, repeats]


def test_what_is_known_to_leave_something_is_not_proved_again(monkeypatch):
    refuse, refused = counting(monkeypatch, 1e-5)
    subject = make_subject(import_=Import("take", (Protocol.DLPACK,), "take({x})"), take=refuse)
    found = refusal.measure(subject, TypeError("no"), refusal.Known(["TypeError: no"]))
    assert (found["verdict"], found["evidence"]["moot"]) == ("unknown", True)
    assert len(refused) < refusal.FEWEST


@BY_SPEED_AND_TYPE
def test_what_a_compiler_left_of_numpys_array_in_another_process_is_not_looked_at_again(
    monkeypatch, each_s, code, repeats
):
    refuse, refused = counting(monkeypatch, each_s)
    export = Export("other", Protocol.DLPACK, code)
    import_ = Import("take", (Protocol.DLPACK,), "take({x})")
    subject = make_subject(export, import_, take=refuse)
    refusal.measure(subject, TypeError("no"), refusal.Known(of_numpy=["TypeError: no"]))
    assert (len(refused) >= refusal.FEWEST) is repeats


@pytest.mark.parametrize(
    ("each_s", "leaves", "stands"),
    [
        (2 * refusal.SLOW_S, False, True),
        (refusal.SLOW_S / 2, False, None),
        (2 * refusal.SLOW_S, True, None),
    ],
    ids=["slow", "fast", "a leak"],
)
def test_only_a_compilers_refusal_of_numpys_array_that_leaves_nothing_stands_for_other_exports(
    monkeypatch, each_s, leaves, stands
):
    refuse, _ = counting(monkeypatch, each_s)
    kept = []

    def take(array):
        kept.extend([object(), object()] * leaves)
        return refuse(array)

    subject = make_subject(import_=Import("take", (Protocol.DLPACK,), "take({x})"), take=take)
    evidence = refusal.measure(subject, TypeError("no"))["evidence"]
    assert evidence.get("of_numpy") is stands


def test_a_refusal_is_not_clean_if_no_framework_counts_the_devices_memory():
    def refuse(array):
        raise TypeError("no")

    subject = make_subject(import_=Import("take", (Protocol.DLPACK,), "take({x})"), take=refuse)
    found = refusal.measure(replace(subject, result_device="cuda"), TypeError("no"))
    assert (found["verdict"], found["evidence"]["reason"]) == (
        "unknown",
        refusal.lifetime.UNCOUNTED,
    )


def test_a_path_that_gives_an_earlier_result_again_after_a_refusal_is_broken():
    results, refused = [], []

    def take(array):
        if array.dtype.kind == "c":
            refused.append(None)
            raise TypeError("no complex numbers")
        results.append(results[-1] if refused else array.copy())
        return results[-1]

    import_ = Import("take", (Protocol.DLPACK,), "take({x})")
    plain, other = (
        make_subject(import_=import_, spec=ArraySpec((4, 8), dtype, corners=True), take=take)
        for dtype in ("float32", "complex64")
    )
    refusal.worked(plain)
    found = refusal.measure(other, TypeError("no complex numbers"))
    assert (found["verdict"], found["evidence"]["after"]) == ("broken", OTHER_VALUES)


class Guarded(NumPy):
    """NumPy, whose arrays are made only as long as ``guard`` lets them."""

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
    refusal.worked(plain)
    found = refusal.measure(other, TypeError("no complex numbers"))
    assert found["verdict"] == "broken"
    assert found["evidence"]["after"] == "RuntimeError: no arrays any more"
    assert found["evidence"]["plain_code"] == "take(x)"
