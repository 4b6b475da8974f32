"""A session says what was typed."""

from __future__ import annotations

import shlex

import pytest
from builders import make_header
from hypothesis import given
from hypothesis import strategies as st

from dlprof.cli.measure import typed
from dlprof.reports import command

pytestmark = pytest.mark.unit

SHORT = ("run", "torch", "jax")
CODE = "import torch; x = torch.rand(4)"


@pytest.mark.parametrize(
    ("words", "short", "kept"),
    [
        ((*SHORT, "--quick"), SHORT, (*SHORT, "--quick")),
        (("matrix", "-o", "s.json"), SHORT, SHORT),
        ((), SHORT, SHORT),
        (("run", "torch", "\udcff"), SHORT, ("run", "torch", "\\xff")),
        (("time", "f(x)", "-s", CODE), ("time", "f(x)"), ("time", "-s", CODE, "f(x)")),
    ],
    ids=["with options", "of another verb", "from Python", "no text", "a statement stands last"],
)
def test_what_was_typed_is_recorded(monkeypatch, words, short, kept):
    monkeypatch.setattr("sys.argv", ["dlprof", *words])
    assert typed(short) == kept


@given(st.lists(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=9)))
def test_the_whole_command_can_be_pasted_into_a_shell(words):
    header = make_header(command=["run", *words])
    assert shlex.split(command.whole(header)) == ["dlprof", "run", *words]


def test_titles_are_short():
    assert command.short(make_header(command=[*SHORT, "--quick"])) == "dlprof run torch jax"
    timed = make_header(command=["time", "-s", "import torch", "x.numpy()"])
    assert command.short(timed) == "dlprof time x.numpy()"
