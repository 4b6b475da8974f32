"""The store: what is added stays, is read back whole, and survives what else lies there."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from fsspec.implementations.local import LocalFileSystem
from history_builders import created, entry, result

from dlprof.errors import HistoryError, UsageError
from dlprof.history.store import Folder, add, folder_at, read


def at(address):
    return folder_at(str(address), "an ADDRESS")


@pytest.fixture(params=["folder", "memory"])
def folder(request, tmp_path):
    """An empty place: a folder, and what fsspec reaches."""
    return at(
        tmp_path / "a" / "history" if request.param == "folder" else f"memory://{uuid4()}/history"
    )


def entries(*days, **header):
    return [entry(number, result(seed=number), **header) for number in days]


def spoil(folder, one, content=b"PAR1"):
    """Put something else in the place of an entry."""
    folder.system.pipe_file(f"{folder.root}/{one.name}", content)


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


def test_many_who_add_at_once_lose_nothing(tmp_path):
    found = entries(*range(12))
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda one: add(at(tmp_path), [one]), found * 2))
    assert list(read(at(tmp_path)).entries) == found


def test_the_last_sessions_are_read_and_the_others_counted(folder):
    found = entries(*range(5))
    add(folder, found)
    spoil(folder, found[4])
    history = read(folder, last=2)
    assert (list(history.entries), history.left_out) == ([found[3]], 3)
    assert [name for name, _ in history.ignored] == [found[4].name]


def test_a_session_that_was_added_before_and_after_it_was_finished_counts_once(folder):
    part = entry(0, result("a", processes=2), complete=False)
    whole = entry(0, result("a"), result("b"))
    other = entry(1, result("a", seed=1), complete=False)
    add(folder, [part, whole, other])
    assert read(folder).entries == read(folder, last=2).entries == (whole, other)


def test_a_measurement_whose_file_is_damaged_is_not_called_there(folder):
    (one,) = entries(0)
    add(folder, [one])
    spoil(folder, one)
    with pytest.raises(HistoryError, match="damaged"):
        add(folder, [one])


def test_what_is_no_session_is_named_and_the_rest_goes_on(tmp_path):
    found = entries(0)
    add(at(tmp_path), found)
    for name in ("other.parquet", "README.md", ".hidden.parquet"):
        (tmp_path / name).write_bytes(b"hello")
    (tmp_path / "folder.parquet").mkdir()
    os.mkfifo(tmp_path / "pipe.parquet")
    history = read(at(tmp_path))
    assert list(history.entries) == found
    assert [name for name, _ in history.ignored] == [
        "folder.parquet", "other.parquet", "pipe.parquet"
    ]  # fmt: skip


def test_a_history_of_which_no_file_can_be_read_is_told(folder):
    (one,) = entries(0)
    add(folder, [one])
    spoil(folder, one)
    with pytest.raises(HistoryError, match="damaged"):
        read(folder)


def test_a_newer_major_is_refused_before_anything_is_added(folder):
    name = entries(0)[0].name.replace("dlprof-1-", "dlprof-2-")
    folder.create(name, b"of another form")
    for use in (lambda: read(folder), lambda: add(folder, entries(1))):
        with pytest.raises(HistoryError, match="a newer dlprof wrote"):
            use()
    assert folder.names() == [name]


def test_no_bucket_is_ever_made(tmp_path):
    class Bucket(LocalFileSystem):
        protocol = "s3"

    place = Folder("s3://bucket/x", Bucket(), str(tmp_path / "bucket" / "x"))
    with pytest.raises(HistoryError, match="cannot add"):
        add(place, entries(0))
    assert not (tmp_path / "bucket").exists()


def test_a_file_in_the_place_of_a_folder_is_told_in_words(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(HistoryError, match="not a folder"):
        read(at(tmp_path / "file"))


def test_a_folder_that_takes_no_file_is_told_and_has_what_it_had(tmp_path, monkeypatch):
    place = at(tmp_path / "history")
    add(place, entries(0))

    def refuse(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", refuse)
        with pytest.raises(HistoryError, match="No space left"):
            add(place, entries(1))
    assert [path.suffix for path in (tmp_path / "history").iterdir()] == [".parquet"]


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("memory://key:secret@host/folder", "memory://<hidden>@host/folder"),
        ("memory://host/folder?token=secret", "memory://host/folder?<hidden>"),
        ("memory://key:se?cret@host/folder", "memory://<hidden>"),
        ("memory://key:se/cret@host/folder", "memory://<hidden>@host/folder"),
        ("simplecache::memory://k:secret@b/x", "simplecache::memory://<hidden>@b/x"),
    ],
)
def test_login_and_query_are_never_shown(address, shown, monkeypatch):
    place = at(address)
    assert place.shown == shown

    def refuse(*_, **__):
        raise ConnectionResetError(f"connection to {address} was reset")

    monkeypatch.setattr(type(place.system), "isfile", refuse)
    with pytest.raises(HistoryError, match="cannot read") as no:
        read(place)
    assert "secret" not in str(no.value)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("bogus://user:secret@host/x", "bogus://<hidden>@host/x: "),
        ("gs://bucket/x", "gcsfs"),
    ],
)
def test_an_address_without_a_driver_is_told(address, said):
    with pytest.raises(HistoryError, match="cannot open") as no:
        at(address)
    assert said in str(no.value)


def test_an_address_may_come_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("DLPROF_HISTORY", str(tmp_path))
    assert folder_at(None, "--to ADDRESS").shown == str(tmp_path)
    monkeypatch.delenv("DLPROF_HISTORY")
    for nothing in (None, "", " "):
        with pytest.raises(UsageError, match=r"--to ADDRESS.*DLPROF_HISTORY"):
            folder_at(nothing, "--to ADDRESS")
