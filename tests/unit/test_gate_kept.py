"""Where a gate keeps its sessions: nothing is replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlprof.errors import UsageError
from dlprof.gate.kept import kept_in, set_aside

pytestmark = pytest.mark.unit


def test_a_folder_is_made_and_what_an_earlier_gate_left_is_set_aside(tmp_path):
    kept = kept_in(tmp_path / "new" / "folder")
    assert set_aside(kept) is None
    for number in ("1", "2"):
        kept.path("head-again").write_text(f"gate {number}", encoding="utf-8")
        (kept.folder / "mine.json").write_text("mine", encoding="utf-8")
        assert set_aside(kept) == kept.folder / number
        moved = kept.folder / number / "head-again.json"
        assert moved.read_text(encoding="utf-8") == f"gate {number}"
        assert kept.written() == []
    assert (kept.folder / "mine.json").exists()


def test_what_cannot_be_set_aside_is_told_and_stays(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    kept = kept_in(tmp_path)
    kept.path("head").write_text("old", encoding="utf-8")
    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(UsageError, match="aside: Permission denied"):
        set_aside(kept)
    assert kept.path("head").read_text(encoding="utf-8") == "old"


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
