"""A case made real: its source is there before anything is measured."""

from __future__ import annotations

import pytest
from builders import make_subject

from dlprof.probes.numpy import NumPy

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
