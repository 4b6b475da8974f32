"""A session says what was typed."""

import pytest

from dlprof.cli.measure import typed

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
