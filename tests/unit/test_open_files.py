"""File descriptors that a conversion leaves open are counted, and named where they are many."""

from __future__ import annotations

import errno
import os

import pytest

from dlprof.worker import case

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
    before = case.count()
    opened(case.MANY + 3)
    assert case.left_open(before) == case.MANY + 3


def test_a_few_are_those_of_frameworks(opened):
    before = case.count()
    opened(case.MANY - 1)
    assert case.left_open(before) == 0


def test_where_all_are_taken_it_is_the_limit(monkeypatch):
    def refuse(_):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "listdir", refuse)
    monkeypatch.setattr(case.resource, "getrlimit", lambda _: (1024, 4096))
    assert case.count() == 1024
    assert case.left_open(10) == 1014


def test_a_system_that_does_not_tell_blames_nobody(monkeypatch):
    def refuse(_):
        raise FileNotFoundError

    monkeypatch.setattr(os, "listdir", refuse)
    assert case.left_open(0) == 0
