"""``dlprof gate`` on recorded answers: exact, without a process."""

import contextlib
import json
import sys
from unittest.mock import patch

import pytest
from command_line import content, dlprof, replay
from recordings import NUMPY_TORCH
from replay import Recording, ReplayedWorker

from dlprof.runner import worker_client

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
    """Write the recording with one case slower by a ratio."""

    def written(ratio):
        first, *lines = NUMPY_TORCH.read_text().splitlines()
        codes = [case["code"] for case in json.loads(first)["cases"]]
        answers = [json.loads(line) for line in lines]
        for line in answers:
            if codes[line["of"]] == SLOWER and "host_time" in line["answer"]["parts"]:
                times = line["answer"]["parts"]["host_time"]
                times["samples_ns"] = [ratio * sample for sample in times["samples_ns"]]
        path = tmp_path / "slower.jsonl"
        path.write_text("\n".join([first, *map(json.dumps, answers)]))
        return path

    return written


@pytest.fixture
def python(tmp_path):
    """Return another name of this interpreter."""

    def made(name):
        path = tmp_path / name
        path.symlink_to(sys.executable)
        return path

    return made


@pytest.fixture
def sides(python):
    """Return options with two names of one interpreter."""
    return ("--base-python", python("a"), "--head-python", python("b"))


@contextlib.contextmanager
def both_replayed(files):
    """Let the workers of each interpreter answer from their own recording."""
    recordings = {str(python): Recording(file) for python, file in files.items()}
    start = lambda python, _: ReplayedWorker(recordings[python])  # noqa: E731
    with patch.object(worker_client, "start", start):
        yield


def words_of(path):
    cases = content(path)["cases"]
    return {case["case"]["code"]: [one["word"] for one in case["times"]] for case in cases}


def test_a_slower_case_is_found_and_equal_ones_are_cleared(tmp_path, scenario, python, slower):
    base, head, report = python("old"), python("new"), tmp_path / "report.json"
    words = ("--base-python", base, "--head-python", head, "--json", report)
    with both_replayed({base: NUMPY_TORCH, head: slower(1.2)}):
        done = dlprof("gate", scenario, *words)
    assert done.code == 1, done.out + done.err
    words = words_of(report)
    assert words.pop(SLOWER) == ["SLOWER"]
    assert {word for case in words.values() for word in case} == {"SAME"}


@pytest.mark.parametrize(("expected", "code"), [("no error", 0), ("error", 1)])
def test_what_the_scenario_expects_is_expected_of_head(tmp_path, sides, expected, code):
    scenario, report = tmp_path / "expecting.toml", tmp_path / "report.xml"
    scenario.write_text(SCENARIO + f'expect = ["{expected}"]\n', encoding="utf-8")
    done = replay("gate", scenario, *sides, "--junit", report)
    assert done.code == code, done.out + done.err
    assert f'name="{expected}"' in report.read_text(encoding="utf-8")


# Command lines without sense

TWO = ("--base-python", "{python}", "--head-python", "{python}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("gate", "{scenario}", *TWO[:2]), "name the two sides"),
        (("gate", "a.json", "b.json", "--budget", "0"), "leave --budget out"),
        (("gate", "{scenario}", *TWO, "-o", "{steps}"), "folder"),
        (("gate", "{scenario}", *TWO, "--fail-on", "dangling"), "needs the diagnosis"),
        (("gate", "{steps}", *TWO), "has steps"),
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
