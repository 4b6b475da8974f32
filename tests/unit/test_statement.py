"""A user's own conversion as text: what can be measured, and how it is cut."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlprof.errors import UsageError
from dlprof.protocol import statement
from dlprof.protocol.statement import Cut, FaultyStatement
from dlprof.runner.own_code import Asked

pytestmark = pytest.mark.unit


def template(text, source="x"):
    return statement.whole(text, source).import_


def cuts(text, source="x"):
    return [(cut.export, cut.import_) for cut in statement.cuts(text, source)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f(x)", "f({x})"),
        ("  f( x )  ", "f( {x} )"),
        ('f(x, device="cuda")', 'f({x}, device="cuda")'),
        ("f({'a': x}, {1})", "f({{'a': {x}}}, {{1}})"),
        ("x.x(x=x)", "{x}.x(x={x})"),
        ("f('x', x)", "f('x', {x})"),
        ("f('ü→', x)", "f('ü→', {x})"),
    ],
)
def test_the_text_stays_as_it_was_typed(text, expected):
    assert template(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f(\n  x,\n  'a\\nb')", "f({x}, 'a\\nb')"),
        ("f([x for x in y], x)", "f([{x} for {x} in y], {x})"),
    ],
)
def test_a_text_of_another_form_means_the_same(text, expected):
    assert template(text) == expected


def test_the_source_may_have_any_name():
    cut = statement.whole("f(tensor, 'tensor')", "tensor")
    assert cut.import_ == "f({x}, 'tensor')"
    assert cut.code == "f(x, 'tensor')"


def test_a_source_is_compared_as_python_reads_it():
    Asked("f(ﬁle)", source="ﬁle").check()
    Asked("f(file)", source="ﬁle").check()
    Asked("f(ﬁle)", source="file").check()
    assert Asked("f(ﬁle)", source="ﬁle").name == "file"


def test_a_name_in_an_f_string_is_the_source():
    code = statement.whole("f(f'{t}{{}}', t)", "t").code
    assert ast.dump(ast.parse(code)) == ast.dump(ast.parse("f(f'{x}{{}}', x)"))


def test_the_ways_to_cut_go_from_the_inside_out():
    assert cuts("a(b(c(x), 1), k=2)") == [
        ("c({x})", "a(b({x}, 1), k=2)"),
        ("b(c({x}), 1)", "a({x}, k=2)"),
    ]


def test_a_method_of_the_source_is_a_cut():
    assert cuts("f(x.numpy(), [1])") == [
        ("{x}.numpy", "f({x}(), [1])"),
        ("{x}.numpy()", "f({x}, [1])"),
    ]


@pytest.mark.parametrize("text", ["f(x)", "f(g(x), x)", "f([g(x) for _ in y])", "f(*x)"])
def test_what_is_not_handed_over_once_is_not_cut(text):
    assert cuts(text) == []


@given(st.sampled_from(["f(g(x))", "f({1: g(x)}, '{')", "f(x.a[1:2], g(h))", "f(g('ü', x), 'x')"]))
def test_every_cut_is_the_whole_statement(text):
    for cut in statement.cuts(text, "x"):
        assert ast.dump(ast.parse(cut.code)) == ast.dump(ast.parse(text))


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (Asked(""), "the statement is empty"),
        (Asked("f("), "the statement is not Python: '(' was never closed"),
        (Asked("y = f(x)"), "the statement must be one expression"),
        (Asked("import a"), "the statement must be one expression"),
        (Asked("f(x); g(x)"), "the statement must be one expression"),
        (Asked("(yield x)"), "the statement is not Python: 'yield' outside function"),
        (Asked("f(x)", "x ="), "the setup is not Python: invalid syntax"),
        (Asked("f(x)", "a = 1\nx = ("), "the setup is not Python, line 2: "),
        (Asked("f(x)", "return 1"), "the setup is not Python: 'return' outside function"),
        (Asked("f(\0x)"), "the statement is not Python: "),
        (Asked("f('\ud800', x)"), "the statement is not Python: "),
        (Asked("(" * 500 + "x" + ")" * 500), "the statement is not Python: "),
        (Asked("f(x)", source="y"), "the statement does not use the source y"),
        (Asked("f(x)", source="x.y"), "the source must be a name, not 'x.y'"),
        (Asked("x", source="x"), "the statement is the source x itself"),
        (Asked("f(t := 1, t)", source="t"), "the statement uses the name t for something else"),
        (Asked("(lambda t: t)(t)", source="t"), "the statement uses the name t for something else"),
        (Asked("f(t, x)", source="t"), "the statement uses x besides the source t"),
    ],
)
def test_a_text_that_cannot_be_measured_is_refused_in_a_sentence(asked, sentence):
    with pytest.raises(UsageError) as caught:
        asked.check()
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=30))
def test_any_text_is_measured_or_refused(text):
    try:
        tree = statement.parse(text)
        statement.check_source(tree, "x")
        cut = statement.whole(text, "x")
    except FaultyStatement:
        return
    assert isinstance(cut, Cut)
    compile(cut.code, "<test>", "eval")
