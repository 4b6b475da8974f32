"""Small things that a new user meets: the newest file, and the phases of a run."""

import fcntl
import os

import pytest
from builders import make_case
from rule_builders import found, path, verdict

from dlprof.cli.streams import session, session_name, session_or_trace
from dlprof.errors import UsageError
from dlprof.judge.evidence_text import facts
from dlprof.runner import files
from dlprof.runner.evidence import Ownership, Values
from dlprof.runner.progress import Bar


@pytest.fixture
def kept(monkeypatch, tmp_path):
    """Return a function that keeps a file as the newest of its kind."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def keep(kind):
        path = files.default_path(files.TRACE if kind == files.LAST_TRACE else "run")
        path.write_text("{}")
        files.remember_last(path, kind)
        return path

    return keep


def test_last_is_the_newest_file_of_the_kind_that_the_verb_takes(kept):
    with pytest.raises(UsageError, match="there is none yet"):
        session("LAST")
    measured, traced = kept(files.LAST), kept(files.LAST_TRACE)
    assert session("LAST") == measured
    assert session_or_trace("LAST") == traced
    assert session_name(traced) == "LAST"
    assert session_name(measured) == str(measured)


def test_a_session_that_a_run_still_writes_is_kept(kept):
    first = kept(files.LAST)
    with first.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        later = [kept(files.LAST) for _ in range(files.KEPT_SESSIONS + 2)]
        assert first.exists()
    assert sum(path.exists() for path in later) <= files.KEPT_SESSIONS + 1


@pytest.mark.timeout(20)
def test_a_pipe_or_a_link_in_the_place_of_the_newest_name_is_replaced(kept, tmp_path):
    target = tmp_path / "precious"
    target.write_text("kept")
    state = files.state_folder()
    state.mkdir()
    os.mkfifo(state / files.LAST)
    (state / files.LAST_TRACE).symlink_to(target)
    measured, traced = kept(files.LAST), kept(files.LAST_TRACE)
    assert (session("LAST"), target.read_text()) == (measured, "kept")
    assert session_or_trace("LAST") == traced


def test_progress_names_the_phase():
    bar = Bar()
    bar.start(100, rounds=3)
    phases = [bar.phase(make_case(), round_) for round_ in (0, 2, 3)]
    assert phases == ["round 1 of 3", "round 3 of 3", "diagnosis"]
    assert bar.phase(make_case(surveyed=True), 0) == "survey"


def test_evidence_is_written_in_words():
    seen = Ownership(same_address=False, source_write_shows=True, moot=True)
    assert facts(seen) == "same address: no; source write shows: yes"
    flags = {"source": True, "result": False}
    values = facts(Values.model_validate({"writable": flags}))
    assert values == "writable source: yes; writable result: no"


def immutable(code, import_, shape=(4, 4)):
    flags = {"source": True, "result": False, "immutable": True}
    case = {"consumer": "jax", "import": import_, "shape": list(shape)}
    return path(code, values=verdict("ok", changed={}, writable=flags), case=case)


def test_a_finding_begins_with_its_smallest_array():
    sizes = [immutable("f(x)", "f", shape) for shape in ((64, 64), (4, 4), (8, 8))]
    assert found("DLP029", *sizes)[0].results == [1, 2, 0]
