"""One session in a history: what is kept, how it is labeled, and what is damaged."""

import io
import json
import subprocess
import sys
from datetime import datetime, timedelta, timezone

import pyarrow.parquet as pq
import pytest
from history_builders import day, entry, result
from hypothesis import given
from hypothesis import strategies as st

from dlprof.compare.processes import processes
from dlprof.errors import HistoryError
from dlprof.history.entry import SCHEMA, Foreign, Label, decode, encode, entry_of, label_for
from dlprof.runner.session import parse as parse_session

ONE = entry(0, result("a"), result("b"), label="abc")
ENCODED = encode(ONE)


def rewritten(results=None, **metadata):
    """The bytes of :data:`ONE` with other results or metadata; None takes it out."""
    table = pq.read_table(io.BytesIO(ENCODED))
    found = {**table.schema.metadata, **{name.encode(): text for name, text in metadata.items()}}
    if results is not None:
        place = table.column_names.index("result")
        table = table.set_column(place, "result", [results])
    file = io.BytesIO()
    kept = {name: text for name, text in found.items() if text is not None}
    pq.write_table(table.replace_schema_metadata(kept), file)
    return file.getvalue()


def test_an_entry_is_read_as_it_was_written():
    assert decode(ENCODED) == ONE
    assert decode(ENCODED).session.findings == []


def test_the_processes_are_kept_as_comparisons_take_them():
    before = result("a", processes=6)
    for one in before.host_time.processes:
        one.samples_ns.extend([1.1 * one.samples_ns[0], 3 * one.samples_ns[0]])
    after = decode(encode(entry(0, before))).session.results[0]
    assert all(len(one.samples_ns) == 1 for one in after.host_time.processes)
    for measure in ("ready", "host", "first_call", "device"):
        kept, taken = (
            [(one.time_ns, one.round, one.page_faults) for one in processes(found, measure)]
            for found in (after, before)
        )
        assert kept == taken


def test_text_from_a_file_steers_no_terminal():
    label = json.dumps({"text": "\x1b[31mred", "source": "--label"}).encode()
    results = [
        json.dumps({**json.loads(text), "reason": "\x1b[31mred"})
        for text in pq.read_table(io.BytesIO(ENCODED)).column("result").to_pylist()
    ]
    found = decode(rewritten(results, **{"dlprof.label": label}))
    assert {found.label.text, *(one.reason for one in found.session.results)} == {"\\x1b[31mred"}


def test_the_columns_can_be_queried_without_dlprof():
    frame = pq.read_table(io.BytesIO(ENCODED)).to_pandas()
    assert list(frame["code"]) == ["numpy.a(x)", "numpy.b(x)"]
    assert list(frame["label"]) == ["abc", "abc"]
    assert list(frame["packages"]) == ["torch 2.9.0; numpy 2.4.0"] * 2
    assert [len(values) for values in frame["ready_processes_ns"]] == [8, 8]


def test_a_session_that_was_written_again_is_the_same_measurement():
    session = day(0, result())
    again = parse_session(json.dumps(json.loads(session.model_dump_json(by_alias=True))), "again")
    assert entry_of(session).name == entry_of(again).name


@pytest.mark.parametrize("when", ["", "yesterday", "\x1b[31m", "0001-01-01T00:00:00+23:00"])
def test_a_session_of_no_time_is_not_added(when):
    with pytest.raises(HistoryError, match="time"):
        entry(0, result(), created=when)


def header(**changes):
    found = json.loads(pq.read_schema(io.BytesIO(ENCODED)).metadata[b"dlprof.header"])
    return json.dumps({**found, **changes}).encode()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (rewritten(**{"dlprof.header": b"[1]"}), "damaged"),
        (rewritten(**{"dlprof.label": None}), "damaged"),
        (rewritten(**{"dlprof.history": None}), "no file"),
        (rewritten(["{}", "{}"]), "damaged"),
        (rewritten(**{"dlprof.header": header(schema="dlprof.session/2")}), "newer dlprof"),
        (rewritten(**{"dlprof.history": b"dlprof.history/2"}), "newer dlprof"),
    ],
)
def test_what_is_no_entry_is_told(content, reason):
    with pytest.raises(Foreign, match=reason):
        decode(content)


def test_a_newer_minor_is_read():
    assert decode(rewritten(**{"dlprof.history": f"{SCHEMA}.7".encode()})) == ONE


@given(st.integers(0, 3000), st.binary(min_size=1, max_size=8))
def test_damage_anywhere_is_told_in_words(place, bite):
    content = bytearray(ENCODED)
    place = min(place, len(content) - len(bite))
    content[place : place + len(bite)] = bite
    try:
        found = decode(bytes(content))
    except Foreign:  # and nothing else
        return
    assert isinstance(found, type(ONE))


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
    path.write_bytes(ENCODED)
    words = [sys.executable, "-c", THREADS, str(path)]
    assert subprocess.check_output(words, text=True).strip() == "0"


COMMITTED = datetime(2026, 1, 1, tzinfo=timezone.utc)
LATER, BEFORE = COMMITTED + timedelta(hours=1), COMMITTED - timedelta(hours=1)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """The current folder is a repository; its commit."""
    author = {"NAME": "a", "EMAIL": "a@example.org", "DATE": COMMITTED.isoformat()}
    for name, value in author.items():
        monkeypatch.setenv(f"GIT_AUTHOR_{name}", value)
        monkeypatch.setenv(f"GIT_COMMITTER_{name}", value)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    for name in ("GITHUB_SHA", "CI_COMMIT_SHA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("x")
    for words in (("init", "-q"), ("add", "file"), ("commit", "-q", "-m", "first")):
        subprocess.check_output(["git", *words])
    return subprocess.check_output(["git", "rev-parse", "HEAD"], text=True).strip()


@pytest.mark.parametrize("name", ["GITHUB_SHA", "CI_COMMIT_SHA"])
def test_the_commit_that_ci_builds_is_the_label_of_what_was_measured_after_it(
    repository, monkeypatch, name
):
    monkeypatch.setenv(name, repository)
    assert label_for(LATER, None) == Label(repository, name)
    assert label_for(BEFORE, None) == Label()
    assert label_for(LATER, " v1 ") == Label("v1", "--label")
    assert label_for(LATER, "") == Label()


def test_the_commit_that_is_checked_out_is_the_label(repository, tmp_path):
    assert label_for(LATER, None).text == repository
    assert label_for(BEFORE, None) == Label()
    (tmp_path / "file").write_text("y")
    assert label_for(LATER, None).text == f"{repository}-dirty"


def test_without_git_or_a_repository_there_is_no_label(repository, tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.chdir(tmp_path / "other")
    assert label_for(LATER, None) == Label()
    monkeypatch.setenv("PATH", "")
    assert label_for(LATER, None) == Label()
