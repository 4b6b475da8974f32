"""A case made real: its source is there before anything is measured."""

from __future__ import annotations

import gc

import pytest
from builders import make_subject

from dlprof.probes.numpy import NumPy
from dlprof.worker import subject

pytestmark = pytest.mark.unit


class Slow(NumPy):
    """NumPy with arrays that have to be waited for."""

    def wait(self, device):
        return "waited.append({x})"


def test_the_source_is_waited_for_before_it_is_converted():
    waited = []
    subject = make_subject(producer=Slow(), waited=waited)
    assert waited[0] is subject.source


def test_another_source_is_waited_for_as_well():
    waited = []
    made = make_subject(producer=Slow(), waited=waited).make_another()
    assert waited[-1] is made


def test_a_result_is_where_it_was_seen_to_be():
    class Elsewhere(NumPy):
        devices = ("cpu", "cuda")

        def device(self, array):
            return "cuda"

        def wait(self, device):
            return f"wait_on_{device}({{x}})"

    subject = make_subject(consumer=Elsewhere())
    assert subject.result_device == "cpu"
    placed = subject.placed(subject.convert())
    assert (placed.result_device, placed.wait) == ("cuda", "wait_on_cuda({x})")


@pytest.mark.parametrize("where", ["quantum", None])
def test_a_result_of_which_nobody_knows_where_it_is_is_where_it_was_declared(where):
    class Odd(NumPy):
        def device(self, array):
            return where

    subject = make_subject(consumer=Odd())
    assert subject.placed(subject.convert()) is subject


@pytest.fixture(autouse=True)
def as_it_was():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_collections_are_rare_inside_and_as_before_outside():
    before = gc.get_threshold()
    with subject.rarely_collected():
        assert gc.get_threshold()[0] == 1_000_003
    assert gc.get_threshold() == before


def test_what_an_import_sets_itself_stays():
    with subject.rarely_collected():
        gc.set_threshold(5000, 20, 20)
    assert gc.get_threshold() == (5000, 20, 20)
