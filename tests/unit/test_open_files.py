"""File descriptors that a conversion leaves open are counted, and named where they are many."""

from __future__ import annotations

import errno
import os

import pytest

from dlprof.worker import open_files

pytestmark = pytest.mark.unit


@pytest.fixture
def opened():
    """Opens so many files, which are closed in the end."""
    files = []

    def open_some(count):
        files.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(count))

    yield open_some
    for file in files:
        os.close(file)


def test_many_that_are_left_open_are_counted(opened):
    before = open_files.count()
    opened(open_files.MANY + 3)
    assert open_files.left_open(before) == open_files.MANY + 3


def test_a_few_are_those_of_frameworks(opened):
    before = open_files.count()
    opened(open_files.MANY - 1)
    assert open_files.left_open(before) == 0


def test_where_all_are_taken_it_is_the_limit(monkeypatch):
    def refuse(_):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "listdir", refuse)
    monkeypatch.setattr(open_files.resource, "getrlimit", lambda _: (1024, 4096))
    assert open_files.count() == 1024
    assert open_files.left_open(10) == 1014


def test_a_system_that_does_not_tell_blames_nobody(monkeypatch):
    def refuse(_):
        raise FileNotFoundError

    monkeypatch.setattr(os, "listdir", refuse)
    assert open_files.left_open(0) == 0
