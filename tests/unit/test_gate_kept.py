"""Where a gate keeps its sessions: nothing is replaced."""

import pytest

from dlprof.compare.gate import kept_in
from dlprof.errors import UsageError


def test_a_folder_is_made_and_no_session_in_it_is_replaced(tmp_path):
    kept = kept_in(tmp_path / "new" / "folder")
    (kept.folder / "mine.json").write_text("mine", encoding="utf-8")
    assert kept_in(kept.folder) == kept
    kept.path("head-again").write_text("of yesterday", encoding="utf-8")
    with pytest.raises(UsageError, match="sessions"):
        kept_in(kept.folder)


def test_a_file_is_no_folder(tmp_path):
    file = tmp_path / "a"
    file.write_text("", encoding="utf-8")
    for path in (file, tmp_path / "new.json"):
        with pytest.raises(UsageError, match="name a folder"):
            kept_in(path)


def test_without_a_folder_no_two_gates_share_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    one, other = kept_in(None), kept_in(None)
    assert one.folder == other.folder == tmp_path / "dlprof"
    assert one.path("base") != other.path("base")
