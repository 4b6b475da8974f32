"""Two outputs, or an input and an output, that are one file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dlprof.cli.files import check_distinct
from dlprof.cli.outputs import Outputs
from dlprof.errors import UsageError

pytestmark = pytest.mark.unit


def test_files_that_differ_are_fine(tmp_path):
    assert check_distinct({"a": tmp_path / "a", "b": str(tmp_path / "b"), "c": None}) is None


@pytest.mark.parametrize("file", ["-", None, "/dev/null"])
def test_what_is_no_file_may_stand_twice(file):
    assert check_distinct({"a": file, "b": file}) is None


def test_one_file_twice_is_refused_also_before_it_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"--csv and the session are the same file: x"):
        check_distinct({"the session": tmp_path / "x", "--csv": "./x"})


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_to_a_file_is_that_file(tmp_path, link):
    (tmp_path / "x").touch()
    link(tmp_path / "x", tmp_path / "y")
    with pytest.raises(UsageError, match="same file"):
        check_distinct({"a": tmp_path / "x", "b": tmp_path / "y"})


def test_outputs_are_compared_with_each_other_and_with_the_session(tmp_path):
    target = str(tmp_path / "out")
    with pytest.raises(UsageError, match=r"--csv and --html"):
        Outputs.of({"html": target, "csv": target}).check()
    with pytest.raises(UsageError, match="--json and the session"):
        Outputs.of({"json": target}).check({"the session": Path(target)})
