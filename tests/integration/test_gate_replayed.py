"""``dlprof gate`` and ``dlprof calibrate`` on recorded answers: exact, and without a process."""

import contextlib
import json
import sys
from xml.etree import ElementTree

import pytest
from command_line import content, dlprof, replay
from recordings import NUMPY_TORCH

from dlprof.runner import worker_client
from dlprof.runner.replay import Recording, ReplayedWorker

SCENARIO = """
title = "Recorded"
question = "Is it slower?"
pairs = ["numpy->torch"]
shapes = ["64"]
rounds = 12
diagnose = false
"""
SLOWER = "torch.from_numpy(x)"


@pytest.fixture(scope="module")
def scenario(tmp_path_factory):
    path = tmp_path_factory.mktemp("gate") / "recorded.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


@pytest.fixture
def slower(tmp_path):
    """The recording, with one case that takes so many times as long."""

    def written(ratio):
        first, *lines = NUMPY_TORCH.read_text().splitlines()
        codes = [case["code"] for case in json.loads(first)["cases"]]
        answers = [json.loads(line) for line in lines]
        for line in answers:
            if codes[line["of"]] == SLOWER and "host_time" in line["answer"]["parts"]:
                times = line["answer"]["parts"]["host_time"]
                times["samples_ns"] = [ratio * sample for sample in times["samples_ns"]]
        path = tmp_path / "slower.journal"
        path.write_text("\n".join([first, *map(json.dumps, answers)]))
        return path

    return written


@pytest.fixture(scope="module")
def measured(scenario):
    path = scenario.with_name("measured.json")
    assert replay("run", scenario, "-o", path).code == 0
    return content(path)


@pytest.fixture
def baseline(tmp_path, measured):
    """Write the baseline with changes."""

    def write(**changes):
        path = tmp_path / "baseline.json"
        path.write_text(json.dumps({**measured, **changes}), encoding="utf-8")
        return path

    return write


@pytest.fixture
def python(tmp_path):
    """A name of this interpreter."""

    def made(name):
        path = tmp_path / name
        path.symlink_to(sys.executable)
        return path

    return made


@pytest.fixture
def sides(python):
    """Two interpreters that are one."""
    return ("--base-python", python("a"), "--head-python", python("b"))


@contextlib.contextmanager
def both_replayed(journals):
    """Inside, the workers of each interpreter answer from a journal of their own."""
    recordings = {str(python): Recording(journal) for python, journal in journals.items()}
    start = lambda python, _: ReplayedWorker(recordings[python])  # noqa: E731
    with worker_client.started_by(start):
        yield


def words_of(path):
    cases = content(path)["cases"]
    return {case["case"]["code"]: [one["word"] for one in case["times"]] for case in cases}


# Two interpreters


def test_a_slower_case_is_found_and_equal_ones_are_cleared(tmp_path, scenario, python, slower):
    base, head, report = python("old"), python("new"), tmp_path / "report.json"
    words = ("--base-python", base, "--head-python", head, "--json", report)
    with both_replayed({base: NUMPY_TORCH, head: slower(1.2)}):
        done = dlprof("gate", scenario, *words)
    assert done.code == 1, done.out + done.err
    words = words_of(report)
    assert words.pop(SLOWER) == ["SLOWER"]
    assert {word for case in words.values() for word in case} == {"SAME"}


def test_a_pair_needs_no_scenario_and_too_few_rounds_are_never_a_pass(sides):
    words = ("--shape", 64, *sides, "--budget", 0, "--unsure", "pass")
    done = replay("gate", "numpy", "torch", *words)
    assert done.code == 3
    assert "numpy → torch" in done.out
    assert "a decision on" in done.err


@pytest.mark.parametrize(("expected", "code"), [("no error", 0), ("error", 1)])
def test_what_the_scenario_expects_is_expected_of_head(tmp_path, sides, expected, code):
    scenario, report = tmp_path / "expecting.toml", tmp_path / "report.xml"
    scenario.write_text(SCENARIO + f'expect = ["{expected}"]\n', encoding="utf-8")
    done = replay("gate", scenario, *sides, "--junit", report)
    assert done.code == code, done.out + done.err
    assert f'name="{expected}"' in report.read_text(encoding="utf-8")


# A session of before


def test_a_slowdown_since_an_older_baseline_is_found_in_two_passes(
    tmp_path, scenario, baseline, slower
):
    kept = tmp_path / "kept"
    old = baseline(schema="dlprof.session/1.0", references=[{"round": 0, "memcpy_ns": 1.0}])
    words = ("--baseline", old, "--head-python", sys.executable, "-o", kept)
    done = replay("gate", scenario, *words, journal=slower(2))
    assert done.code == 1, done.out + done.err
    assert SLOWER in done.said
    assert sorted(file.name for file in kept.iterdir()) == ["head-again.json", "head.json"]


