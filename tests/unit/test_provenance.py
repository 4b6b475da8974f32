"""A session that was written here is known to the byte."""

from __future__ import annotations

import pytest

from dlprof import provenance

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


def test_a_folder_that_cannot_be_written_is_no_error(session, tmp_path):
    (tmp_path / "state").write_text("a file")
    provenance.remember(session, tmp_path / "state")
    assert not provenance.is_ours(session, tmp_path / "state")
