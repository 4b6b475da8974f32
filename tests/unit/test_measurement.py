"""A run from request to session: stored, judged, stopped, killed and resumed, by replay."""

import itertools
import json
from contextlib import closing, suppress
from unittest.mock import patch

import pytest
from builders import make_catalog, make_probe_info, make_way
from recordings import NUMPY_TORCH, measurement_of
from replay import replayed
from scripted_workers import ScriptedWorkers

from dlprof.errors import UsageError
from dlprof.measuring.judged import load
from dlprof.runner import worker_client
from dlprof.runner.measurement import Measurement
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Axes, Request, Settings

TIMES = {"created", "wall_s", "foreign_cores"}
REQUESTS = 70


@pytest.fixture
def path(tmp_path):
    return tmp_path / "session.json"


@pytest.fixture
def recording():
    with replayed(NUMPY_TORCH) as recording:
        yield recording


def run(recording, path):
    with closing(measurement_of(recording, path)) as measurement:
        measurement.run()
    return load(path)


def content(session):
    return session.model_dump(exclude=TIMES)


def asked(recording):
    """Count the requests to measure a case."""
    return sum(request["do"] == "case" for request in recording.asked)


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


def stopped(path, after):
    with replayed(NUMPY_TORCH) as recording, suppress(KeyboardInterrupt):
        before_each(recording, lambda number: stop() if number == after else None)
        run(recording, path)


def test_a_whole_run_is_one_file_of_answers_and_is_judged_on_reading(recording, path):
    found = run(recording, path)
    assert found.complete
    assert {result.status for result in found.results} == {"ok"}
    assert all(result.rounds == [0, 1, 2] for result in found.results)
    assert found.findings
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("after", [1, 9, 29, 30, 39])
def test_a_killed_run_resumes_as_if_it_had_not_been_killed(path, tmp_path, after):
    left = []  # the file that a kill before each request would leave
    with replayed(NUMPY_TORCH) as recording:
        before_each(recording, lambda _: left.append(path.read_bytes()))
        whole = run(recording, path)
    assert len(left) == REQUESTS
    killed = tmp_path / "killed.json"
    killed.write_bytes(left[after] + b'{"of": 3, "rou')
    with replayed(NUMPY_TORCH) as recording:
        skipped = tmp_path / "left.json"
        skipped.write_bytes(left[after])
        recording.skip(skipped)
        assert content(run(recording, killed)) == content(whole)
        # The look that a process takes after its times is not repeated without them.
        assert REQUESTS - 2 * after <= asked(recording) <= REQUESTS - after


def test_a_stopped_run_is_marked_and_the_same_command_finishes_it(path):
    stopped(path, after=15)
    found = load(path)
    assert not found.complete
    assert 0 < sum(len(result.rounds) for result in found.results) < 15  # others are looks
    with replayed(NUMPY_TORCH) as recording:
        assert run(recording, path).complete
        assert REQUESTS - 2 * 15 <= asked(recording) <= REQUESTS - 15


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda header: header["environment"].update(python="3.1.0"), "python was 3.1.0"),
        (lambda header: header["environment"].update(machine_id="a", boot_id="b"), "machine"),
        (lambda header: header["environment"]["packages"].update(torch="1.0"), "packages was"),
        (lambda header: header["request"]["settings"].update(rounds=9), "other cases or options"),
        (lambda header: header["cases"].append({}), "other cases or options"),
    ],
)
def test_a_different_run_is_not_resumed(recording, path, edit, reason):
    stopped(path, after=15)
    first, rest = path.read_text().split("\n", 1)
    header = json.loads(first)
    edit(header)
    path.write_text(f"{json.dumps(header)}\n{rest}")
    before = path.read_bytes()
    with pytest.raises(UsageError, match=f"holds another run: .*{reason}.*with -o"):
        run(recording, path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["important notes\n", '{"schema": "dlprof.trace/1"}\n'])
def test_a_file_with_other_content_is_not_touched(recording, path, text):
    path.write_text(text)
    with pytest.raises(UsageError, match="name another file with -o"):
        run(recording, path)
    assert path.read_text() == text


def test_an_unwritable_file_is_refused_before_the_first_measurement(recording, tmp_path):
    with pytest.raises(UsageError, match="Is a directory"):
        measurement_of(recording, tmp_path)


def test_two_runs_cannot_write_one_file(recording, path):
    with (
        closing(measurement_of(recording, path)),
        pytest.raises(UsageError, match="another run writes"),
    ):
        measurement_of(recording, path)


def ordered(word, **evidence):
    return {"ordering": {"verdict": word, "evidence": evidence}}


@pytest.mark.parametrize(
    ("order", "paths", "expected"),
    [
        ("host-sync", (), ("torch.back(x)", "unordered")),
        ("stream-ordered", (), None),
        ("host-sync", ("*",), None),
    ],
)
def test_the_way_back_is_measured_if_no_path_does_without_a_wait(path, order, paths, expected):
    there, back = (
        make_way(name, code=f"{framework}.{name}({{x}})", promise="view")
        for framework, name in (("cupy", "there"), ("torch", "back"))
    )
    devices = {"devices": ("cuda",)}
    catalog = make_catalog(
        make_probe_info("torch", imports=[back], **devices),
        make_probe_info("cupy", imports=[there], **devices),
        no_cuda=None,
    )
    gives = {"there": ordered(order, waits_for_later=True), "back": ordered("unordered")}
    settings = Settings(rounds=1, alignment=False)
    axes = Axes(devices=("cuda",))
    request = Request((("torch", "cupy"),), axes, globs=paths, settings=settings)
    workers = ScriptedWorkers(gives=gives)
    with (
        patch.object(worker_client, "start", workers),
        closing(Measurement(request, catalog, path, Watcher())) as measurement,
    ):
        measurement.run()
    found = load(path).way_back
    assert (found and (found.code, found.order)) == expected
