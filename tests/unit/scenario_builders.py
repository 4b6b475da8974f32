"""Small scenarios for tests that vary one thing at a time."""

from __future__ import annotations

from dlprof.scenario.read import parse

LEAST = 'title = "t"\nquestion = "q"\npairs = ["torch->numpy"]\n'


def make_scenario(more: str = ""):
    return parse(LEAST + more, "s.toml")
