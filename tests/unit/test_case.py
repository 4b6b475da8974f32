"""One case: its outcome whatever is raised, and what its process is left with."""

from __future__ import annotations

import errno
import os
from types import SimpleNamespace

import pytest
from builders import make_subject

from dlprof.probes.base import ArraySpec, Import, Protocol, Unsupported
from dlprof.worker import case, memory
from dlprof.worker.channel import Answer
from dlprof.worker.contract import FaultyProbe
from dlprof.worker.subject import SetupFailed

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

    return case.Instruments(subject(spec), REQUEST, None, SimpleNamespace(subject=subject))


def refused_but_aligned(subject):
    if subject.spec.layout != "aligned":
        raise ValueError("not aligned to 64 bytes")
    return {"verdict": "safe", "evidence": {}}


def test_an_instrument_whose_arrays_are_refused_looks_at_aligned_ones_and_says_so():
    found = bench(refuse_unaligned).where_it_works(refused_but_aligned)
    assert found == {"verdict": "safe", "evidence": {"layout": "aligned"}}


@pytest.mark.parametrize(
    ("convert", "spec"),
    [(lambda array: array, SPEC), (refuse_unaligned, ArraySpec((4, 8), "float32", "strided"))],
    ids=["other memory is taken", "another layout"],
)
def test_what_fails_for_another_reason_fails(convert, spec):
    with pytest.raises(ValueError, match="not aligned"):
        bench(convert, spec).where_it_works(refused_but_aligned)


def served(measure):
    """The answer to a request that ``measure`` serves, and the messages that were sent."""
    sent = []
    channel = SimpleNamespace(send=sent.append, measuring=True)
    answer = Answer(channel, 1)
    case.serve(SimpleNamespace(channel=channel), {}, answer, measure)
    assert not channel.measuring
    return answer, sent


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (memory.TooLarge("too large"), ("skipped", "too large")),
        (SetupFailed("the setup fails"), ("skipped", "the setup fails")),
        (FaultyProbe("no name"), ("crashed", "the probe is faulty: no name")),
        (SyntaxError("bad"), ("crashed", "the probe is faulty: SyntaxError: bad")),
        (Unsupported("no such dtype"), ("unsupported", "no such dtype")),
        (BufferError("not contiguous"), ("unsupported", "BufferError: not contiguous")),
        (SystemExit(3), ("crashed", "raised SystemExit: 3")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_is_raised_is_the_outcome_of_the_case(fault, outcome):
    def measure(*_):
        raise fault

    assert served(measure)[0].outcome == outcome


@pytest.mark.parametrize("count", [case.MANY_FILES + 3, case.MANY_FILES // 2])
def test_files_that_a_case_leaves_open_are_told_where_they_are_many(count):
    files = []

    def measure(*_):
        files.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(count))
        return "ok", None

    try:
        answer, sent = served(measure)
    finally:
        for file in files:
            os.close(file)
    left = [message["value"] for message in sent if message.get("part") == "left_open"]
    assert left == ([count] if count > case.MANY_FILES else [])
    assert ("conversion" in answer.failures) == bool(left)


@pytest.mark.parametrize(
    ("refusal", "count"),
    [(OSError(errno.EMFILE, "Too many open files"), 1024), (FileNotFoundError(), 0)],
    ids=["all are taken", "the system does not tell"],
)
def test_open_files_are_counted_where_they_cannot_be_listed(refusal, count, monkeypatch):
    def refuse(_):
        raise refusal

    monkeypatch.setattr(os, "listdir", refuse)
    monkeypatch.setattr(case.resource, "getrlimit", lambda _: (1024, 4096))
    assert case.open_files() == count
