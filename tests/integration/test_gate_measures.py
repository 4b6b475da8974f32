"""``dlprof gate`` with two interpreters: measured in turns, planted faults found, nothing lost."""

import json
import signal
import sys

import pytest
from command_line import PROBE_FILES, content, dlprof, ended, running, signal_group, wait_until


@pytest.fixture
def scenario(tmp_path):
    """Write a scenario for a probe of the test files, and return its path."""

    def write(probe="spun"):
        path = tmp_path / f"{probe}.toml"
        path.write_text(
            f'title = "Slower"\nquestion = "Is it slower?"\npairs = ["{probe}->{probe}"]\n'
            f'shapes = ["64"]\nprobes = ["{PROBE_FILES / probe}.py"]\n'
            f"sample_ms = 2\ndiagnose = false\n",
            encoding="utf-8",
        )
        return path

    return write


@pytest.fixture
def python(tmp_path):
    """Return an interpreter with these variables set."""

    def made(name, **variables):
        path = tmp_path / name
        lines = [f"export {key}={value}\n" for key, value in variables.items()]
        path.write_text(f'#!/bin/sh\n{"".join(lines)}exec {sys.executable} "$@"\n', "utf-8")
        path.chmod(0o755)
        return path

    return made


def gate(scenario, base, head, *words):
    return dlprof("gate", scenario, "--base-python", base, "--head-python", head, *words)


def test_a_slowdown_is_found_in_two_passes_and_everything_is_kept(tmp_path, scenario, python):
    kept, report = tmp_path / "kept", tmp_path / "report.json"
    slow = python("new", DLPROF_TEST_SPIN=300)
    done = gate(scenario(), python("old"), slow, "-o", kept, "--json", report)
    assert done.code == 1, done.out + done.err
    cases = json.loads(report.read_text(encoding="utf-8"))["cases"]
    words = {case["case"]["import"]: [one["word"] for one in case["times"]] for case in cases}
    assert words == {"view": ["SLOWER"], "copy": ["SLOWER"]}
    names = ["base-again.json", "base.json", "head-again.json", "head.json"]
    assert sorted(path.name for path in kept.iterdir()) == names
    for name in names:
        session = content(kept / name)
        assert session["complete"]
        counts = [len(result["host_time"]["processes"]) for result in session["results"]]
        assert session["rounds"] == max(counts) >= 8
        assert str(kept / name) in done.err


@pytest.mark.nightly
def test_equal_interpreters_raise_no_alarm(scenario, python):
    done = gate(scenario(), python("old"), python("new"), "--budget", 20)
    assert done.code in (0, 3), done.out + done.err
    assert "SLOWER" not in done.out


@pytest.mark.parametrize(("variables", "code"), [({}, 0), ({"DLPROF_TEST_COPIES": 1}, 1)])
def test_a_view_or_copy_by_the_address_of_the_array_is_no_regression_unless_it_always_copies(
    scenario, python, variables, code
):
    sides = (
        python("old", DLPROF_TEST_PLACE="aligned"),
        python("new", DLPROF_TEST_PLACE="sliced", **variables),
    )
    done = gate(scenario("addressed"), *sides, "--fail-on", "warning", "--unsure", "pass")
    assert done.code == code, done.out + done.err
    assert ("HEAD is worse" in done.said) == bool(code)


def test_a_base_that_can_load_nothing_is_no_pass(scenario, python):
    broken = python("old", DLPROF_TEST_BREAK="import")
    done = gate(scenario(), broken, python("new"), "--unsure", "pass", "--budget", 0)
    assert done.code == 4, done.out + done.err
    assert "ImportError: libnothing.so" in done.err


@pytest.mark.nightly
def test_a_crash_beside_other_conversions_is_seen_again_beside_them(scenario, python):
    fragile = python("new", DLPROF_TEST_BREAK="company")
    done = gate(scenario(), python("old"), fragile, "--unsure", "pass", "--budget", 60)
    assert done.code == 1, done.out + done.err
    assert "crashed after other conversions" in done.said


def has_answers(kept):
    sides = kept / "base.json", kept / "head.json"
    return all(side.is_file() and '"answer"' in side.read_text("utf-8") for side in sides)


def test_ctrl_c_keeps_what_was_measured(tmp_path, scenario, python):
    kept = tmp_path / "kept"
    words = ("--base-python", python("old"), "--head-python", python("new"), "-o", kept)
    with running("gate", scenario(), *words) as process:
        wait_until(lambda: has_answers(kept), "both sides have answered")
        signal_group(process, signal.SIGINT)
        done = ended(process)
    assert done.code == 130, done.err
    assert "dlprof compare" in done.err
    assert not content(kept / "base.json")["complete"]
    assert not content(kept / "head.json")["complete"]
