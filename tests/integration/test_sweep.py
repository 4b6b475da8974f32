"""``dlprof run SCENARIO`` measures a scenario, answers it, and checks its expectations."""

import re

import pytest
from command_line import content, dlprof, replay
from recordings import THERE_AND_BACK

HEAD = 'title = "A fake problem"\nquestion = "Is it one?"\n'
PAIR = 'pairs = ["numpy->torch"]\nshapes = ["64"]\n'


@pytest.fixture
def sweep(tmp_path):
    """Run a scenario with this text and further options."""

    def run(text, *words, run=replay, **changes):
        path = tmp_path / "scenario.toml"
        path.write_text(HEAD + text)
        output = () if "--dry-run" in words else ("-o", tmp_path / "s.json")
        return run("run", path, *words, *output, **changes)

    return run


def test_a_scenario_is_measured_and_reported_with_its_question(sweep, tmp_path):
    run = sweep(PAIR + 'expect = ["no error"]\n')
    assert run.code == 0, run.err
    assert run.out.startswith("A fake problem")
    assert "fastest" in run.out
    session = content(tmp_path / "s.json")
    assert {result["status"] for result in session["results"]} == {"ok"}
    assert [one["verdict"] for one in session["expectations"]] == ["met"]
    assert dlprof("report", tmp_path / "s.json").out == run.out


def test_a_dry_run_says_what_would_run_and_measures_nothing(sweep, tmp_path):
    run = sweep(PAIR + "rounds = 2", "--dry-run")
    assert run.code == 0, run.err
    assert "paths: 10, arrays: 1\n" in run.out
    assert "10 cases, 2 rounds" in run.out
    assert not (tmp_path / "s.json").exists()


# Expectations


@pytest.mark.parametrize("expect", ["no DLP012", "DLP001 on numpy->*"])
def test_what_cannot_be_checked_is_exit_code_three(sweep, expect):
    run = sweep(PAIR + f'expect = ["{expect}"]\n', "--quick")
    assert run.code == 3
    assert "not checked" in run.out
    assert expect in run.sentence()


def test_a_finding_that_is_not_there_is_exit_code_one(sweep):
    run = sweep(PAIR + 'expect = ["DLP016"]\n')
    assert run.code == 1
    assert re.search(r"DLP016 +not met", run.out)
    assert "DLP016" in run.sentence()


# Answers about loops

LOOP = """\
pairs = ["numpy->torch"]
paths = ["torch.tensor(x)", "torch.from_numpy(x)"]
shapes = ["16x16"]
placement = ["in-loop", "hoisted"]
diagnose = false
"""


def test_a_loop_answers_whether_it_pays_to_convert_before_it(sweep, tmp_path):
    run = sweep(LOOP, recording=THERE_AND_BACK)
    assert run.code == 0, run.err
    assert "torch.add(x, 1)" in run.out
    placements = [one["placement"] for one in content(tmp_path / "s.json")["results"]]
    assert all(one["in_loop"]["median_ns"] > 0 for one in placements)
