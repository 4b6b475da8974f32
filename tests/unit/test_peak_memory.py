"""Peak memory: the number of arrays that a conversion of host memory needs."""

import pytest
from builders import make_subject

from dlprof.probes.base import ArraySpec, Import, Protocol
from dlprof.worker.instruments import peak_memory
from dlprof.worker.instruments.peak_memory import SIZE_BYTES


def subject(code="{x}[...]", **names):
    return make_subject(import_=Import("any", (Protocol.DLPACK,), code), **names)


class Kernel:
    """Fakes the kernel's numbers; a conversion declares its peak."""

    def __init__(self, monkeypatch):
        self.now, self.peak, self.resets = 100 << 20, 0, 0
        monkeypatch.setattr(peak_memory, "high_water_bytes", lambda: self.peak)
        monkeypatch.setattr(peak_memory, "reset_mark", self.reset)

    def reset(self):
        self.peak = self.now
        self.resets += 1
        return self.now

    def convert(self, source, arrays):
        self.peak = max(self.peak, self.now + round(arrays * SIZE_BYTES))
        return source


@pytest.mark.parametrize(("arrays", "looks"), [(0, 2), (1, 1), (1.04, 1), (1.2, 2), (2, 2)])
def test_the_peak_is_a_multiple_of_the_source_and_a_plain_copy_is_checked_once(
    monkeypatch, arrays, looks
):
    kernel = Kernel(monkeypatch)
    spec = ArraySpec((4, 8), "float32", "aligned")
    found = peak_memory.measure(
        subject(f"kernel.convert({{x}}, {arrays})", kernel=kernel, spec=spec)
    )
    assert (found["verdict"], kernel.resets) == ("ok", looks)
    assert found["evidence"]["arrays"] == pytest.approx(arrays)
    assert found["evidence"]["size_bytes"] == SIZE_BYTES
    assert ("create" in found["evidence"]) is (arrays >= peak_memory.NOTABLE_ARRAYS)


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
