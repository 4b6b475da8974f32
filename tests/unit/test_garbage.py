"""The garbage collector is kept away, and is afterwards as it was."""

from __future__ import annotations

import gc

import pytest

from dlprof.worker import subject

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def as_it_was():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_collections_are_rare_inside_and_as_before_outside():
    before = gc.get_threshold()
    with subject.rarely_collected():
        assert gc.get_threshold()[0] == subject.RARELY
    assert gc.get_threshold() == before


def test_what_an_import_sets_itself_stays():
    with subject.rarely_collected():
        gc.set_threshold(5000, 20, 20)
    assert gc.get_threshold() == (5000, 20, 20)


def test_collections_are_as_before_where_an_import_fails():
    before = gc.get_threshold()
    with pytest.raises(ImportError), subject.rarely_collected():
        raise ImportError
    assert gc.get_threshold() == before
