"""``dlprof gate`` with two interpreters: measured in turns, planted faults found, nothing lost."""

from __future__ import annotations

import json
import signal
import sys

import pytest
from command_line import PROBE_FILES, content, dlprof, ended, kill_group, running, wait_until

pytestmark = pytest.mark.integration

SPUN = PROBE_FILES / "spun.py"
SCENARIO = f"""
title = "Spun"
question = "Is it slower?"
pairs = ["spun->spun"]
shapes = ["64"]
probes = ["{SPUN}"]
sample_ms = 2
diagnose = false
"""


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "spun.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


@pytest.fixture
def python(tmp_path):
    """An interpreter that has these variables set."""

    def made(name, **variables):
        path = tmp_path / name
        lines = [f"export {key}={value}\n" for key, value in variables.items()]
        path.write_text(f'#!/bin/sh\n{"".join(lines)}exec {sys.executable} "$@"\n', "utf-8")
        path.chmod(0o755)
        return path

    return made


def gate(tmp_path, scenario, base, head, *words):
    return dlprof(
        "gate", scenario, "--base-python", base, "--head-python", head, *words, state=tmp_path
    )


def words_of(path):
    found = json.loads(path.read_text(encoding="utf-8"))
    return {case["case"]["import"]: [t["word"] for t in case["times"]] for case in found["cases"]}


def test_a_slowdown_is_found_in_two_passes_and_everything_is_kept(tmp_path, scenario, python):
    kept, told = tmp_path / "kept", tmp_path / "told.json"
    done = gate(
        tmp_path, scenario, python("old"), python("new", DLPROF_TEST_SPIN=300), "-o", kept,
        "--json", told,
    )  # fmt: skip
    assert done.code == 1, done.out + done.err
    assert words_of(told) == {"view": ["SLOWER"], "copy": ["SLOWER"]}
    assert "was measured again" in " ".join(done.out.split())
    assert "every case is decided. What was flagged was measured again" in " ".join(
        done.out.split()
    )
    names = ["base-again.json", "base.json", "head-again.json", "head.json"]
    assert sorted(path.name for path in kept.iterdir()) == names
    for name in names:
        session = content(kept / name)
        assert session["complete"]
        counts = [len(result["host_time"]["processes"]) for result in session["results"]]
        assert session["rounds"] == max(counts) >= 8
        assert str(kept / name) in done.err


def test_equal_interpreters_raise_no_alarm(tmp_path, scenario, python):
    told = tmp_path / "told.json"
    done = gate(tmp_path, scenario, python("old"), python("new"), "--json", told, "--budget", 20)
    assert done.code in (0, 3), done.out + done.err
    assert "SLOWER" not in str(words_of(told))


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [("copies", 1, "ownership: view, now copy"), ("crash", 1, "status: ok, now crashed")],
)
def test_a_conversion_that_is_worse_is_a_regression(tmp_path, scenario, python, fault, code, said):
    broken = python("new", DLPROF_TEST_BREAK=fault)
    done = gate(
        tmp_path, scenario, python("old"), broken, "--fail-on", "warning", "--unsure", "pass"
    )
    assert done.code == code, done.out + done.err
    assert said in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("broken", "code", "said"),
    [({}, 0, "the verdicts of 1 case were compared"), ({"DLPROF_TEST_COPIES": 1}, 1, "now copy")],
)
def test_a_view_or_copy_by_the_address_of_the_array_is_no_regression_unless_it_always_copies(
    tmp_path, scenario, python, broken, code, said
):
    text = SCENARIO.replace("spun", "addressed")
    scenario.write_text(text, encoding="utf-8")
    sides = (
        python("old", DLPROF_TEST_PLACE="aligned"),
        python("new", DLPROF_TEST_PLACE="sliced", **broken),
    )
    done = gate(tmp_path, scenario, *sides, "--fail-on", "warning", "--unsure", "pass")
    assert done.code == code, done.out + done.err
    assert said in " ".join(done.out.split())


def test_without_times_to_judge_one_round_is_enough_and_no_time_is_shown(
    tmp_path, scenario, python
):
    slow, kept = python("new", DLPROF_TEST_SPIN=300), tmp_path / "kept"
    done = gate(tmp_path, scenario, python("old"), slow, "--fail-on", "error", "-o", kept)
    assert done.code == 0, done.out + done.err
    assert "HEAD is not worse" in " ".join(done.out.split())
    assert "UNSURE" not in done.out
    assert content(kept / "head.json")["rounds"] == 1


def test_a_gate_without_the_rounds_that_any_slowdown_takes_is_never_a_pass(
    tmp_path, scenario, python
):
    sides = python("old"), python("new")
    done = gate(tmp_path, scenario, *sides, "--unsure", "pass", "--budget", 0)
    assert done.code == 3, done.out + done.err
    assert "no time could be judged" in done.err


def test_a_base_that_can_load_nothing_is_no_pass(tmp_path, scenario, python):
    broken = python("old", DLPROF_TEST_BREAK="import")
    done = gate(tmp_path, scenario, broken, python("new"), "--unsure", "pass", "--budget", 0)
    assert done.code == 4, done.out + done.err
    assert (
        "BASE measured no case that both have: unsupported: ImportError: libnothing.so" in done.err
    )


