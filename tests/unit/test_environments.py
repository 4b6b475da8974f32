"""Sessions of several environments: what is said of a result is said of where it was measured."""

from __future__ import annotations

import pytest
from builders import make_header, make_result, make_session

from dlprof.session.environments import environment_of, environments_of, seen_from

pytestmark = pytest.mark.unit

OLD = {"name": "old", "python": "3.10.1", "executable": "old/python", "packages": {"numpy": "1.26"}}
NEW = {"name": "new", "python": "3.12.2", "executable": "new/python", "packages": {"numpy": "2.3"}}
SEVERAL = {"environment": OLD, "environments": [OLD, NEW]}


def session():
    results = [make_result(environment=name) for name in ("old", "new")]
    return make_session(*results, request={"python": "old/python"}, **SEVERAL)


def test_a_result_has_the_environment_of_its_name():
    old, new = session().results
    assert environment_of(session(), old) == OLD
    assert environment_of(session(), new) == NEW


@pytest.mark.parametrize("name", [None, "gone"])
def test_a_result_of_no_known_environment_has_the_first(name):
    assert environment_of(session(), make_result(environment=name)) == OLD


def test_the_only_environment_has_no_name():
    header = make_header()
    assert list(environments_of(header)) == [("", header.environment)]
    assert list(environments_of(session())) == [("old", OLD), ("new", NEW)]


def test_a_session_seen_from_a_result_has_its_environment_and_interpreter():
    seen = seen_from(session(), [1, 0])
    assert seen.environment == NEW
    assert seen.request["python"] == "new/python"


@pytest.mark.parametrize("results", [[], [2], [-1]])
def test_a_session_seen_from_no_result_is_as_it_was(results):
    assert seen_from(session(), results) == session()