def test_equal_code_is_no_slower_than_the_baseline(scenario, baseline):
    done = replay("gate", scenario, "--baseline", baseline())
    assert done.code == 0, done.out + done.err


def other(measured, **changes):
    return {**measured["environment"], **changes}


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (lambda m: {"environment": other(m, cpu="Z80")}, 3, "cpu Z80"),
        (lambda m: {"environment": other(m, python="3.6.1")}, 3, "--any-python"),
        (lambda m: {"results": []}, 4, "holds no case"),
        (lambda m: {"schema": "dlprof.session/2"}, 2, "newer dlprof"),
    ],
    ids=["machine", "python", "empty", "schema"],
)
def test_a_baseline_that_makes_no_sense_is_told_before_anything_is_measured(
    scenario, baseline, measured, change, code, said
):
    done = replay("gate", scenario, "--baseline", baseline(**change(measured)), "--unsure", "pass")
    assert (done.code, done.out) == (code, ""), done.err
    assert said in done.sentence()


@pytest.mark.parametrize(
    ("change", "words", "code"),
    [
        (lambda m: {"environment": other(m, cpu="Z80")}, (), 3),
        (lambda m: {}, ("--head-python", "/bin/false"), 2),
    ],
    ids=["another machine", "no Python"],
)
def test_a_gate_that_was_refused_is_an_error_in_every_report(
    tmp_path, scenario, baseline, measured, change, words, code
):
    names = ("json", "junit", "markdown")
    options = [word for name in names for word in (f"--{name}", tmp_path / name)]
    run = dlprof if words else replay
    done = run(
        *("gate", scenario, "--baseline", baseline(**change(measured)), *words, *options),
        "--github", GITHUB_STEP_SUMMARY=tmp_path / "summary",
    )  # fmt: skip
    assert done.code == code, done.err
    said = done.sentence().removeprefix("dlprof: ")
    found = {name: (tmp_path / name).read_text(encoding="utf-8") for name in (*names, "summary")}
    assert ElementTree.fromstring(found["junit"]).find(".//error").get("message") == said
    assert json.loads(found["json"])["exit_code"] == code
    assert json.loads(found["json"])["answers"] == [said]
    assert said[:20] in found["markdown"]
    assert said[:20] in found["summary"]
    assert done.out.startswith("::error")


# The noise of a machine


@pytest.fixture(scope="module")
def noise(scenario):
    path = scenario.with_name("recorded.noise.json")
    done = replay("calibrate", scenario, "--budget", 1)
    assert done.code == 0, done.out + done.err
    assert str(path) in done.err
    return path


def test_every_case_has_its_noise(noise):
    found = content(noise)
    assert (found["schema"], len(found["cases"])) == ("dlprof.noise/1", 10)
    assert all(one["processes"] >= 16 and one["spread"] > 0 for one in found["cases"])


def test_the_gate_raises_its_floors_by_the_noise_and_says_so(tmp_path, scenario, noise, sides):
    found = content(noise)
    found["cases"][0]["floor"] = 0.22
    path = tmp_path / "noise.json"
    path.write_text(json.dumps(found), encoding="utf-8")
    done = replay("gate", scenario, *sides, "--noise", path, "--full")
    assert done.code == 0, done.out + done.err
    assert f"{found['cases'][0]['case']['code']} 22 %" in done.said


# What makes no sense

TWO = ("--base-python", "{python}", "--head-python", "{python}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("gate", "{scenario}", "--baseline", "a.json", *TWO), "name what to compare"),
        (("gate", "a.json", "b.json", "--budget", "0"), "leave --budget out"),
        (("gate", "{scenario}", *TWO, "-o", "{steps}"), "folder"),
        (("gate", "{scenario}", *TWO, "--fail-on", "dangling"), "needs the diagnosis"),
        (("gate", "{steps}", *TWO), "has steps"),
        (("calibrate", "{steps}"), "has steps"),
        (("calibrate", "torch", "numpy"), "with -o"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_told_in_one_sentence(
    tmp_path, scenario, words, said
):
    steps = tmp_path / "steps.toml"
    steps.write_text(
        'title = "a"\nquestion = "b?"\nshapes = ["4"]\n[[step]]\nframework = "torch"\n',
        encoding="utf-8",
    )
    names = {"steps": steps, "scenario": scenario, "python": sys.executable}
    done = replay(*(word.format(**names) for word in words))
    assert done.code == 2
    assert said in done.sentence()
