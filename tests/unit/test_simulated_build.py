"""The build trusts no folder where another user can write."""

import os

import pytest

from dlprof.errors import Unmeasured
from dlprof.simulated import environment


def belong_to_others(_, monkeypatch):
    user = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: user)


def let_others_write(folder, _):
    folder.chmod(0o777)


@pytest.mark.parametrize("done", [belong_to_others, let_others_write])
def test_a_library_that_others_can_have_built_is_not_loaded(tmp_path, monkeypatch, done):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(environment, "build", lambda *_: None)
    done(environment.driver_folder(), monkeypatch)
    with pytest.raises(Unmeasured, match="another user may have written"):
        environment.driver_folder()
