"""Which case of BASE is which of HEAD, and what a session was asked for."""

import pytest
from builders import make_header, make_result

from dlprof.compare.matching import asked_for, match

AXES = {"shapes": [[4, 4]], "dtypes": ["float32"], "layouts": ["C"], "device": "auto"}
REQUEST = {"pairs": [["torch", "numpy"]], "axes": AXES}


def result(name="a", code=None, **case):
    return make_result(code or f"numpy.{name}(x)", case={"import": name, **case})


def sides(matched):
    return [
        (pair.base and pair.base.case.import_, pair.head and pair.head.case.import_)
        for pair in matched
    ]


def test_cases_are_matched_whatever_their_order():
    found = match([result("a"), result("b")], [result("b"), result("a")])
    assert sides(found) == [("a", "a"), ("b", "b")]


@pytest.mark.parametrize(
    "change",
    [{"import": "b"}, {"shape": (8,)}, {"dtype": "int8"}, {"layout": "F"}, {"device": "cuda"}],
)
def test_another_path_or_array_is_another_case(change):
    found = match([result("a", "f(x)")], [result(**{"name": "a", "code": "g(x)", **change})])
    assert [pair.base is None for pair in found] == [False, True]


def test_a_path_with_a_new_name_is_found_by_its_code():
    assert sides(match([result("old", "f(x)")], [result("new", "f(x)")])) == [("old", "new")]


def test_a_code_that_two_new_paths_have_is_not_guessed_at():
    found = match([result("old", "f(x)")], [result("new", "f(x)"), result("newer", "f(x)")])
    assert sides(found) == [("old", None), (None, "new"), (None, "newer")]


@pytest.mark.parametrize(
    ("request_", "asked"),
    [
        ({}, True),
        (REQUEST, True),
        ({**REQUEST, "pairs": [["torch", "jax"]]}, False),
        *(
            ({**REQUEST, "axes": {**AXES, name: value}}, False)
            for name, value in (
                ("shapes", [[8, 8]]),
                ("dtypes", ["int8"]),
                ("layouts", ["F"]),
                ("device", "cuda"),
            )
        ),
        ({**REQUEST, "globs": ["numpy.a(x)"]}, True),
        ({**REQUEST, "globs": ["*->a"]}, True),
        ({**REQUEST, "globs": ["numpy.b(x)", "tensor->b"]}, False),
        ({**REQUEST, "globs": ["jnp.array(x, dtype={dtype})"]}, True),
        ({"pairs": [5], "axes": {"shapes": [None], "dtypes": [[1]]}, "globs": [7]}, True),
    ],
)
def test_a_session_was_asked_for_what_its_request_covers(request_, asked):
    assert asked_for(make_header(request=request_), result("a").case) is asked


@pytest.mark.parametrize(
    ("pairs", "asked"),
    [(["torch->*"], True), (["*<->torch"], True), (["jax->*"], False), (["?!"], True)],
)
def test_a_glob_of_the_scenario_asks_for_frameworks_that_were_not_there(pairs, asked):
    request = {**REQUEST, "pairs": [["torch", "jax"]], "scenario": {"pairs": pairs}}
    assert asked_for(make_header(request=request), result("a").case) is asked
