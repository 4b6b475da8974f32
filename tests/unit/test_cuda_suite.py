"""The CUDA suite where there is no device: what it would run, what it says, and what it packs."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import cuda_suite
import cuda_wheels
from cuda_steps import COUNTED, ENVIRONMENT, SELFTEST_SUM, Suite, matching, session_line, steps
from step_runner import FAILED, NOT_RUN, OK, Done

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
NO_DRIVER = "there is no CUDA driver: libcuda.so.1 cannot be loaded"


@pytest.fixture
def suite(tmp_path):
    return Suite("python", tmp_path)


def know(suite, no_cuda):
    suite.file(ENVIRONMENT).write_text(json.dumps({"no_cuda": no_cuda}), encoding="utf-8")


def done(name, outcome):
    return Done(name, outcome, 0, 1.0, "", ())


def test_without_a_device_every_step_says_so(suite):
    know(suite, NO_DRIVER)
    assert {step.why_not() for step in steps(suite)} == {f"no CUDA device: {NO_DRIVER}"}


def test_where_the_environment_could_not_be_looked_at_nothing_is_run(suite):
    reasons = {step.why_not() for step in steps(suite)}
    assert reasons == {"whether there is a CUDA device is not known"}


def test_with_a_device_all_but_reports_can_be_run(suite):
    know(suite, None)
    refused = {step.name: step.why_not() for step in steps(suite) if step.why_not()}
    assert refused == {
        "html-matrix-loaded": "there is no matrix-loaded.json",
        "ticket-matrix-loaded": "there is no matrix-loaded.json",
    }


def test_on_the_host_no_device_is_asked_for(tmp_path):
    rehearsal = Suite("python", tmp_path, "cpu")
    assert rehearsal.no_device() is None
    commands = [" ".join(step.command) for step in steps(rehearsal)]
    assert not any("--device cuda" in command for command in commands)
    assert any("--device cpu" in command for command in commands)


def test_names_of_steps_differ(suite):
    names = [step.name for step in steps(suite)]
    assert len(names) == len(set(names))


def test_every_file_of_the_tests_on_a_device_is_in_a_step(suite):
    given = {word for step in steps(suite) for word in step.command}
    files = {f"tests/cuda/{path.name}" for path in (ROOT / "tests" / "cuda").glob("test_*.py")}
    assert files <= given


def test_scenarios_of_the_steps_are_there(suite):
    words = [word for step in steps(suite) for word in step.command]
    files = [Path(word) for word in words if word.endswith(".toml")]
    assert files
    assert all(file.is_file() for file in files)


def test_tests_that_passed_are_told_by_their_last_line(tmp_path):
    log = tmp_path / "log"
    log.write_text("1 passed\n=== 3 failed, 12 passed in 1.20s ===\n", encoding="utf-8")
    assert matching(COUNTED)(log) == "3 failed, 12 passed in 1.20s"


def test_tests_that_were_skipped_are_told_by_their_reason(tmp_path):
    log = tmp_path / "log"
    log.write_text(
        "SKIPPED [1] tests/cuda/test_one.py:25: nvbench is not installed: pip install cuda-bench\n"
        "=== 1 skipped in 1.26s ===\n",
        encoding="utf-8",
    )
    assert matching(COUNTED)(log) == "nvbench is not installed: pip install cuda-bench"


def test_a_selftest_is_told_by_its_sum(tmp_path):
    log = tmp_path / "log"
    log.write_text(
        "20 of 20 faults found, 0 false alarms on 6 controls.\nTimer 30 ns\n", encoding="utf-8"
    )
    assert matching(SELFTEST_SUM)(log) == "20 of 20 faults found, 0 false alarms on 6 controls."


def test_a_session_is_told_by_its_results_and_findings(tmp_path):
    path = tmp_path / "session.json"
    session = {
        "results": [
            {"status": "ok", "ordering": {"verdict": "host-sync"}},
            {"status": "ok", "ordering": None},
            {"status": "crashed"},
        ],
        "findings": [{"severity": "warning"}, {"severity": "warning"}],
        "complete": False,
    }
    path.write_text(json.dumps(session), encoding="utf-8")
    assert session_line(path)(tmp_path) == ("2 ok, 1 crashed; 1 host-sync; 2 warning; not complete")


def test_without_a_session_the_step_has_the_word(tmp_path):
    log = tmp_path / "log"
    log.write_text("dlprof: tensorflow is not installed\n", encoding="utf-8")
    assert session_line(tmp_path / "none.json")(log) == "dlprof: tensorflow is not installed"


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([OK, NOT_RUN], 0),
        ([OK, FAILED], 1),
        ([NOT_RUN, NOT_RUN], 4),
    ],
)
def test_the_exit_code_says_what_became_of_it(outcomes, code):
    found = [done("environment", OK), *(done(str(n), one) for n, one in enumerate(outcomes))]
    assert cuda_suite.exit_code(found) == code


def test_a_step_that_nobody_knows_is_refused(suite):
    with pytest.raises(SystemExit, match="there is no step nonsense: known are"):
        cuda_suite.chosen(suite, "selftest,nonsense")


def test_only_what_is_asked_for_is_run_in_the_order_of_the_suite(suite):
    assert [step.name for step in cuda_suite.chosen(suite, "matrix,selftest")] == [
        "selftest",
        "matrix",
    ]


def test_wheels_are_installed_without_an_index_and_without_their_needs(tmp_path):
    (tmp_path / "one-1-py3-none-any.whl").touch()
    command = cuda_wheels.install_command("python", tmp_path, tmp_path / "site")
    assert {"--no-index", "--no-deps", str(tmp_path / "one-1-py3-none-any.whl")} <= set(command)


def test_wheels_are_not_added_to_others(tmp_path):
    (tmp_path / "one-1-py3-none-any.whl").touch()
    with pytest.raises(cuda_wheels.Unfit, match="two versions"):
        cuda_wheels.prepare(tmp_path)


def test_more_than_can_be_carried_is_refused(tmp_path, monkeypatch):
    def download(command, check):
        (tmp_path / "large-1-py3-none-any.whl").write_bytes(b"12345678")

    monkeypatch.setattr(subprocess, "run", download)
    monkeypatch.setattr(cuda_wheels, "MOST_BYTES", 7)
    with pytest.raises(cuda_wheels.Unfit, match="more than"):
        cuda_wheels.prepare(tmp_path)


def test_a_run_without_a_device_ends_at_once_with_everything_in_its_folder(tmp_path, monkeypatch):
    folder, archive = tmp_path / "found", tmp_path / "found.tar.gz"
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        f"from dlprof.worker import cuda\ncuda.driver_devices = lambda: {NO_DRIVER!r}\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", f"{hidden}:{ROOT}")
    command = [sys.executable, str(ROOT / "benchmarks" / "cuda_suite.py"), str(folder)]
    ran = subprocess.run(
        [*command, "--archive", str(archive)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 4, ran.stderr
    assert ran.stdout == (folder / "table.txt").read_text(encoding="utf-8")
    assert f"no CUDA device: {NO_DRIVER}" in ran.stdout
    with tarfile.open(archive) as file:
        assert {"found/environment.json", "found/steps.json", "found/table.txt"} <= set(
            file.getnames()
        )
