"""Whether a large case fits is known from a small one, before the large one is made."""

from __future__ import annotations

import pytest
from builders import make_subject

from dlprof.probes.base import ArraySpec, Import, Protocol
from dlprof.worker import memory
from dlprof.worker.instruments import peak_memory

pytestmark = pytest.mark.unit

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
