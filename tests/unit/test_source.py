"""Source text is laid out without a change of its meaning."""

from __future__ import annotations

import ast
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlprof.errors import NoReproducer
from dlprof.text.source import WIDTH, block, folded, made, needed, plain

pytestmark = pytest.mark.unit

NAMES = st.sampled_from(["alpha", "beta", "numpy.arange", "'a, (b'", "1048576"])
EXPRESSIONS = st.recursive(
    NAMES,
    lambda inner: st.builds(
        lambda name, arguments, end: f"{name}({', '.join(arguments)}){end}",
        st.sampled_from(["f", "module.function", "f(x).g", "h(1)[2:].reshape"]),
        st.lists(inner, min_size=1, max_size=4),
        st.sampled_from(["", "[1:]", ".shape", ".g(long_argument=2)", "+ 1"]),
    ),
    max_leaves=20,
)


@given(EXPRESSIONS, st.sampled_from(["x = ", "x[...] = ", "x.copy_(y), ", ""]))
def test_folding_changes_no_meaning(expression, before):
    text = f"    {before}{expression}"
    both = (ast.dump(ast.parse(textwrap.dedent(one))) for one in (text, folded(text)))
    assert next(both) == next(both)


@pytest.mark.parametrize(
    "text",
    [f"x = f({', '.join(['argument'] * 20)})", f"x = f({'a' * 60}).g({'b' * 30}).h(c)"],
)
def test_a_long_line_is_broken_at_its_brackets_and_dots(text):
    assert max(map(len, folded(text).splitlines())) <= WIDTH


def test_what_is_not_python_is_refused_in_words():
    with pytest.raises(NoReproducer, match="not Python"):
        plain("x = (")


def test_empty_parts_leave_no_empty_lines():
    assert block("a", "", "b") == "a\nb"


def test_only_what_is_needed_is_imported():
    setup = "import a\nimport b.c as c\ndef d():\n    return a.x\ndef e():\n    pass"
    assert needed(setup, {"d"}) == "import a\ndef d():\n    return a.x"


def test_functions_imports_and_arguments_make_names():
    text = "import a.b, c as d\ndef e(f):\n    g = 1\nfor h in e(2):\n    pass"
    assert made(text) == {"a", "d", "e", "f", "g", "h"}
