"""A session that was written here is known, to the byte or by what it says."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from html_builders import full_session

from dlprof.reports.html.embedded import embed, in_script
from dlprof.session import files, provenance
from dlprof.session import model as sessions

pytestmark = pytest.mark.unit


@pytest.fixture
def session(tmp_path):
    path = tmp_path / "s.json"
    path.write_text("{}")
    return path


def test_what_was_written_here_is_ours(session, tmp_path):
    provenance.remember(session, tmp_path / "state")
    assert provenance.is_ours(session, tmp_path / "state")


def test_what_was_moved_is_still_ours(session, tmp_path):
    provenance.remember(session, tmp_path / "state")
    assert provenance.is_ours(session.rename(tmp_path / "t.json"), tmp_path / "state")


def test_what_was_changed_since_is_not_ours(session, tmp_path):
    provenance.remember(session, tmp_path / "state")
    session.write_text("{} ")
    assert not provenance.is_ours(session, tmp_path / "state")


def test_what_nobody_wrote_here_is_not_ours(session, tmp_path):
    assert not provenance.is_ours(session, tmp_path / "state")
    assert not provenance.is_ours(tmp_path / "absent.json", tmp_path / "state")


def test_only_the_newest_are_kept(session, tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "MOST", 2)
    for number in range(3):
        session.write_text(str(number))
        provenance.remember(session, tmp_path / "state")
    assert len((tmp_path / "state" / "written").read_text().split()) == 2
    assert provenance.is_ours(session, tmp_path / "state")


def test_a_run_that_saves_often_pushes_nothing_out(session, tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "MOST", 4)
    other = tmp_path / "other.json"
    other.write_text("an older session")
    provenance.remember(other, tmp_path / "state")
    before = ()
    for number in range(10):
        session.write_text(str(number))
        before = provenance.remember(session, tmp_path / "state", before)
    assert provenance.is_ours(other, tmp_path / "state")
    assert provenance.is_ours(session, tmp_path / "state")


def test_runs_that_end_at_the_same_time_forget_nothing_of_each_other(tmp_path, monkeypatch):
    read = provenance._known

    def slowly(folder):
        found = read(folder)
        time.sleep(0.02)  # long enough for all others to read the same
        return found

    monkeypatch.setattr(provenance, "_known", slowly)
    paths = [tmp_path / f"{number}.json" for number in range(8)]
    for path in paths:
        path.write_text(path.name)
    with ThreadPoolExecutor(len(paths)) as pool:
        list(pool.map(lambda path: provenance.remember(path, tmp_path / "state"), paths))
    assert all(provenance.is_ours(path, tmp_path / "state") for path in paths)


def test_what_comes_on_stdin_is_not_ours(session, tmp_path, monkeypatch):
    provenance.remember(session, tmp_path / "state")
    monkeypatch.setattr(files, "STDIN", session)
    assert not provenance.is_ours(session, tmp_path / "state")


def test_a_folder_that_cannot_be_written_is_no_error(session, tmp_path):
    (tmp_path / "state").write_text("a file")
    provenance.remember(session, tmp_path / "state")
    assert not provenance.is_ours(session, tmp_path / "state")


# By content


@pytest.fixture
def whole():
    return full_session().model_copy(update={"left_out": ["a < b"]})


@pytest.fixture
def kept(whole, tmp_path):
    path = tmp_path / "whole.json"
    sessions.write(path, whole, whole.results)
    provenance.remember(path, tmp_path / "state")
    return path


def changed(path, before, after):
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))
    return path


def test_the_session_that_a_page_saves_is_ours(kept, whole, tmp_path):
    saved = tmp_path / "saved.json"
    saved.write_text(str(embed(whole).plain))
    assert saved.read_bytes() != kept.read_bytes()
    assert provenance.is_ours(saved, tmp_path / "state")


def test_a_page_that_holds_fewer_samples_saves_what_is_ours(kept, whole, tmp_path, monkeypatch):
    monkeypatch.setattr("dlprof.reports.html.embedded.PACKED_PER_CASE", 0)
    found = embed(whole)
    assert found.left_out
    saved = tmp_path / "saved.json"
    saved.write_text(str(found.plain))
    assert provenance.is_ours(saved, tmp_path / "state")


def test_the_same_in_other_escapes_is_ours(kept, tmp_path):
    kept.write_text(in_script(kept.read_text()) + "\n")
    assert provenance.is_ours(kept, tmp_path / "state")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("numpy.array(x)", "numpy.array(y)"),
        ('"seed": 7', '"seed": 8'),
        ('"results": [', '"results": [1], "results": ['),
        ("\n]}", ",\n{}\n]}"),
        ("\n]}", "\n]} {}"),
        ('"samples_ns": [', '"samples_ns": ["import os", '),
    ],
)
def test_what_says_anything_else_is_not_ours(kept, tmp_path, before, after):
    before_it_was = sessions.load(kept).model_dump()
    path = changed(kept, before, after)
    try:
        same = sessions.load(path).model_dump() == before_it_was
    except sessions.SessionError:
        same = False
    assert provenance.is_ours(path, tmp_path / "state") == same


@pytest.mark.parametrize("text", ["", "{}", "[", "\n", '{"results": [', '{"results": [\n{}\n'])
def test_what_is_no_session_has_no_digest_of_its_content(text, tmp_path):
    path = tmp_path / "s.json"
    path.write_text(text)
    assert provenance.content_digest(path) is None


def test_a_digest_of_content_is_never_one_of_bytes(kept):
    assert provenance.content_digest(kept) != provenance.digest(kept)
    assert json.loads(kept.read_text())["results"]
