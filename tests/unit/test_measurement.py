"""A run from a request to its session: kept, judged, stopped, killed and resumed; by replay."""

import itertools
import json
from contextlib import closing, suppress

import pytest
from recordings import NUMPY_TORCH, measurement_of

from dlprof.errors import Unsaved, UsageError
from dlprof.measuring import measure
from dlprof.runner import resume
from dlprof.runner import session as sessions
from dlprof.runner.journal import Journal
from dlprof.runner.replay import replayed
from dlprof.runner.state import journal_of

TIMES = {"created", "wall_s", "foreign_cores", "request", "environment"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "session.json"


@pytest.fixture
def recording():
    with replayed(NUMPY_TORCH) as recording:
        yield recording


def run(recording, path, journal=None, **options):
    with closing(measurement_of(recording, path, journal, **options)) as measurement:
        measure.run(measurement)
    return content(path)


def content(path):
    found = json.loads(path.read_text())
    return {key: value for key, value in found.items() if key not in TIMES}


def asked(recording):
    """How often workers were asked to measure a case."""
    return sum(request["do"] == "case" for request in recording.asked)


def test_a_run_that_is_complete_leaves_its_session_alone(recording, path):
    found = run(recording, path)
    assert found["complete"]
    assert {result["status"] for result in found["results"]} == {"ok"}
    assert all(result["rounds"] == [0, 1, 2] for result in found["results"])
    assert found["findings"]
    assert list(path.parent.iterdir()) == [path]


def before_each(recording, act):
    """Call ``act`` with the number of each request for a case, before it is answered."""
    answer, numbers = recording.outcome, itertools.count()

    def outcome(request):
        if request["do"] == "case":
            act(next(numbers))
        return answer(request)

    recording.outcome = outcome


def stop():
    raise KeyboardInterrupt


def stopped(recording, path, after):
    answer = recording.outcome
    before_each(recording, lambda number: stop() if number == after else None)
    with suppress(KeyboardInterrupt):
        run(recording, path)
    recording.outcome = answer
    recording.asked.clear()


def finish(path, recording, into=None):
    recording.skip(journal_of(path))
    with closing(resume.reopen(path, into)) as journal:
        return run(recording, into or path, journal)


REQUESTS = 40


@pytest.mark.parametrize("after", [0, 1, 4, 9, 13, 20, 29, 30, 33, 39])
def test_a_killed_run_is_finished_as_if_nothing_had_happened(path, tmp_path, after):
    left = []  # what a kill before each request would leave
    with replayed(NUMPY_TORCH) as recording:
        before_each(recording, lambda _: left.append(journal_of(path).read_bytes()))
        whole = run(recording, path)
    assert len(left) == REQUESTS
    killed = tmp_path / "killed.json"
    journal_of(killed).write_bytes(left[after])
    with replayed(NUMPY_TORCH) as recording:
        assert finish(killed, recording) == whole
        assert asked(recording) == REQUESTS - after
    assert not journal_of(killed).exists()


def test_a_run_that_the_user_stopped_keeps_its_journal_and_says_so(recording, path):
    stopped(recording, path, after=15)
    found = content(path)
    assert not found["complete"]
    assert sum(len(result["rounds"]) for result in found["results"]) == 15
    assert finish(path, recording)["complete"]
    assert asked(recording) == REQUESTS - 15


def test_a_run_is_finished_in_another_file_and_the_first_one_stays(recording, path, tmp_path):
    stopped(recording, path, after=15)
    before = path.read_bytes(), journal_of(path).read_bytes()
    other = tmp_path / "other.json"
    assert finish(path, recording, into=other)["complete"]
    assert (path.read_bytes(), journal_of(path).read_bytes()) == before
    assert not journal_of(other).exists()


def test_a_session_without_its_journal_is_refused(recording, path):
    stopped(recording, path, after=15)
    journal_of(path).unlink()
    with pytest.raises(UsageError, match=r"without its journal, .*session\.json\.journal"):
        resume.reopen(path)


def change(path, edit):
    first, rest = journal_of(path).read_text().split("\n", 1)
    header = json.loads(first)
    edit(header)
    journal_of(path).write_text(f"{json.dumps(header)}\n{rest}")


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (
            lambda header: header["catalog"]["interpreter"].update(python="3.1.0"),
            "python was 3.1.0",
        ),
        (lambda header: header["catalog"]["interpreter"].update(cores=4096), "cores was 4096"),
        (
            lambda header: header["catalog"]["interpreter"].update(machine_id="a", boot_id="b"),
            "machine_id was a",
        ),
        (lambda header: header["catalog"]["probes"][0].update(version="1.0"), "was 1.0 and is"),
        (lambda header: header["cases"].append({}), "its cases are others"),
    ],
)
def test_what_was_measured_elsewhere_is_not_mixed_with_this(recording, path, edit, reason):
    stopped(recording, path, after=15)
    change(path, edit)
    before = journal_of(path).read_bytes()
    with pytest.raises(UsageError, match=f"cannot be finished here: .*{reason}"):
        finish(path, recording)
    assert journal_of(path).read_bytes() == before


