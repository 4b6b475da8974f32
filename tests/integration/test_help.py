"""The help of every verb can be read on a terminal of 80 columns."""

from __future__ import annotations

import re
from functools import cache

import pytest
from command_line import dlprof

pytestmark = pytest.mark.integration

VERBS = [
    "run",
    "time",
    "sweep",
    "steps",
    "matrix",
    "paths",
    "probes",
    "report",
    "ticket",
    "repro",
    "compare",
    "gate",
    "calibrate",
    "history add",
    "history show",
    "explain",
    "selftest",
    "list",
]
MEASURES = ("run", "matrix", "sweep", "gate", "calibrate")
ROOM = 36
"""Columns that are left for words at least."""


@pytest.fixture(scope="module")
def help_of(tmp_path_factory):
    """The help of a verb, asked for once."""
    state = tmp_path_factory.mktemp("state")
    return cache(lambda verb: dlprof(*verb.split(), "--help", state=state, COLUMNS="80"))


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_words_have_room_beside_the_names_of_options(help_of, verb):
    run = help_of(verb)
    assert run.code == 0
    lines = run.out.splitlines()
    assert max(map(len, lines)) <= 80
    for line in lines:
        if line.startswith("│ -"):
            words = line.rstrip("│ ").split("  ")[-1]
            assert 79 - line.rindex(words) >= ROOM, line


@pytest.mark.parametrize(
    ("verb", "panels"),
    [
        *((verb, ["Arrays and paths", "Measuring", "Findings", "Output"]) for verb in MEASURES),
        ("steps", ["Arrays and paths", "Measuring", "Output"]),
        ("time", ["Measuring", "Findings", "Output"]),
        ("history show", ["Output"]),
    ],
)
def test_options_stand_in_panels(help_of, verb, panels):
    out = help_of(verb).out
    found = re.findall(r"╭─ (.*?) ─", out)
    assert [name for name in found if name not in ("Arguments", "Options")] == panels


@pytest.mark.parametrize("verb", ["run", "gate", "calibrate", "steps"])
def test_of_a_verb_that_measures_only_the_help_stands_outside_panels(help_of, verb):
    out = help_of(verb).out
    panel = re.search(r"╭─ Options ─.*?╰─", out, re.DOTALL)
    assert panel
    assert re.findall(r"^│ (-\S+)", panel[0], re.MULTILINE) == ["--help"]


@pytest.mark.parametrize("verb", VERBS)
def test_what_may_be_left_out_stands_in_one_pair_of_brackets(help_of, verb):
    out = help_of(verb).out
    assert "[[" not in out
    assert "]]" not in out
