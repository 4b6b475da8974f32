"""Small scenarios for tests that vary one thing at a time."""

from pathlib import Path

from dlprof.measuring.scenario import parse, sweep
from dlprof.runner.options import read

LEAST = 'title = "t"\nquestion = "q"\npairs = ["torch->numpy"]\n'


def make_scenario(more: str = "", least: str = LEAST):
    return parse(least + more, Path("s.toml"))


def make_sweep(catalog, more: str = "", least: str = LEAST, **given):
    """Resolve a scenario when a catalog is present; ``given`` is the command line."""
    return sweep(make_scenario(more, least), read(given, typed=True), lambda *_: catalog)
