"""Nothing is trusted that lies where another user can have put it."""

import os
from pathlib import Path

import pytest

from dlprof.errors import MissingDevice, UsageError
from dlprof.runner import state
from dlprof.simulated import build


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The state folder of a user who has begun a run."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    header = {"command": "run"}
    header["mark"] = state.mark(header)
    state.remember_last(tmp_path / "s.json")
    assert state.is_own(header)
    assert state.last_session() == tmp_path / "s.json"
    return tmp_path / "dlprof", header


def belong_to_others(_, monkeypatch):
    user = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: user)


def let_others_write(folder, _):
    folder.chmod(0o777)


FOREIGN = pytest.mark.parametrize(
    ("done", "why"),
    [(belong_to_others, "belongs to another user"), (let_others_write, "other users")],
)


@FOREIGN
def test_a_state_folder_of_others_is_trusted_in_nothing(folder, monkeypatch, done, why):
    kept, header = folder
    done(kept, monkeypatch)
    assert not state.is_own(header)
    assert why in state.untrusted_reason()
    for use in (state.last_session, state.kept_sessions, lambda: state.default_path("run")):
        with pytest.raises(UsageError, match=why):
            use()
    state.remember_last(kept / "other.json")
    assert "other.json" not in (kept / state.LAST).read_text()


@pytest.mark.parametrize("home", [None, "relative"])
def test_without_a_home_nothing_is_kept_or_trusted(monkeypatch, home):
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: Path(home) if home else homeless())
    assert state.mark({}) == ""
    assert not state.is_own({"mark": ""})
    assert "no home folder" in state.untrusted_reason()
    with pytest.raises(UsageError, match="with -o"):
        state.default_path("run")
    with pytest.raises(MissingDevice, match="set XDG_CACHE_HOME"):
        build.driver_folder()


def homeless():
    raise RuntimeError("Could not determine home directory.")


def test_folders_are_made_for_this_user_whatever_the_umask(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    before = os.umask(0)
    try:
        path = state.default_trace()
    finally:
        os.umask(before)
    assert not path.parent.stat().st_mode & 0o022
    assert not path.parent.parent.stat().st_mode & 0o022


@FOREIGN
@pytest.mark.parametrize("file", [False, True], ids=["folder", "file"])
def test_a_library_that_others_can_have_built_is_not_loaded(tmp_path, monkeypatch, done, why, file):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(build, "build", lambda _, folder: write_openly(folder))
    kept = build.driver_folder()
    done(kept / build.LIBRARY if file else kept, monkeypatch)
    with pytest.raises(MissingDevice, match=why):
        build.driver_folder()


def write_openly(folder):
    for name in (build.LIBRARY, build.NVML):
        (folder / name).touch()
        (folder / name).chmod(0o666)
