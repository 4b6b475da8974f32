"""Peak memory: how many arrays a conversion of host memory needs."""

from __future__ import annotations

import dataclasses

import pytest
from builders import make_subject

from dlprof.probes.base import ArraySpec, Import, Protocol
from dlprof.worker import memory
from dlprof.worker.instruments import peak_memory
from dlprof.worker.instruments.peak_memory import SIZE_BYTES

pytestmark = pytest.mark.unit


def subject(code="{x}[...]", **names):
    return make_subject(import_=Import("any", (Protocol.DLPACK,), code), **names)


class Kernel:
    """Stands for the kernel's numbers; a conversion says what it needs at its peak."""

    def __init__(self, monkeypatch):
        self.now, self.peak = 100 << 20, 0
        monkeypatch.setattr(peak_memory, "resident_bytes", lambda: self.now)
        monkeypatch.setattr(peak_memory, "high_water_bytes", lambda: self.peak)
        monkeypatch.setattr(peak_memory, "reset_mark", self.reset)

    def reset(self):
        self.peak = self.now

    def convert(self, source, arrays):
        self.peak = max(self.peak, self.now + round(arrays * SIZE_BYTES))
        return source


@pytest.mark.parametrize("arrays", [0, 0.5, 1, 2, 3])
def test_the_peak_is_a_multiple_of_the_source(monkeypatch, arrays):
    case = subject(f"kernel.convert({{x}}, {arrays})", kernel=Kernel(monkeypatch))
    found = peak_memory.measure(case)
    assert found["verdict"] == "ok"
    assert found["evidence"]["arrays"] == arrays
    assert found["evidence"]["size_bytes"] == SIZE_BYTES
    assert ("create" in found["evidence"]) is (arrays > 1)


@pytest.mark.parametrize(
    ("arrays", "looks"), [(0, 2), (1, 1), (1.04, 1), (1.2, 2), (0.9, 2), (2, 2)]
)
def test_what_is_plainly_a_copy_is_looked_at_once(monkeypatch, arrays, looks):
    kernel, resets = Kernel(monkeypatch), []
    monkeypatch.setattr(peak_memory, "reset_mark", lambda: (resets.append(1), kernel.reset()))
    code = f"kernel.convert({{x}}, {arrays})"
    spec = ArraySpec((4, 8), "float32", "aligned")
    peak_memory.measure(subject(code, kernel=kernel, spec=spec))
    assert len(resets) == looks


@pytest.mark.parametrize(
    ("code", "arrays"), [("{x}[...]", 0), ("{x}.copy()", 1), ("{x}.copy().copy()", 2)]
)
def test_numpy_needs_what_its_copies_need(code, arrays):
    found = peak_memory.measure(subject(code))
    if found["verdict"] == "unknown":
        pytest.skip(found["evidence"]["reason"])
    assert found["evidence"]["arrays"] == pytest.approx(arrays, abs=0.25)


def test_what_a_conversion_keeps_from_the_first_time_is_not_counted():
    kept = {}
    case = subject("keep.setdefault('once', {x}.copy())[:0]", keep=kept)
    found = peak_memory.measure(case)
    if found["verdict"] == "unknown":
        pytest.skip(found["evidence"]["reason"])
    assert found["evidence"]["arrays"] == pytest.approx(1, abs=0.25)


@pytest.mark.parametrize("where", ["source", "result"])
def test_device_memory_is_unknown(where):
    case = subject()
    if where == "source":
        case = dataclasses.replace(case, spec=dataclasses.replace(case.spec, device="cuda"))
    else:
        case = dataclasses.replace(case, result_device="cuda")
    found = peak_memory.measure(case)
    assert found["verdict"] == "unknown"
    assert "host memory" in found["evidence"]["reason"]


def test_a_kernel_that_does_not_let_the_mark_be_reset_is_unknown(monkeypatch):
    def refuse():
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(peak_memory, "reset_mark", refuse)
    found = peak_memory.measure(subject())
    assert found["verdict"] == "unknown"
    assert found["evidence"]["reason"].endswith("Permission denied")


@pytest.mark.parametrize(("layout", "expected"), [("C", 1.0), ("F", None)])
def test_what_takes_more_than_a_copy_is_tried_again_of_aligned_memory(
    monkeypatch, layout, expected
):
    Kernel(monkeypatch)
    spec = ArraySpec((4, 8), "float32", layout)
    case = subject(spec=spec)
    monkeypatch.setattr(peak_memory, "converting_arrays", of_layout({layout: 2.0, "aligned": 1.0}))
    found = peak_memory.measure(case)["evidence"]
    assert found.get("aligned_arrays") == expected


def of_layout(arrays):
    return lambda one: arrays[one.spec.layout]


def test_it_waits_until_the_resident_set_falls_no_more(monkeypatch):
    seen = iter([9, 9, 8, 8, 7, 7, 7, 7, 1])
    monkeypatch.setattr(peak_memory, "LOOK_S", 0)
    monkeypatch.setattr(peak_memory, "resident_bytes", lambda: next(seen))
    assert peak_memory.settled_bytes() == 7


def test_it_does_not_wait_for_ever(monkeypatch):
    falling = iter(range(1000, 0, -1))
    monkeypatch.setattr(peak_memory, "LOOK_S", 0)
    monkeypatch.setattr(peak_memory, "resident_bytes", lambda: next(falling))
    assert peak_memory.settled_bytes() == 1000 - peak_memory.MOST_LOOKS


GIB = 2**30
LARGE = ArraySpec((GIB,), "uint8")


@pytest.fixture
def small():
    return make_subject(import_=Import("any", (Protocol.DLPACK,), "{x}[...]"))


@pytest.mark.parametrize(
    ("made", "converted", "needed"),
    [(1.0, 0.0, 1), (1.0, 1.0, 2), (1.02, 2.07, 3), (4.0, 1.0, 4), (1.0, 0.5, 1.5)],
)
def test_a_case_needs_its_making_or_its_source_and_its_copies(
    monkeypatch, small, made, converted, needed
):
    monkeypatch.setattr(peak_memory, "making_arrays", lambda subject: made)
    monkeypatch.setattr(peak_memory, "whole_arrays", lambda subject: converted)
    available = int(needed * GIB) + memory.RESERVE_BYTES
    monkeypatch.setattr(memory, "available_bytes", lambda: available)
    peak_memory.check_forecast(small, LARGE)
    monkeypatch.setattr(memory, "available_bytes", lambda: available - 1)
    with pytest.raises(memory.TooLarge, match="as seen at 40 MiB"):
        peak_memory.check_forecast(small, LARGE)


def test_where_the_peak_cannot_be_seen_the_usual_guess_counts(monkeypatch, small):
    def unseen(subject):
        raise OSError(0, "no mark")

    monkeypatch.setattr(peak_memory, "making_arrays", unseen)
    monkeypatch.setattr(memory, "available_bytes", lambda: 3 * GIB)
    with pytest.raises(memory.TooLarge, match="4 arrays"):
        peak_memory.check_forecast(small, LARGE)