@pytest.mark.parametrize("catalog", [5, {}, {"probes": [5]}, {"probes": {}, "interpreter": 3}])
def test_a_journal_that_does_not_say_what_it_was_measured_with_is_refused(recording, path, catalog):
    stopped(recording, path, after=1)
    change(path, lambda header: header.update(catalog=catalog))
    with pytest.raises(UsageError, match="does not say"):
        finish(path, recording)


@pytest.mark.parametrize(
    "edit",
    [
        {"pairs": 5},
        {"settings": {"rounds": "many"}},
        {"settings": {"unheard_of": 1}},
        {"axes": {"shapes": [[-4]]}},
        {"axes": None},
    ],
    ids=str,
)
def test_a_request_of_another_form_is_refused(recording, path, edit):
    stopped(recording, path, after=1)
    change(path, lambda header: header["request"].update(edit))
    with (
        closing(resume.reopen(path)) as journal,
        pytest.raises(UsageError, match="another dlprof"),
    ):
        resume.request_of(journal, ("run",))


def test_a_session_that_is_there_stays_until_something_is_measured(recording, path):
    run(recording, path)
    before = path.read_bytes()
    stopped(recording, path, after=0)
    assert path.read_bytes() == before
    assert not journal_of(path).exists()


def test_a_session_that_cannot_be_written_is_refused_before_anything_is_measured(
    recording, tmp_path
):
    with pytest.raises(UsageError, match="Is a directory"):
        measurement_of(recording, tmp_path)


def test_a_session_that_can_no_longer_be_written_is_in_its_journal(recording, path, monkeypatch):
    def full(*_):
        raise UsageError("cannot write session.json: No space left on device")

    def judge(*_):
        monkeypatch.setattr(sessions, "write", full)
        return []

    monkeypatch.setattr(measure, "find", judge)
    with pytest.raises(Unsaved, match=r"is in .*session\.json\.journal"):
        run(recording, path)
    with closing(Journal.resume(journal_of(path))) as journal:
        assert all(len(journal.answers(case)) == 4 for case in range(10))


def test_a_stop_while_rules_look_loses_only_what_they_find(recording, path, monkeypatch):
    monkeypatch.setattr(measure, "find", lambda *_: stop())
    with pytest.raises(KeyboardInterrupt):
        run(recording, path)
    found = content(path)
    assert found["complete"]
    assert {result["status"] for result in found["results"]} == {"ok"}
    assert found["findings"] == []


def test_a_run_of_which_a_part_means_nothing_keeps_no_journal(recording, path):
    measurement = measurement_of(recording, path, is_resumable=False)
    with closing(measurement), measure.running(measurement) as runner:
        runner.round(0, {0, 1})
    assert not content(path)["complete"]
    assert not journal_of(path).exists()
