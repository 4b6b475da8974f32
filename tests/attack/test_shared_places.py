"""What several processes or machines share: pytest with parallel workers, and a store far away."""

import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from history_builders import entry, result
from hostile import NASTY

from dlprof.errors import HistoryError
from dlprof.history.store import add, folder_at, read

TESTS = """
import pytest

@pytest.mark.parametrize("turn", range(4))
def test_a_view(dlprof, turn):
    dlprof.assert_view("torch", "numpy", path="x.numpy()", shape="16")

@pytest.mark.parametrize("turn", range(2))
def test_a_copy_is_no_view(dlprof, turn):
    dlprof.assert_view("torch", "numpy", path="numpy.array(x)", shape="16")
"""


@pytest.mark.nightly
def test_parallel_workers_of_pytest_measure_each_for_itself_and_agree(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "test_conversions.py").write_text(TESTS, encoding="utf-8")
    root = str(Path(__file__).parents[2])
    plugins = ("-p", "dlprof.pytest_plugin", "-p", "xdist", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", *plugins, "--color=no", tmp_path],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": root, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert "2 failed, 4 passed" in done.stdout, done.stdout + done.stderr
    assert "numpy.array(x): a copy" in done.stdout


@pytest.fixture
def folder():
    return folder_at(f"memory://{uuid4()}/history", "an ADDRESS")


def entries(count):
    return [entry(number, result(seed=number)) for number in range(count)]


@pytest.mark.parametrize("what", ["_open", "exists", "ls"])
@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_store_that_goes_away_is_told_and_keeps_whole_sessions(folder, monkeypatch, what, after):
    found, whole = entries(3), getattr(MemoryFileSystem, what)
    calls = iter(range(100))

    def gone(*arguments, **options):
        if next(calls) >= after:
            raise ConnectionError("the store is gone\x1b[31m\n::error::x")
        return whole(*arguments, **options)

    monkeypatch.setattr(MemoryFileSystem, what, gone)
    if what != "ls" or not after:
        with pytest.raises(HistoryError) as told:
            add(folder, found)
        assert "the store is gone" in str(told.value)
        assert not {"\x1b", "\n"} & set(str(told.value))
    monkeypatch.setattr(MemoryFileSystem, what, whole)
    add(folder, found)
    history = read(folder)
    assert (list(history.entries), history.ignored) == (found, ())


def test_a_store_that_goes_away_while_it_is_read_names_what_is_missing(folder, monkeypatch):
    found = entries(3)
    add(folder, found)
    whole, calls = MemoryFileSystem.cat_file, iter(range(100))

    def gone(*arguments, **options):
        if next(calls) >= 1:
            raise TimeoutError("no answer")
        return whole(*arguments, **options)

    monkeypatch.setattr(MemoryFileSystem, "cat_file", gone)
    history = read(folder)
    assert list(history.entries) == found[:1]
    assert [name for name, _ in history.ignored] == [one.name for one in found[1:]]


def test_foreign_files_of_a_store_are_named_without_what_steers_a_terminal(folder):
    found = entries(1)
    add(folder, found)
    for number, text in enumerate(NASTY):
        name = text.replace("/", "").replace("\0", "")
        folder.system.pipe_file(
            f"{folder.root}/{number}{name}.parquet", b"PAR1" + text.encode("utf-8", "replace")
        )
    history = read(folder)
    assert list(history.entries) == found
    assert len(history.ignored) == len(NASTY)
    said = "".join(f"{name}{why}" for name, why in history.ignored)
    assert not {"\x1b", "\n", "\r", "\u202e"} & set(said)
