"""The help of every verb can be read on a terminal of 80 columns."""

from __future__ import annotations

import re

import pytest
from command_line import dlprof

pytestmark = pytest.mark.integration

VERBS = [
    "run",
    "time",
    "sweep",
    "matrix",
    "paths",
    "probes",
    "report",
    "ticket",
    "repro",
    "compare",
    "gate",
    "explain",
    "selftest",
]
ROOM = 36
"""Columns that are left for words at least."""


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_words_have_room_beside_the_names_of_options(tmp_path, verb):
    run = dlprof(*filter(None, [verb]), "--help", state=tmp_path, COLUMNS="80")
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
        ("run", ["Arrays and paths", "Measuring", "Findings", "Output"]),
        ("matrix", ["Arrays and paths", "Measuring", "Findings", "Output"]),
        ("sweep", ["Arrays and paths", "Measuring", "Findings", "Output"]),
        ("time", ["Measuring", "Findings", "Output"]),
        ("gate", ["Findings", "Output"]),
    ],
)
def test_options_stand_in_panels(tmp_path, verb, panels):
    out = dlprof(verb, "--help", state=tmp_path, COLUMNS="80").out
    found = re.findall(r"╭─ (.*?) ─", out)
    assert [name for name in found if name not in ("Arguments", "Options")] == panels
