"""Which case of a path is diagnosed: the answers know no shape."""

from __future__ import annotations

import pytest
from builders import make_case

from dlprof.plan.settings import Settings
from dlprof.runner.diagnoser import diagnosed_paths, standing_for

pytestmark = pytest.mark.unit


def paths(*cases):
    return diagnosed_paths(cases, Settings(diagnose=True))


def test_the_first_of_a_path_stands_for_it():
    found = paths(make_case(shape=(2,)), make_case(name="other"), make_case(shape=(3,)))
    assert found == [[0, 2], [1]]
    assert standing_for(found, lambda _: False) == {0, 1}


def test_an_array_without_elements_stands_for_none_that_has_some():
    assert paths(make_case(shape=(0,)), make_case(shape=(3,))) == [[1, 0]]
    assert standing_for(paths(make_case(shape=(0,))), lambda _: False) == {0}


def test_the_next_stands_for_a_path_whose_first_was_refused():
    found = paths(make_case(shape=(2,)), make_case(shape=(3,)), make_case(shape=(4,)))
    assert standing_for(found, {0}.__contains__) == {1}
    assert standing_for(found, {0, 1, 2}.__contains__) == set()
