"""Odd input gets one sentence, and steers nobody."""

import pytest

from dlprof.cli import _exit_code_of, _shown
from dlprof.cli.streams import complain
from dlprof.errors import UsageError
from dlprof.runner.files import at_home, temporary_folder


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("a\n::add-mask::true", "a ::add-mask::true"),
        ("::error::b", ": :error::b"),
        ("  ::error::b", "  : :error::b"),
        ("a ##[add-mask]b", "a ## [add-mask]b"),
        ("std::vector::at", "std::vector::at"),
    ],
)
def test_a_message_is_one_line_that_no_runner_obeys(said, told, capsys):
    complain(_shown(UsageError(said)))
    assert capsys.readouterr().err == f"{told}\n"


def test_a_home_of_nobody_is_a_path_like_any_other(tmp_path):
    assert str(at_home(tmp_path / "~x")) == str(tmp_path / "~x")
    assert str(at_home(type(tmp_path)("~no-such-user/bin/python"))) == "~no-such-user/bin/python"


def test_without_a_temporary_folder_it_is_told_in_a_sentence(monkeypatch):
    monkeypatch.setattr("tempfile.TemporaryDirectory", refuse)
    with pytest.raises(UsageError, match="it is done: No space left"):
        temporary_folder("it is done").__enter__()


def test_too_little_memory_is_told_in_a_sentence():
    with pytest.raises(UsageError, match="out of memory"):
        _exit_code_of(MemoryError())


def refuse(*_, **__):
    raise OSError(28, "No space left on device")
