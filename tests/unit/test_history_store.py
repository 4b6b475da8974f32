"""The store: what is added stays, is read back whole, and survives what else lies there."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.local import LocalFileSystem
from history_builders import created, day, entry, result
from hypothesis import given
from hypothesis import strategies as st

from dlprof.compare.process import processes
from dlprof.errors import HistoryError, Unmeasured
from dlprof.history.address import parse
from dlprof.history.entry import SCHEMA, Foreign, decode, encode, entry_of
from dlprof.history.folder import RemoteFolder, folder_at
from dlprof.history.label import Label
from dlprof.history.store import add, read
from dlprof.session.model import parse as parse_session

pytestmark = pytest.mark.unit


@pytest.fixture(params=["folder", "memory", "other"])
def folder(request, tmp_path):
    """An empty place: a folder, and what fsspec reaches, with folders of its own and without."""
    if request.param == "other":
        here = parse("sftp://host/history")
        return RemoteFolder(here, LocalFileSystem(), str(tmp_path / "a" / "history"))
    here = str(tmp_path / "a" / "history") if request.param == "folder" else f"memory://{uuid4()}/h"
    return folder_at(parse(here))


class Refusing(LocalFileSystem):
    """A driver that knows no mode, or says no in its own way."""

    error: Exception | None = None

    def pipe_file(self, path, value, **mode):
        if mode:
            raise TypeError("unexpected keyword argument 'mode'")
        if self.error:
            raise self.error
        super().pipe_file(path, value)


def test_a_driver_that_knows_no_mode_is_used_all_the_same(tmp_path):
    place = RemoteFolder(parse("s3://host/x"), Refusing(), str(tmp_path))
    one = entry(0, result())
    assert [done.new for done in (*add(place, [one]), *add(place, [one]))] == [True, False]
    assert read(place).entries == (one,)


def test_a_driver_that_says_no_is_told_without_the_secret(tmp_path):
    system = Refusing()
    system.error = RuntimeError("403 for sftp://user:secret@host/x")
    place = RemoteFolder(parse("sftp://user:secret@host/x"), system, str(tmp_path))
    with pytest.raises(
        HistoryError, match="cannot add to the history sftp://<hidden>@host/x"
    ) as no:
        add(place, [entry(0, result())])
    assert "secret" not in str(no.value)


class BreakingOff(LocalFileSystem):
    """A connection that is lost in the middle of a file, once."""

    lost = False

    def pipe_file(self, path, value, **mode):
        if self.lost:
            return super().pipe_file(path, value, **mode)
        type(self).lost = True
        super().pipe_file(path, value[: len(value) // 2], **mode)
        raise ConnectionResetError("connection reset by peer")


def test_a_transfer_that_broke_off_loses_nothing(tmp_path):
    place = RemoteFolder(parse("sftp://host/x"), BreakingOff(), str(tmp_path))
    one = entry(0, result())
    with pytest.raises(HistoryError, match="connection reset"):
        add(place, [one])
    assert [done.new for done in add(place, [one])] == [True]
    assert read(place).entries == (one,)
    assert [path.suffix for path in tmp_path.iterdir()] == [".parquet"]


def test_no_bucket_is_ever_made(tmp_path):
    place = RemoteFolder(parse("s3://bucket/x"), LocalFileSystem(), str(tmp_path / "bucket" / "x"))
    with pytest.raises(HistoryError, match="cannot add to the history"):
        add(place, [entry(0, result())])
    assert not (tmp_path / "bucket").exists()


def damaged(entry_, **changes):
    """The bytes of an entry with other metadata."""
    table = pq.read_table(io.BytesIO(encode(entry_)))
    changed = {name.encode(): value for name, value in changes.items()}
    metadata = {**table.schema.metadata, **changed}
    metadata = {name: value for name, value in metadata.items() if value is not None}
    file = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), file)
    return file.getvalue()


def test_what_is_added_is_read_back(folder):
    one = entry(0, result("a"), result("b"), label="abc")
    (done,) = add(folder, [one])
    assert (done.new, done.first) == (True, True)
    (found,) = read(folder).entries
    assert found == one
    assert found.label == Label("abc", "--label")


def test_the_processes_are_kept_as_comparisons_take_them():
    before = result("a", processes=6, case={"shape": (3, 4)})
    many = before.host_time.model_copy(
        update={
            "processes": [
                one.model_copy(update={"samples_ns": [one.samples_ns[0] * f for f in (1, 1.1, 3)]})
                for one in before.host_time.processes
            ]
        }
    )
    before = before.model_copy(update={"host_time": many})
    after = decode(encode(entry(0, before))).session.results[0]
    for measure in ("ready", "host", "first_call", "device"):
        kept, taken = (
            [(one.time_ns, one.round, one.page_faults) for one in processes(found, measure)]
            for found in (after, before)
        )
        assert kept == taken


def test_a_session_comes_in_without_findings_and_samples():
    kept = decode(encode(entry(0, result())))
    assert kept.session.findings == []
    assert all(len(p.samples_ns) == 1 for p in kept.session.results[0].host_time.processes)


def test_the_columns_can_be_queried_without_dlprof():
    content = encode(entry(0, result("a"), result("b"), label="abc"))
    frame = pq.read_table(io.BytesIO(content)).to_pandas()
    assert list(frame["code"]) == ["numpy.a(x)", "numpy.b(x)"]
    assert list(frame["label"]) == ["abc", "abc"]
    assert list(frame["ownership"]) == ["view", "view"]
    assert list(frame["packages"]) == ["torch 2.9.0; numpy 2.4.0"] * 2
    assert frame["ready_ns"].between(900, 1100).all()
    assert [len(values) for values in frame["ready_processes_ns"]] == [8, 8]


def test_the_same_measurement_is_added_once(folder):
    one = entry(0, result())
    add(folder, [one])
    (again,) = add(folder, [one])
    assert not again.new
    assert len(folder.names()) == 1


def test_the_same_measurement_twice_in_one_call_is_added_once(folder):
    one = entry(0, result())
    assert [done.new for done in add(folder, [one, one])] == [True, False]


def test_the_same_measurement_under_another_label_changes_nothing(folder):
    add(folder, [entry(0, result(), label="first")])
    (again,) = add(folder, [entry(0, result(), label="second")])
    assert not again.new
    assert read(folder).entries[0].label.text == "first"


def test_a_session_that_was_written_again_is_the_same_measurement():
    session = day(0, result())
    again = parse_session(json.dumps(json.loads(session.model_dump_json(by_alias=True))), "again")
    assert entry_of(session, Label()).name == entry_of(again, Label()).name


def test_nothing_is_ever_replaced(folder):
    one = entry(0, result())
    assert folder.create(one.name, b"first")
    assert not folder.create(one.name, b"second")
    assert folder.read(one.name) == b"first"


def test_a_file_is_replaced_neither_where_there_are_no_hard_links(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError("no links here")

    monkeypatch.setattr("pathlib.Path.hardlink_to", refused)
    folder = folder_at(parse(str(tmp_path)))
    assert folder.create("a.parquet", b"first")
    assert not folder.create("a.parquet", b"second")
    assert folder.read("a.parquet") == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


def test_many_who_add_at_once_lose_nothing(folder):
    entries = [entry(number, result(seed=number)) for number in range(12)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda one: add(folder, [one]), entries * 2))
    assert list(read(folder).entries) == entries


def test_nothing_but_the_file_is_left_in_a_folder(tmp_path):
    folder = folder_at(parse(str(tmp_path)))
    one = entry(0, result())
    add(folder, [one])
    assert [path.name for path in tmp_path.iterdir()] == [one.name]


def test_sessions_are_ordered_by_when_they_were_measured_not_added(folder):
    days = (3, 1, 2)
    for number in days:
        add(folder, [entry(number, result(seed=number))])
    found = [one.created.isoformat() for one in read(folder).entries]
    assert found == [created(number) for number in sorted(days)]


def test_times_of_other_zones_are_put_in_order(folder):
    late = entry(0, result(seed=1), created="2026-01-01T02:30:00+00:00")
    early = entry(0, result(seed=2), created="2026-01-01T03:00:00+01:00")
    add(folder, [late, early])
    assert read(folder).entries == (early, late)


def test_the_last_sessions_can_be_asked_for(folder):
    entries = [entry(number, result(seed=number)) for number in range(5)]
    add(folder, entries)
    found = read(folder, last=2)
    assert list(found.entries) == entries[-2:]
    assert found.left_out == 3


def spoil(folder, one, content=b"PAR1"):
    """Put something else in the place of an entry."""
    if isinstance(folder, RemoteFolder):
        folder.system.pipe_file(f"{folder.root}/{one.name}", content)
    else:
        (folder.path / one.name).write_bytes(content)


def test_of_the_last_sessions_those_count_that_can_be_read(folder):
    entries = [entry(number, result(seed=number)) for number in range(5)]
    add(folder, entries)
    spoil(folder, entries[4])
    spoil(folder, entries[2])
    found = read(folder, last=2)
    assert list(found.entries) == [entries[1], entries[3]]
    assert [name for name, _ in found.ignored] == [entries[2].name, entries[4].name]
    assert found.left_out == 1


def test_a_history_of_which_no_file_can_be_read_is_told(folder, monkeypatch):
    add(folder, [entry(number, result(seed=number)) for number in range(2)])

    def refuse(self, name):
        raise HistoryError(f"cannot read the history: {name}: Permission denied")

    monkeypatch.setattr(type(folder), "read", refuse)
    with pytest.raises(HistoryError, match="Permission denied"):
        read(folder)


def test_a_measurement_whose_file_is_damaged_is_not_called_there(folder):
    one = entry(0, result())
    add(folder, [one])
    spoil(folder, one)
    with pytest.raises(HistoryError, match=r"it is damaged.*take that file away and add"):
        add(folder, [one])


def test_a_session_that_was_added_before_and_after_it_was_finished_counts_once(folder):
    part = entry(0, result("a", processes=2), complete=False)
    whole = entry(0, result("a"), result("b"))
    other = entry(1, result("a", seed=1), complete=False)
    add(folder, [part, whole, other])
    assert read(folder).entries == (whole, other)
    assert read(folder, last=2).entries == (whole, other)
    assert read(folder, last=1).entries == (other,)


def test_a_place_that_is_not_there_is_no_history(folder):
    with pytest.raises(HistoryError, match="there is no history at "):
        read(folder)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("other.parquet", b"not parquet at all", "damaged"),
        ("empty.parquet", b"", "damaged"),
        ("cut.parquet", encode(entry(9, result()))[:-40], "damaged"),
        ("table.parquet", None, "no file of a dlprof history"),
        ("header.parquet", damaged(entry(9, result()), **{"dlprof.header": b"[1]"}), "damaged"),
        ("label.parquet", damaged(entry(9, result()), **{"dlprof.label": b"7"}), "damaged"),
        ("bare.parquet", damaged(entry(9, result()), **{"dlprof.label": None}), "damaged"),
    ],
)
def test_what_is_no_session_is_named_and_the_rest_goes_on(folder, name, content, reason):
    one = entry(0, result())
    add(folder, [one])
    if content is None:
        file = io.BytesIO()
        pq.write_table(pa.table({"x": [1]}), file)
        content = file.getvalue()
    folder.create(name, content)
    found = read(folder)
    assert found.entries[0] == one
    assert [ignored for ignored, _ in found.ignored] == [name]
    assert reason in found.ignored[0][1]


@given(st.integers(0, 3000), st.binary(min_size=1, max_size=8))
def test_damage_anywhere_is_told_in_words(place, bite):
    content = bytearray(ENCODED)
    place = min(place, len(content) - len(bite))
    content[place : place + len(bite)] = bite
    with contextlib.suppress(Foreign):  # and nothing else
        decode(bytes(content))


ENCODED = encode(entry(0, result()))


@given(st.integers(0, len(ENCODED) - 1))
def test_a_truncated_file_is_told_in_words(length):
    with pytest.raises(Foreign):
        decode(ENCODED[:length])


def test_what_is_no_parquet_file_is_not_looked_at(folder):
    add(folder, [entry(0, result())])
    folder.create("README.md", b"hello")
    folder.create(".hidden.parquet", b"hello")
    assert read(folder).ignored == ()


def test_a_newer_major_is_refused_by_its_content(folder):
    add(folder, [entry(0, result())])
    folder.create(
        "new.parquet", damaged(entry(1, result()), **{"dlprof.history": b"dlprof.history/2"})
    )
    with pytest.raises(
        HistoryError, match=r"new\.parquet: a newer dlprof wrote it \(dlprof.history/2\)"
    ):
        read(folder)


def test_a_newer_major_is_refused_by_its_name_before_anything_is_added(folder):
    name = entry(0, result()).name.replace("dlprof-1-", "dlprof-2-")
    folder.create(name, b"of another form")
    for use in (lambda: read(folder), lambda: add(folder, [entry(1, result())])):
        with pytest.raises(HistoryError, match="a newer dlprof wrote it"):
            use()
    assert folder.names() == [name]


def test_a_newer_minor_is_read():
    content = damaged(entry(0, result()), **{"dlprof.history": f"{SCHEMA}.7".encode()})
    assert decode(content) == entry(0, result())


def test_a_newer_session_is_told():
    header = json.loads(pq.read_schema(io.BytesIO(ENCODED)).metadata[b"dlprof.header"])
    content = damaged(
        entry(0, result()),
        **{"dlprof.header": json.dumps({**header, "schema": "dlprof.session/2"}).encode()},
    )
    with pytest.raises(Foreign, match="newer dlprof"):
        decode(content)


@pytest.mark.parametrize("name", ["dlprof.header", "dlprof.label"])
def test_an_entry_that_can_be_read_and_is_not_what_was_written_is_damaged(name):
    text = pq.read_schema(io.BytesIO(ENCODED)).metadata[name.encode()]
    changes = {"dlprof.header": (b"T03:00", b"T04:00"), "dlprof.label": (b': "', b': "u')}
    old, new = changes[name]
    assert old in text
    with pytest.raises(Foreign, match="what is in it is not what was written"):
        decode(damaged(entry(0, result()), **{name: text.replace(old, new, 1)}))


def test_a_result_with_another_number_than_was_written_is_damaged():
    table = pq.read_table(io.BytesIO(ENCODED))
    texts = [text.replace("0", "1", 1) for text in table.column("result").to_pylist()]
    place = table.column_names.index("result")
    file = io.BytesIO()
    pq.write_table(table.set_column(place, "result", [texts]), file)
    with pytest.raises(Foreign, match="not what was written"):
        decode(file.getvalue())


def test_an_entry_of_before_there_was_a_digest_is_read():
    found = entry(0, result())
    assert decode(damaged(found, **{"dlprof.digest": None})) == found


def test_a_session_without_results_is_not_added():
    with pytest.raises(Unmeasured, match="holds no results"):
        entry(0)


@pytest.mark.parametrize("when", ["", "yesterday", "\x1b[31m", "0001-01-01T00:00:00+23:00"])
def test_a_session_of_no_time_is_not_added(when):
    with pytest.raises(HistoryError, match="cannot be placed in time"):
        entry(0, result(), created=when)


def test_a_folder_that_cannot_be_made_is_told_in_words(tmp_path):
    (tmp_path / "file").write_text("x")
    folder = folder_at(parse(str(tmp_path / "file" / "history")))
    with pytest.raises(HistoryError, match=r"cannot add to the history .*: Not a directory"):
        add(folder, [entry(0, result())])


def test_a_file_in_the_place_of_a_folder_is_told_in_words(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(HistoryError, match="Not a directory"):
        read(folder_at(parse(str(tmp_path / "file"))))


def test_a_file_that_cannot_be_read_is_named_and_the_rest_goes_on(tmp_path):
    folder = folder_at(parse(str(tmp_path)))
    one = entry(0, result())
    add(folder, [one])
    (tmp_path / "folder.parquet").mkdir()
    found = read(folder)
    assert found.entries == (one,)
    assert "Is a directory" in found.ignored[0][1]


def test_of_those_who_begin_a_history_at_once_at_most_one_is_the_first(tmp_path):
    """Both look before either adds."""

    class Slow:
        """A folder in which another one adds between the look and the file."""

        def __init__(self):
            self.folder = folder_at(parse(str(tmp_path / "new")))
            self.address = self.folder.address
            self.others = [entry(1, result())]

        def names(self):
            return self.folder.names()

        def read(self, name):
            return self.folder.read(name)

        def create(self, name, content):
            others, self.others = self.others, []
            first.extend(done.first for done in add(self.folder, others))
            return self.folder.create(name, content)

    first = []
    first += [done.first for done in add(Slow(), [entry(0, result())])]
    assert first == [True, False]


@pytest.mark.parametrize(
    ("where", "number", "words"),
    [
        ("mkdir", errno.EACCES, "Permission denied"),
        ("mkdir", errno.EROFS, "Read-only file system"),
        ("mkstemp", errno.EACCES, "Permission denied"),
        ("fsync", errno.ENOSPC, "No space left on device"),
        ("fsync", errno.EDQUOT, "Disk quota exceeded"),
    ],
)
def test_a_folder_that_takes_no_file_is_told_and_has_what_it_had(
    tmp_path, monkeypatch, where, number, words
):
    place = folder_at(parse(str(tmp_path / "history")))
    add(place, [entry(0, result())])

    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        owner = {"mkdir": Path, "mkstemp": tempfile, "fsync": os}[where]
        patch.setattr(owner, where, refuse)
        with pytest.raises(HistoryError, match=f"cannot add to the history .*: {words}"):
            add(place, [entry(1, result())])
    assert len(read(place).entries) == 1
    assert not [path for path in (tmp_path / "history").iterdir() if path.suffix == ".partial"]


THREADS = """
import os, sys
from pathlib import Path
from dlprof.history.entry import decode
content = Path(sys.argv[1]).read_bytes()
import pyarrow.parquet
before = len(os.listdir("/proc/self/task"))
assert decode(content).session.results
print(len(os.listdir("/proc/self/task")) - before)
"""


def test_reading_leaves_no_thread_behind_that_could_abort_the_process_at_its_end(tmp_path):
    path = tmp_path / "entry.parquet"
    path.write_bytes(encode(entry(0, result())))
    done = subprocess.run(
        [sys.executable, "-c", THREADS, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "0"
