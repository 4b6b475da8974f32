"""A conversion that takes seconds is made as seldom as can be."""

from __future__ import annotations

import pytest
from builders import make_subject

from dlprof.probes.base import Import, Protocol
from dlprof.worker import timer
from dlprof.worker.instruments import first_call

pytestmark = pytest.mark.unit


@pytest.fixture
def counted():
    calls = []
    import_ = Import("any", (Protocol.DLPACK,), "calls.append(1) or {x}.copy()")
    return make_subject(import_=import_, calls=calls), calls


def test_a_short_conversion_is_not_timed_once(counted):
    subject, _ = counted
    assert first_call.serves(first_call.make_call(subject)) is None


def test_a_long_one_is_called_a_second_time_and_the_first_result_is_gone(counted, monkeypatch):
    subject, calls = counted
    monkeypatch.setattr(timer, "LONG_NS", 0)
    first = first_call.make_call(subject)
    second = first_call.serves(first)
    assert len(calls) == 2
    assert first.result is None
    assert second is not None
    assert second.result is not None


def test_a_very_long_one_is_never_called_again(counted, monkeypatch):
    subject, calls = counted
    monkeypatch.setattr(first_call, "VERY_LONG_NS", 0)
    first = first_call.make_call(subject)
    assert first_call.serves(first) is first
    assert len(calls) == 1


def test_its_result_is_looked_at_without_another_conversion(counted):
    subject, calls = counted
    call = first_call.make_call(subject)
    assert call.converted().convert() is call.result
    assert len(calls) == 1
