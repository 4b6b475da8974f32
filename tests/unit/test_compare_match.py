"""Which case of BASE is which of HEAD."""

from __future__ import annotations

import pytest
from builders import make_header, make_result

from dlprof.compare.match import asked_for, match

pytestmark = pytest.mark.unit

REQUEST = {
    "pairs": [["torch", "numpy"]],
    "axes": {"shapes": [[4, 4]], "dtypes": ["float32"], "layouts": ["C"], "device": "auto"},
}


def result(name="a", code=None, **case):
    return make_result(code or f"numpy.{name}(x)", case={"import": name, **case})


def sides(matched):
    return [
        (pair.base and pair.base.case.import_, pair.head and pair.head.case.import_)
        for pair in matched.pairs
    ]


def test_cases_are_matched_whatever_their_order():
    assert sides(match([result("a"), result("b")], [result("b"), result("a")])) == [
        ("a", "a"),
        ("b", "b"),
    ]


def test_a_case_of_one_side_stands_alone():
    found = match([result("a")], [result("b")])
    assert sides(found) == [("a", None), (None, "b")]
    assert [pair.case.import_ for pair in found.pairs] == ["a", "b"]


@pytest.mark.parametrize(
    "change", [{"shape": (8,)}, {"dtype": "int8"}, {"layout": "F"}, {"device": "cuda"}]
)
def test_another_array_is_another_case(change):
    assert sides(match([result("a")], [result("a", **change)])) == [("a", None), (None, "a")]


def test_the_same_case_of_two_environments_is_two_cases():
    both = [result("a").model_copy(update={"environment": name}) for name in ("old", "new")]
    found = match(both, both[::-1])
    assert [(pair.base.environment, pair.head.environment) for pair in found.pairs] == [
        ("old", "old"),
        ("new", "new"),
    ]


def test_a_way_with_a_new_name_is_found_by_its_code():
    found = match([result("old", "f(x)")], [result("new", "f(x)")])
    assert sides(found) == [("old", "new")]


def test_a_code_that_two_new_ways_have_is_not_guessed_at():
    found = match([result("old", "f(x)")], [result("new", "f(x)"), result("newer", "f(x)")])
    assert sides(found) == [("old", None), (None, "new"), (None, "newer")]


def test_a_case_that_a_session_has_twice_is_matched_with_nothing():
    found = match([result("a"), result("b")], [result("a"), result("a"), result("b")])
    assert sides(found) == [("b", "b")]
    assert [name[3] for name in found.ambiguous] == ["a"]


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        ({}, True),
        ({"consumer": "jax"}, False),
        ({"shape": (8, 8)}, False),
        ({"dtype": "int8"}, False),
        ({"layout": "F"}, False),
    ],
)
def test_a_session_was_asked_for_what_its_request_covers(change, asked):
    assert asked_for(make_header(request=REQUEST), result("a", **change).case) is asked


def test_a_session_on_another_device_was_not_asked():
    request = {**REQUEST, "axes": {**REQUEST["axes"], "device": "cuda"}}
    assert not asked_for(make_header(request=request), result("a").case)


@pytest.mark.parametrize(
    "changes",
    [
        {"pairs": [5]},
        {"pairs": ["x"]},
        {"pairs": [["a"]]},
        {"axes": {"shapes": [None]}},
        {"axes": {"dtypes": [[1]]}},
        {"axes": {"device": [1]}},
        {"scenario": {"pairs": [None]}},
    ],
)
def test_a_session_that_says_what_makes_no_sense_was_asked(changes):
    assert asked_for(make_header(request={**REQUEST, **changes}), result("a").case)


def test_a_session_that_does_not_say_was_asked():
    assert asked_for(make_header(request={}), result("a").case)


@pytest.mark.parametrize(
    ("globs", "asked"),
    [
        ((), True),
        (("numpy.a(x)",), True),
        (("*->a",), True),
        (("numpy.b(x)", "tensor->b"), False),
        (("jnp.array(x, dtype={dtype})",), True),
        ((5,), True),
        (([],), True),
    ],
)
def test_a_session_of_other_ways_was_not_asked(globs, asked):
    request = {**REQUEST, "globs": list(globs)}
    assert asked_for(make_header(request=request), result("a").case) is asked


@pytest.mark.parametrize(
    ("pairs", "asked"),
    [(["torch->*"], True), (["*<->torch"], True), (["jax->*"], False), (["?!"], True)],
)
def test_what_a_glob_of_the_scenario_means_was_asked_for_also_where_it_was_not_there(pairs, asked):
    request = {**REQUEST, "pairs": [["torch", "jax"]], "scenario": {"pairs": pairs}}
    assert asked_for(make_header(request=request), result("a").case) is asked


def placed(*names):
    return [result(name).model_copy(update={"environment": "ours"}) for name in names]


def test_the_only_environment_of_one_side_is_that_of_a_side_without_names():
    assert sides(match(placed("a"), [result("a")])) == [("a", "a")]
    assert sides(match([result("a")], placed("a"))) == [("a", "a")]


def test_what_was_measured_in_an_environment_that_is_not_asked_for_is_not_gone():
    header = make_header(environments=[{"name": "new"}])
    assert asked_for(header, result("a").case, "new")
    assert not asked_for(header, result("a").case, "old")
    assert not asked_for(make_header(), result("a").case, "old")
