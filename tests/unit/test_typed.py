"""A session says what was typed."""

from __future__ import annotations

import shlex

import pytest
from builders import make_header
from hypothesis import given
from hypothesis import strategies as st

from dlprof.cli.typed import typed
from dlprof.evidence.redaction import Redactor, Surroundings
from dlprof.reports import command

pytestmark = pytest.mark.unit

SHORT = ("run", "torch", "jax")


def typing(monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["dlprof", *words])


def test_what_was_typed_is_recorded_with_its_options(monkeypatch):
    typing(monkeypatch, *SHORT, "--quick", "--shape", "64x64")
    assert typed(SHORT) == (*SHORT, "--quick", "--shape", "64x64")


@pytest.mark.parametrize("words", [(), ("-q", "tests"), ("matrix",)])
def test_where_another_thing_runs_the_verb_the_short_form_is_recorded(monkeypatch, words):
    typing(monkeypatch, *words)
    assert typed(SHORT) == SHORT


def test_the_verb_stays_first_so_that_files_are_named_after_it(monkeypatch):
    typing(monkeypatch, "matrix", "-o", "s.json")
    assert typed(("matrix",))[0] == "matrix"


def test_a_statement_of_ones_own_stands_last(monkeypatch):
    typing(monkeypatch, "time", "x.numpy()", "-s", "import torch; x = torch.rand(4)", "--quick")
    assert typed(("time", "x.numpy()")) == (
        *("time", "-s", "import torch; x = torch.rand(4)", "--quick", "x.numpy()"),
    )


def test_words_that_are_no_text_are_recorded_as_text(monkeypatch):
    typing(monkeypatch, "run", "torch", "\udcff")
    assert typed(SHORT) == ("run", "torch", "\\xff")


@given(st.lists(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=9)))
def test_the_whole_command_can_be_pasted_into_a_shell(words):
    header = make_header(command=["run", *words])
    assert shlex.split(command.whole(header)) == ["dlprof", "run", *words]


def test_titles_are_short():
    assert command.short(make_header(command=[*SHORT, "--quick"])) == "dlprof run torch jax"
    timed = make_header(command=["time", "-s", "import torch", "x.numpy()"])
    assert command.short(timed) == "dlprof time x.numpy()"


def test_what_is_made_public_of_a_command_is_without_home_folders():
    header = make_header(command=[*SHORT, "--probe", "/home/someone/secret/probe.py"])
    redactor = Redactor(Surroundings())
    assert redactor(command.whole(header)) == "dlprof run torch jax --probe <path>/probe.py"