def test_a_crash_beside_other_conversions_is_seen_again_beside_them(tmp_path, scenario, python):
    fragile = python("new", DLPROF_TEST_BREAK="company")
    done = gate(tmp_path, scenario, python("old"), fragile, "--unsure", "pass", "--budget", 60)
    assert done.code == 1, done.out + done.err
    assert "crashed after other conversions, ok alone" in " ".join(done.out.split())


def test_ctrl_c_keeps_what_was_measured(tmp_path, scenario, python):
    kept = tmp_path / "kept"
    words = ("--base-python", python("old"), "--head-python", python("new"), "-o", kept)
    with running("gate", scenario, *words, state=tmp_path) as process:
        wait_until((kept / "head.json").is_file, "the gate has begun")
        kill_group(process, signal.SIGINT)
        done = ended(process)
    assert done.code == 130, done.err
    assert "dlprof compare" in done.err
    assert not content(kept / "base.json")["complete"]
    assert not content(kept / "head.json")["complete"]


def test_a_pair_needs_no_scenario(tmp_path, python):
    done = dlprof(
        "gate", "spun", "spun", "--probe", SPUN, "--shape", 64, "--path", "array->view",
        "--base-python", python("old"), "--head-python", python("new"), "--budget", 0,
        state=tmp_path,
    )  # fmt: skip
    assert done.code == 3
    assert "spun → spun" in done.out


TWO = ("--base-python", "{old}", "--head-python", "{old}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("{scenario}",), "name what to compare"),
        (("{scenario}", "{scenario}"), "spun.toml is not JSON"),
        (("numpy", "torch", "--shape", "4"), "name what to compare"),
        (("before.json", "after.json"), "cannot read the session before.json"),
        (("{scenario}", "--baseline", "a.json", *TWO), "name what to compare"),
        (("{scenario}", *TWO[:2]), "name what to compare"),
        (
            ("{scenario}", *TWO[:2], "--head-python", "/nowhere"),
            "--head-python /nowhere: there is no such file",
        ),
        (("a.json", "b.json", "--budget", "0"), "leave --budget out"),
        (("{session}", "--baseline", "b.json"), "is not TOML"),
        (("{scenario}", *TWO, "-o", "a.json"), "folder"),
        (("{scenario}", *TWO, "--fail-on", "device:5%"), "does not know 'device:5%'"),
        (("{scenario}", *TWO, "--fail-on", "dangling"), "needs the diagnosis"),
        (("/nowhere.toml", *TWO), "cannot read"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_told_in_one_sentence(
    tmp_path, scenario, python, words, said
):
    session = tmp_path / "session.json"
    session.write_text('{"schema": "dlprof.session/1"}', encoding="utf-8")
    names = {"scenario": scenario, "old": python("old"), "session": session}
    done = dlprof("gate", *(word.format(**names) for word in words), state=tmp_path)
    assert done.code == 2
    assert said in done.sentence()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[[environment]]\nname = "a"\npython = "{python}"\n',
            "environment was removed: a session holds one",
        ),
        ('[[step]]\nframework = "torch"\nmodel = "m.py"\n', "has steps, which take no turns"),
    ],
)
@pytest.mark.parametrize("verb", ["gate", "calibrate"])
def test_a_scenario_that_cannot_be_measured_in_turns_is_refused(
    tmp_path, scenario, verb, text, said
):
    whole = scenario.read_text(encoding="utf-8") if "environment" in text else ""
    title = 'title = "a"\nquestion = "b?"\nshapes = ["4"]\n'
    text = (whole or title) + text.format(python=sys.executable)
    scenario.write_text(text, encoding="utf-8")
    sides = ("--base-python", sys.executable, "--head-python", sys.executable)
    done = dlprof(verb, scenario, *(sides if verb == "gate" else ()), state=tmp_path)
    assert done.code == 2
    assert said in done.sentence()


def test_what_takes_times_to_tell_cannot_be_expected_without_any(tmp_path, scenario, python):
    with scenario.open("a", encoding="utf-8") as file:
        file.write('expect = ["no error", "no warning"]\n')
    done = gate(tmp_path, scenario, python("old"), python("new"), "--fail-on", "warning")
    assert done.code == 3, done.out + done.err
    assert "not checked" in done.out


@pytest.mark.parametrize(
    ("expected", "fail_on", "code", "said"),
    [
        ("no error", "warning", 0, "HEAD is not worse"),
        ("error", "ready:900%", 1, "the scenario"),
    ],
)
def test_what_the_scenario_expects_is_expected_of_head(
    tmp_path, scenario, python, expected, fail_on, code, said
):
    with scenario.open("a", encoding="utf-8") as file:
        file.write(f'expect = ["{expected}"]\n')
    words = ("--fail-on", fail_on, "--junit", tmp_path / "told.xml")
    done = gate(tmp_path, scenario, python("old"), python("new"), *words)
    assert done.code == code, done.out + done.err
    assert said in " ".join(done.out.split())
    assert f'name="{expected}"' in (tmp_path / "told.xml").read_text(encoding="utf-8")
