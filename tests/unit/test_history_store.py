"""The store: what is added stays, is read back whole, and survives what else lies there."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from fsspec.implementations.local import LocalFileSystem
from history_builders import created, entry, result

from dlprof.errors import HistoryError
from dlprof.history.address import parse
from dlprof.history.entry import encode
from dlprof.history.store import Folder, add, folder_at, read

pytestmark = pytest.mark.unit


@pytest.fixture(params=["folder", "memory", "other"])
def folder(request, tmp_path):
    """An empty place: a folder, and what fsspec reaches, with folders of its own and without."""
    if request.param == "other":
        here = parse("sftp://host/history")
        return Folder(here, LocalFileSystem(), str(tmp_path / "a" / "history"))
    here = str(tmp_path / "a" / "history") if request.param == "folder" else f"memory://{uuid4()}/h"
    return folder_at(parse(here))


def entries(*days, **header):
    return [entry(number, result(seed=number), **header) for number in days]


def spoil(folder, one, content=b"PAR1"):
    """Put something else in the place of an entry."""
    if isinstance(folder, Folder):
        folder.system.pipe_file(f"{folder.root}/{one.name}", content)
    else:
        (folder.path / one.name).write_bytes(content)


def test_what_is_added_is_read_back_in_order_of_time(folder):
    found = entries(3, 1, 2)
    done = add(folder, found)
    assert [(one.new, one.first) for one in done] == [(True, True), (True, False), (True, False)]
    assert [one.created.isoformat() for one in read(folder).entries] == [*map(created, (1, 2, 3))]
    assert len(folder.names()) == 3


def test_times_of_other_zones_are_put_in_order(folder):
    late = entry(0, result(seed=1), created="2026-01-01T02:30:00+00:00")
    early = entry(0, result(seed=2), created="2026-01-01T03:00:00+01:00")
    add(folder, [late, early])
    assert read(folder).entries == (early, late)


def test_the_same_measurement_is_added_once_and_changes_nothing(folder):
    first, again = (entry(0, result(), label=label) for label in ("first", "second"))
    done = add(folder, [first, again])
    assert [one.new for one in (*done, *add(folder, [again]))] == [True, False, False]
    assert read(folder).entries == (first,)


def test_a_file_is_never_replaced(folder):
    assert [folder.create("a.parquet", text) for text in (b"first", b"second")] == [True, False]
    assert folder.read("a.parquet") == b"first"


def test_a_file_is_never_replaced_on_a_file_system_without_hard_links(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError("no links here")

    monkeypatch.setattr("pathlib.Path.hardlink_to", refused)
    test_a_file_is_never_replaced(folder_at(parse(str(tmp_path))))
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


def test_many_who_add_at_once_lose_nothing(folder):
    found = entries(*range(12))
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda one: add(folder, [one]), found * 2))
    assert list(read(folder).entries) == found


def test_of_the_last_sessions_those_count_that_can_be_read(folder):
    found = entries(*range(5))
    add(folder, found)
    assert (read(folder, last=2).entries, read(folder, last=2).left_out) == (tuple(found[3:]), 3)
    spoil(folder, found[4])
    spoil(folder, found[2])
    history = read(folder, last=2)
    assert (list(history.entries), history.left_out) == ([found[1], found[3]], 1)
    assert [name for name, _ in history.ignored] == [found[2].name, found[4].name]


def test_a_session_that_was_added_before_and_after_it_was_finished_counts_once(folder):
    part = entry(0, result("a", processes=2), complete=False)
    whole = entry(0, result("a"), result("b"))
    other = entry(1, result("a", seed=1), complete=False)
    add(folder, [part, whole, other])
    assert read(folder).entries == read(folder, last=2).entries == (whole, other)
    assert read(folder, last=1).entries == (other,)


def test_two_sessions_that_began_at_once_both_count(folder):
    add(folder, [entry(0, result(seed=seed)) for seed in (1, 2)])
    assert len(read(folder).entries) == 2


def test_a_measurement_whose_file_is_damaged_is_not_called_there(folder):
    (one,) = entries(0)
    add(folder, [one])
    spoil(folder, one)
    with pytest.raises(HistoryError, match=r"it is damaged.*take that file away and add"):
        add(folder, [one])


def test_what_is_no_session_is_named_and_the_rest_goes_on(folder):
    found = entries(0)
    add(folder, found)
    for name in ("other.parquet", "README.md", ".hidden.parquet"):
        folder.create(name, b"hello")
    history = read(folder)
    assert (list(history.entries), [name for name, _ in history.ignored]) == (
        found,
        ["other.parquet"],
    )


def test_a_history_of_which_no_file_can_be_read_is_told(folder, monkeypatch):
    add(folder, entries(0, 1))

    def refuse(self, name):
        raise HistoryError(f"cannot read the history: {name}: Permission denied")

    monkeypatch.setattr(type(folder), "read", refuse)
    with pytest.raises(HistoryError, match="Permission denied"):
        read(folder)


def test_a_place_that_is_not_there_is_no_history(folder):
    with pytest.raises(HistoryError, match="there is no history at "):
        read(folder)


def test_a_newer_major_is_refused_before_anything_is_added(folder):
    name = entries(0)[0].name.replace("dlprof-1-", "dlprof-2-")
    folder.create(name, b"of another form")
    for use in (lambda: read(folder), lambda: add(folder, entries(1))):
        with pytest.raises(HistoryError, match="a newer dlprof wrote it"):
            use()
    assert folder.names() == [name]


class Driver(LocalFileSystem):
    """A driver that knows no mode, and may fail in the middle of a file."""

    error: Exception | None = None

    def pipe_file(self, path, value, **mode):
        if mode:
            raise TypeError("unexpected keyword argument 'mode'")
        error, type(self).error = self.error, None
        super().pipe_file(path, value[: len(value) // 2] if error else value)
        if error:
            raise error


def test_a_driver_that_knows_no_mode_is_used_all_the_same(tmp_path):
    place = Folder(parse("s3://host/x"), Driver(), str(tmp_path))
    found = entries(0)
    assert [done.new for done in (*add(place, found), *add(place, found))] == [True, False]
    assert list(read(place).entries) == found


def test_a_transfer_that_broke_off_loses_nothing_and_tells_no_secret(tmp_path):
    place = Folder(parse("sftp://user:secret@host/x"), Driver(), str(tmp_path))
    Driver.error = ConnectionResetError("connection to sftp://user:secret@host/x was reset")
    with pytest.raises(HistoryError, match="connection to") as no:
        add(place, entries(0))
    assert "secret" not in str(no.value)
    assert [done.new for done in add(place, entries(0))] == [True]
    assert [path.suffix for path in tmp_path.iterdir()] == [".parquet"]


def test_no_bucket_is_ever_made(tmp_path):
    place = Folder(parse("s3://bucket/x"), LocalFileSystem(), str(tmp_path / "bucket" / "x"))
    with pytest.raises(HistoryError, match="cannot add to the history"):
        add(place, entries(0))
    assert not (tmp_path / "bucket").exists()


def test_a_file_in_the_place_of_a_folder_is_told_in_words(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(HistoryError, match="not a folder"):
        read(folder_at(parse(str(tmp_path / "file"))))
    with pytest.raises(HistoryError, match="Not a directory"):
        add(folder_at(parse(str(tmp_path / "file" / "below"))), entries(0))


def test_a_file_that_cannot_be_read_is_named_and_the_rest_goes_on(tmp_path):
    folder = folder_at(parse(str(tmp_path)))
    add(folder, entries(0))
    (tmp_path / "folder.parquet").mkdir()
    os.mkfifo(tmp_path / "pipe.parquet")
    reasons = dict(read(folder).ignored)
    assert "Is a directory" in reasons["folder.parquet"]
    assert "a pipe" in reasons["pipe.parquet"]


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOSPC])
def test_a_folder_that_takes_no_file_is_told_and_has_what_it_had(tmp_path, monkeypatch, number):
    place = folder_at(parse(str(tmp_path / "history")))
    add(place, entries(0))

    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "pipe_file", refuse)
        with pytest.raises(HistoryError, match=f"cannot add .*: {os.strerror(number)}"):
            add(place, entries(1))
    assert [path.suffix for path in (tmp_path / "history").iterdir()] == [".parquet"]


def test_an_entry_is_added_under_its_name(tmp_path):
    (one,) = entries(0)
    add(folder_at(parse(str(tmp_path))), [one])
    assert (tmp_path / one.name).read_bytes() == encode(one)
