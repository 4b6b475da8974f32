"""Bad input gets one clear sentence and the documented exit code, and costs nothing."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import threading
from pathlib import Path

import pytest
from command_line import (
    COMMAND,
    FAKE,
    PROBE_FILES,
    QUICK,
    content,
    dlprof,
    environment,
)

from dlprof.device.cuda import driver_devices
from dlprof.errors import SessionError
from dlprof.session.model import load

pytestmark = pytest.mark.integration

RUN = ("run", "fake", "fake", "--probe", FAKE, *QUICK, "--path", "array->view")

without_gpu = pytest.mark.skipif(isinstance(driver_devices(), int), reason="a GPU is here")


# The command line


def test_a_framework_that_is_not_installed_is_answered_with_the_pip_command(tmp_path):
    run = dlprof("run", "missing", "fake", "--probe", FAKE, *QUICK, state=tmp_path)
    assert run.code == 4
    assert run.sentence() == "dlprof: missing is not installed: pip install nobody-has-it"


def test_a_shape_too_large_for_memory_is_skipped_with_the_sizes(tmp_path):
    huge = ("--shape", "1048576x1048576", "--path", "*->asarray")
    run = dlprof("run", "numpy", "numpy", *huge, state=tmp_path)
    assert run.code == 4
    assert re.match(
        r"dlprof: nothing could be measured: needs about [\d,]+\.0 GiB of memory"
        r" \([\d.]+ arrays? of 4,096\.0 GiB",
        run.sentence(),
    )


def test_a_shape_too_large_for_memory_costs_the_others_nothing(tmp_path):
    path = tmp_path / "session.json"
    shapes = ("--shape", "1048576x1048576,16", "--path", "*->asarray", "--quick")
    assert dlprof("run", "numpy", "numpy", *shapes, "-o", path, state=tmp_path).code == 0
    assert [result["status"] for result in content(path)["results"]] == ["skipped", "ok"]


@without_gpu
@pytest.mark.parametrize("verb", [("run", "numpy", "numpy"), ("selftest",)], ids=" ".join)
def test_no_gpu_with_device_cuda_is_told_in_one_sentence(tmp_path, verb):
    run = dlprof(*verb, "--device", "cuda", state=tmp_path)
    assert run.code == 4
    assert "cuda" in run.sentence()


def test_a_probe_file_given_twice_is_one_probe(tmp_path):
    assert dlprof(*RUN, "--probe", FAKE, state=tmp_path).code == 0


def test_a_folder_that_was_deleted_is_told_in_one_sentence(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    words = ["sh", "-c", 'cd "$0" && rmdir "$0" && exec "$@"', folder, *COMMAND, "probes"]
    here = str(Path(__file__).parents[2])
    done = subprocess.run(
        words,
        env=environment(tmp_path, PYTHONPATH=here),
        timeout=60,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "dlprof: the current folder cannot be used: No such file or directory; change into"
        " another\n"
    )


# Session files


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("good")
    path = folder / "session.json"
    assert dlprof(*RUN, "-o", path, state=folder).code == 0
    return path


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda data: data[: len(data) // 2], "is truncated and cannot be read as a session"),
        (lambda data: b"", "is not JSON and cannot be read as a session"),
        (lambda data: b"\x00\xff\xfe binary", "is not UTF-8 text"),
        (lambda data: b'{"name": "package.json"}', "is not a dlprof session"),
        (lambda data: b"[1, 2, 3]", "is not a dlprof session"),
        (lambda data: b"null", "is not a dlprof session"),
        (lambda data: data.replace(b"session/1", b"session/2"), "was written by a newer dlprof (dlprof.session/2)"),
        (lambda data: data.replace(b"session/1", b"session/" + b"9" * 5000), "is not a dlprof session"),
        (lambda data: b"[" * 200_000, "cannot be read as a session: it is nested too deeply"),
        (lambda data: data.replace(b'"seed": 0', b'"seed": ' + b"9" * 5000), "has more digits than anything measured has"),
        (lambda data: data.replace(b'"evidence": {', b'"evidence": {"a": ' + b"[" * 100 + b"]" * 100 + b", ", 1), "evidence.a: nested too deeply"),
        (lambda data: b'{"schema": "dlprof.session/1"}', "is not a valid session: created: Field required"),
        (lambda data: data.replace(b'"status": "ok"', b'"status": "fine"'), "is not a valid session: results.0.status"),
        (lambda data: data.replace(b'"environment": {', b'"environment": 5, "was": {'), "is not a valid session"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_session_is_refused_in_one_sentence(good, tmp_path, spoil, reason):
    path = tmp_path / "spoiled.json"
    path.write_bytes(spoil(good.read_bytes()))
    with pytest.raises(SessionError) as refused:
        load(path)
    assert reason in str(refused.value)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("words", [("report",), ("run", "--resume")], ids=" ".join)
def test_a_truncated_session_ends_the_command_and_is_left_as_it_is(good, tmp_path, words):
    path = tmp_path / "truncated.json"
    path.write_bytes(good.read_bytes()[:1000])
    run = dlprof(*words, path, state=tmp_path)
    assert run.code == 2
    assert run.sentence().startswith(
        f"dlprof: {path} is truncated and cannot be read as a session: "
    )
    assert path.read_bytes() == good.read_bytes()[:1000]


@pytest.mark.parametrize(
    ("name", "reason"), [("nothing.json", "No such file or directory"), (".", "Is a directory")]
)
def test_a_session_that_cannot_be_opened_is_told_in_one_sentence(tmp_path, name, reason):
    run = dlprof("report", tmp_path / name, state=tmp_path)
    assert run.code == 2
    assert run.sentence().endswith(reason)


def test_a_byte_order_mark_before_a_session_is_none_of_it(good, tmp_path):
    path = tmp_path / "marked.json"
    path.write_bytes(b"\xef\xbb\xbf" + good.read_bytes())
    assert load(path) == load(good)


# Where output goes


@pytest.mark.parametrize(
    ("option", "place", "reason"),
    [
        ("-o", "missing/session.json", "No such file or directory"),
        ("-o", "file/session.json", "Not a directory"),
        ("-o", ".", "Is a directory"),
        ("-o", "loop", "oop"),
        ("--json", "missing/session.json", "No such file or directory"),
        ("--json", ".", "Is a directory"),
        ("--html", "missing/report.html", "No such file or directory"),
        ("--html", ".", "Is a directory"),
    ],
)
def test_an_unwritable_output_is_known_before_anything_is_measured(tmp_path, option, place, reason):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    marker = tmp_path / "measured"
    marked = (
        "run",
        "gate",
        "gate",
        "--probe",
        PROBE_FILES / "gate.py",
        *QUICK,
        "--path",
        "*->hold",
    )
    marker.mkdir()
    run = dlprof(*marked, option, tmp_path / place, state=tmp_path, DLPROF_TEST_GATE=str(marker))
    assert run.code == 2
    assert run.sentence().startswith("dlprof: cannot write ")
    assert reason in run.sentence()
    assert list(marker.iterdir()) == []
    assert run.out == ""


def test_a_folder_that_refuses_new_files_is_told_in_one_sentence(tmp_path):
    run = dlprof(*RUN, "-o", "/proc/session.json", state=tmp_path)
    assert run.code == 2
    assert run.sentence().startswith("dlprof: cannot write /proc/session.json: ")


@pytest.mark.parametrize("option", ["-o", "--json", "--html"])
def test_a_device_is_written_to_and_never_replaced(tmp_path, option):
    null = tmp_path / "null"
    make_null(null)
    run = dlprof(*RUN, option, null, state=tmp_path)
    assert run.code == 0
    assert stat.S_ISCHR(null.stat().st_mode)
    assert [file.name for file in tmp_path.glob(".*")] == []


def make_null(path: Path) -> None:
    """A device like /dev/null that a failing test may destroy."""
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, Path("/dev/null").stat().st_rdev)
        path.write_text("")
    except OSError:
        pytest.skip("no device can be made here")


@pytest.mark.parametrize("option", ["-o", "--json"])
def test_a_pipe_gets_one_whole_session(tmp_path, option):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found = []
    reader = threading.Thread(target=lambda: found.append(json.loads(pipe.read_text())))
    reader.start()
    run = dlprof(*RUN, option, pipe, state=tmp_path)
    reader.join()
    assert run.code == 0
    assert found[0]["complete"] is True
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_json_may_go_to_dev_stdout(tmp_path):
    run = dlprof(*RUN, "--json", "/dev/stdout", state=tmp_path)
    assert run.code == 0
    assert '"schema": "dlprof.session/1"' in run.out
    assert Path("/dev/stdout").is_symlink()


def test_a_link_stays_a_link(tmp_path):
    path, link = tmp_path / "session.json", tmp_path / "link.json"
    link.symlink_to(path)
    assert dlprof(*RUN, "-o", link, state=tmp_path).code == 0
    assert link.is_symlink()
    assert content(path)["complete"] is True


def test_the_mode_of_a_file_that_is_replaced_is_kept(tmp_path):
    path = tmp_path / "session.json"
    path.touch()
    path.chmod(0o600)
    assert dlprof(*RUN, "-o", path, state=tmp_path).code == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_disk_that_is_full_at_the_end_costs_neither_report_nor_session(tmp_path):
    run = dlprof(*RUN, "-o", "/dev/full", state=tmp_path)
    assert run.code == 2
    assert "type(x).from_buffer(x)" in run.out
    start = "dlprof: cannot write /dev/full: No space left on device; the session is in "
    assert run.sentence().startswith(start)
    assert content(Path(run.sentence().removeprefix(start)))["complete"] is True


def test_json_on_stdout_is_one_session_and_nothing_else(tmp_path):
    run = dlprof(*RUN, "--json", "-", state=tmp_path)
    assert run.code == 0
    assert json.loads(run.out)["schema"] == "dlprof.session/1"
    assert run.sentences == []


def test_what_is_printed_of_a_run_is_what_its_file_says(tmp_path):
    path = tmp_path / "session.json"
    run = dlprof(*RUN, "--json", "-", "-o", path, state=tmp_path)
    assert run.out == path.read_text()


@pytest.mark.parametrize("state", ["file/under", "/proc/self/nothing"])
def test_a_state_folder_that_cannot_be_made_is_told_in_one_sentence(tmp_path, state):
    (tmp_path / "file").touch()
    run = dlprof(*RUN, state=tmp_path / state)
    assert run.code == 2
    assert run.sentence().startswith("dlprof: cannot keep the session in ")
    assert run.sentence().endswith("; name a file with -o")


def test_with_an_output_no_state_folder_is_needed(tmp_path):
    (tmp_path / "file").touch()
    assert dlprof(*RUN, "-o", tmp_path / "s.json", state=tmp_path / "file").code == 0


def test_an_odd_thing_among_old_sessions_disturbs_nothing(tmp_path):
    for number in range(25):
        (tmp_path / "dlprof" / f"1999-{number:02}.json").mkdir(parents=True)
    assert dlprof(*RUN, state=tmp_path).code == 0


def test_a_run_does_not_replace_its_session_by_a_table_of_it(tmp_path):
    path = tmp_path / "session.json"
    words = ("run", "fake", "fake", "--probe", FAKE, *QUICK, "-o", path, "--csv", path)
    run = dlprof(*words, state=tmp_path)
    assert run.code == 2
    assert "a session is in it" in run.sentences[-1]
    assert content(path)["complete"]


def test_what_steers_a_terminal_is_escaped_in_a_message(tmp_path):
    run = dlprof("report", "a\x1b[31m\u202eb", state=tmp_path)
    assert run.code == 2
    assert "\x1b" not in run.err
    assert "\\x1b" in run.sentence()


def test_a_session_is_replaced_by_no_report(good, tmp_path):
    session = tmp_path / "kept.json"
    session.write_bytes(good.read_bytes())
    done = dlprof("compare", good, good, "--markdown", session, state=tmp_path)
    assert done.code == 2
    assert "a session is in it" in done.sentence()
    assert session.read_bytes() == good.read_bytes()
