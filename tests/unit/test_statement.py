"""A user's own conversion as text: the measurable forms, and the way it is cut."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlprof.errors import UsageError
from dlprof.protocol import statement
from dlprof.protocol.statement import Cut, FaultyStatement
from dlprof.runner.user_code import check


@pytest.mark.parametrize(
    ("text", "promise"),
    [
        ("jnp.from_dlpack(x, copy=True)", "copy"),
        ("np.asarray(f(x), copy=False)", "view"),
        ("np.array(x, copy=False)", None),  # a copy where one is needed, in some frameworks
        ("x.to('cpu', copy=True)", "copy"),
        ("f(np.asarray(x, copy=False))", None),
        ("x", None),
    ],
)
def test_the_keywords_of_a_statement_are_its_promise(text, promise):
    assert statement.promise(text) == promise


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  f( x )  ", "f({x})"),
        ("f({'a': x}, {1})", "f({{'a': {x}}}, {{1}})"),
        ("x.x(x=x)", "{x}.x(x={x})"),
        ("f(\n  x,\n  'a\\nb')", "f({x}, 'a\\nb')"),
        ("f'{x.shape}'", "f'{{{x}.shape}}'"),
    ],
)
def test_a_statement_in_one_piece_means_the_same(text, expected):
    assert statement.whole(text, "x").import_ == expected


@pytest.mark.parametrize(
    ("text", "cuts"),
    [
        (
            "a(b(c(x), 1), k=2)",
            [("c({x})", "a(b({x}, 1), k=2)"), ("b(c({x}), 1)", "a({x}, k=2)")],
        ),
        ("f(x.numpy(), [1])", [("{x}.numpy", "f({x}(), [1])"), ("{x}.numpy()", "f({x}, [1])")]),
        ("f(x)", []),
        ("f(g(x), x)", []),
    ],
)
def test_a_statement_that_passes_the_source_once_is_cut_from_the_inside_out(text, cuts):
    found = list(statement.cuts(text, "x"))
    assert [(cut.export, cut.import_) for cut in found] == cuts
    assert all(ast.dump(ast.parse(cut.code)) == ast.dump(ast.parse(text)) for cut in found)


@pytest.mark.parametrize(
    ("asked", "fact"),
    [
        (("",), "empty"),
        (("f(",), "not Python: '('"),
        (("y = f(x)",), "one expression"),
        (("f(x)", "x ="), "the setup is not Python"),
        (("(" * 500 + "x" + ")" * 500,), "not Python"),
        (("f(x)", "", "y"), "the source y"),
        (("x", "", "x"), "the source x itself"),
        (("(lambda t: t)(t)", "", "t"), "the name t "),
        (("f(t, x)", "", "t"), "uses x besides"),
    ],
)
def test_an_unmeasurable_text_is_refused_in_a_sentence(asked, fact):
    with pytest.raises(UsageError) as caught:
        check(*asked)
    assert fact in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=30))
def test_any_text_is_measured_or_refused(text):
    try:
        statement.check_source(statement.parse(text), "x")
        cut = statement.whole(text, "x")
    except FaultyStatement:
        return
    assert isinstance(cut, Cut)
    compile(cut.code, "<test>", "eval")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("f(x)", "f(x, *more_7)"),
        ("f(1, x, y=2)", "f(1, x, *more_7, y=2)"),
        ("launch(k, inputs=[x])", "launch(k, inputs=[x, *more_7])"),
    ],
)
def test_further_arrays_stand_behind_the_first(text, found):
    assert statement.with_arrays(text, "x", 8) == found


@pytest.mark.parametrize("text", ["x.copy()", "f(x, x)", "f(a=x)", "f(*x)"])
def test_a_statement_that_has_no_place_for_further_arrays_is_refused(text):
    with pytest.raises(FaultyStatement, match="takes x once"):
        statement.with_arrays(text, "x", 8)
