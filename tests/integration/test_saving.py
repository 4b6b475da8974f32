"""What was measured is in a file before anything else is tried, and in another where one fails."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from command_line import FAKE, content

from dlprof.errors import Unsaved, UsageError
from dlprof.measuring import measuring
from dlprof.measuring.measuring import Measurement, Request, inspect_interpreter
from dlprof.plan.pairing import Axes
from dlprof.plan.settings import Settings
from dlprof.session import model as sessions
from dlprof.session import provenance
from dlprof.session.state import state_folder

sys.path.insert(0, str(Path(__file__).parent.parent / "unit"))
from builders import make_result, make_session

pytestmark = pytest.mark.integration


class Unwatched:
    def start(self, total): ...
    def case(self, case, round_, stage): ...
    def step(self): ...


@pytest.fixture
def measurement(tmp_path, monkeypatch):
    """A run of one conversion into ``session.json``, not begun."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    request = Request(
        pairs=(("fake", "fake"),),
        axes=Axes(shapes=((16,),)),
        globs=("array->view",),
        settings=Settings(rounds=1, sample_ns=1_000_000, diagnose=False),
        python=sys.executable,
        probe_files=(FAKE,),
        command=("run",),
    )
    catalog = inspect_interpreter(sys.executable, (FAKE,))
    made = Measurement(request, catalog, tmp_path / "session.json", Unwatched())
    yield made
    made.close()


def stop(*_):
    raise KeyboardInterrupt


def place_told(error) -> Path:
    """The file that a message names."""
    return Path(re.search(r"the session is in (\S+)", str(error.value))[1])


def test_who_is_stopped_while_rules_look_has_all_that_was_measured(measurement, monkeypatch):
    monkeypatch.setattr(measuring, "judge", stop)
    with pytest.raises(KeyboardInterrupt):
        measurement.run()
    saved = content(measurement.path)
    assert saved["complete"] is True
    assert [result["status"] for result in saved["results"]] == ["ok"]
    assert saved["findings"] == []


def test_where_no_rule_can_look_the_session_is_saved_and_says_so(measurement, monkeypatch):
    def full(*_):
        raise UsageError("cannot judge so many results: No space left on device")

    monkeypatch.setattr(measuring, "judge", full)
    with pytest.raises(Unsaved, match="dlprof report judges it"):
        measurement.run()
    saved = content(measurement.path)
    assert [result["status"] for result in saved["results"]] == ["ok"]
    assert any(line.startswith("no rule could look: cannot") for line in saved["left_out"])


def test_a_session_that_had_to_go_elsewhere_is_known_as_ones_own(measurement, monkeypatch):
    written = sessions.write

    def refused(path, *parts):
        if path == measurement.path and measurement.complete:
            raise UsageError(f"cannot write {path}: No space left on device")
        written(path, *parts)

    monkeypatch.setattr(sessions, "write", refused)
    with pytest.raises(Unsaved) as error:
        measurement.run()
    elsewhere = place_told(error)
    assert content(elsewhere)["complete"] is True
    assert provenance.is_ours(elsewhere, state_folder())


def test_who_does_not_wait_for_the_reader_of_a_pipe_has_the_session_elsewhere(
    measurement, monkeypatch
):
    os.mkfifo(measurement.path)
    written = sessions.write

    def waiting(path, *parts):
        if path == measurement.path:
            raise KeyboardInterrupt
        written(path, *parts)

    monkeypatch.setattr(sessions, "write", waiting)
    with pytest.raises(Unsaved, match="waited for its reader") as error:
        measurement.run()
    assert content(place_told(error))["complete"] is True


def test_an_older_session_stays_until_there_is_something_in_its_place(measurement, monkeypatch):
    written = content_of_an_older_one(measurement.path)
    again = Measurement(measurement.request, measurement.catalog, measurement.path, Unwatched())
    monkeypatch.setattr(measuring.Runner, "run", stop)
    with pytest.raises(KeyboardInterrupt):
        again.run()
    again.close()
    assert not again.saved
    assert measurement.path.read_text(encoding="utf-8") == written
    monkeypatch.undo()


def content_of_an_older_one(path) -> str:
    older = make_session(make_result("older(x)"))
    sessions.write(path, older, older.results)
    return path.read_text(encoding="utf-8")
