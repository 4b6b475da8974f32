"""The build trusts no file in a place where another user can write."""

import os

import pytest

from dlprof.errors import Unmeasured
from dlprof.simulated import environment


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
@pytest.mark.parametrize("file", [False, True], ids=["folder", "file"])
def test_a_library_that_others_can_have_built_is_not_loaded(tmp_path, monkeypatch, done, why, file):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(environment, "build", lambda _, folder: write_empty(folder))
    kept = environment.driver_folder()
    done(kept / environment.LIBRARY if file else kept, monkeypatch)
    with pytest.raises(Unmeasured, match=why):
        environment.driver_folder()


@pytest.mark.timeout(20)
def test_a_pipe_in_the_place_of_the_lock_does_not_block(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(environment, "build", lambda _, folder: write_empty(folder))
    kept = environment.driver_folder()
    for name in (environment.LIBRARY, "lock"):
        (kept / name).unlink()
    os.mkfifo(kept / "lock")
    assert environment.driver_folder() == kept


def write_empty(folder):
    for name in (environment.LIBRARY, environment.NVML):
        (folder / name).touch()
