"""Source text is laid out without a change of its meaning."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlprof.errors import NoReproducer
from dlprof.evidence.repro.lines import BODY_WIDTH, block, double_quoted, folded, plain
from dlprof.evidence.repro.setup import needed, needed_names

pytestmark = pytest.mark.unit

NAMES = st.sampled_from(["alpha", "beta", "numpy.arange", "'a, (b'", "1048576"])
CALLS = st.recursive(
    NAMES,
    lambda inner: st.builds(
        lambda name, arguments: f"{name}({', '.join(arguments)})",
        st.sampled_from(["f", "module.function", "x.reshape"]),
        st.lists(inner, min_size=1, max_size=4),
    ),
    max_leaves=20,
)


def same(one, other):
    return ast.dump(ast.parse(one)) == ast.dump(ast.parse(other))


@given(CALLS)
def test_folding_changes_no_meaning(expression):
    assert same(folded(f"x = {expression}"), f"x = {expression}")


def test_a_long_line_is_broken_at_its_brackets():
    text = f"x = f({', '.join(['argument'] * 20)})"
    assert max(map(len, folded(text).splitlines())) <= BODY_WIDTH


def test_a_long_chain_becomes_steps():
    text = f"x = f({'a' * 60}).g({'b' * 30}).h(c)"
    assert plain(text) == f"x = f({'a' * 60})\nx = x.g({'b' * 30})\nx = x.h(c)"


def test_one_kind_of_quotes():
    assert double_quoted("f('a', 'say \"b\"')") == 'f("a", \'say "b"\')'


def test_what_is_not_python_is_refused_in_words():
    with pytest.raises(NoReproducer, match="not Python"):
        plain("x = (")


def test_empty_parts_leave_no_empty_lines():
    assert block("a", "", "b") == "a\nb"


def test_only_what_is_needed_is_imported():
    setup = "import a\nimport b.c as c\ndef d():\n    return a.x\ndef e():\n    pass"
    assert needed(setup, {"d"}) == "import a\n\ndef d():\n    return a.x"


def test_a_result_that_nobody_looks_at_has_no_name():
    assert needed_names("y = f(x)\nwait()") == "f(x)\nwait()"
    assert needed_names("y = f(x)\ny.wait()") == "y = f(x)\ny.wait()"


def test_a_name_within_a_function_is_its_own():
    text = "def f():\n    y = 1\n    return y\ny = f()"
    assert needed_names(text) == "def f():\n    y = 1\n    return y\nf()"
