"""Names of files: what stands under them, what may never end, and stdin and stdout as ``-``."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from command_line import COMMAND, FAKE, QUICK, dlprof, environment

pytestmark = pytest.mark.integration

RUN = ("run", "fake", "fake", "--probe", FAKE, *QUICK, "--path", "array->view")


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("good")
    path = folder / "session.json"
    assert dlprof(*RUN, "-o", path, state=folder).code == 0
    return path


@pytest.mark.parametrize("name", ["/dev/zero", "pipe"])
@pytest.mark.parametrize(
    "words",
    [("report",), ("ticket",), ("repro",), ("run", "--resume"), ("sweep",), ("compare", "other")],
    ids=" ".join,
)
def test_what_may_never_end_is_not_read(tmp_path, words, name):
    os.mkfifo(tmp_path / "pipe")
    run = dlprof(*words, tmp_path / name, state=tmp_path)
    kind = "a device" if name == "/dev/zero" else "a pipe"
    if words == ("compare", "other"):
        assert "other: No such file" in run.sentence()
    else:
        assert f"{tmp_path / name}: it is {kind}" in run.sentence()
    assert run.code == 2


@pytest.mark.parametrize("words", [("report",), ("repro",), ("ticket",)], ids=" ".join)
def test_a_session_may_come_from_stdin(good, tmp_path, words):
    line = ["sh", "-c", 'cat "$0" | exec "$@"', good, *COMMAND, words[0], "-", *words[1:]]
    done = subprocess.run(
        line, env=environment(tmp_path), timeout=60, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    named = dlprof(words[0], good, *words[1:], state=tmp_path).out
    assert done.stdout.decode() == named.replace(str(good), "/dev/stdin")


@pytest.mark.parametrize(
    "words",
    [("history", "add", "GOOD", "--to", "LONG"), ("compare", "GOOD", "GOOD", "--junit", "LONG")],
    ids=lambda words: words[0],
)
def test_a_name_that_is_too_long_is_bad_usage_and_no_regression(tmp_path, good, words):
    names = {"GOOD": good, "LONG": tmp_path / ("x" * 300)}
    done = dlprof(*(names.get(word, word) for word in words), state=tmp_path)
    assert done.code == 2
    assert "File name too long" in done.sentence()
