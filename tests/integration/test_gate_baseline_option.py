"""``dlprof gate --baseline``: against a session of before, and when that makes no sense."""

from __future__ import annotations

import json
import sys
from xml.etree import ElementTree

import pytest
from command_line import PROBE_FILES, content, dlprof

pytestmark = pytest.mark.integration

SCENARIO = f"""
title = "Spun"
question = "Is it slower?"
pairs = ["spun->spun"]
shapes = ["64"]
probes = ["{PROBE_FILES / "spun.py"}"]
sample_ms = 2
rounds = 10
diagnose = false
"""


@pytest.fixture(scope="module")
def scenario(tmp_path_factory):
    path = tmp_path_factory.mktemp("baseline") / "spun.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def measured(scenario):
    path = scenario.with_name("baseline.json")
    done = dlprof("sweep", scenario, "-o", path, state=scenario.parent)
    assert done.code == 0, done.err
    return content(path)


@pytest.fixture
def baseline(tmp_path, measured):
    """Write the baseline with changes."""

    def write(**changes):
        path = tmp_path / "baseline.json"
        kept = {key: value for key, value in {**measured, **changes}.items() if value != "dropped"}
        path.write_text(json.dumps(kept), encoding="utf-8")
        return path

    return write


def gate(tmp_path, scenario, baseline, *words, **variables):
    return dlprof("gate", scenario, "--baseline", baseline, *words, state=tmp_path, **variables)


def test_equal_code_raises_no_alarm(tmp_path, scenario, baseline):
    done = gate(tmp_path, scenario, baseline(), "--budget", 20)
    assert done.code in (0, 3), done.out + done.err
    assert "SLOWER" not in done.out


def test_a_slowdown_since_the_baseline_is_found_in_two_passes(tmp_path, scenario, baseline):
    kept = tmp_path / "kept"
    done = gate(tmp_path, scenario, baseline(), "-o", kept, DLPROF_TEST_SPIN="300")
    assert done.code == 1, done.out + done.err
    assert "was measured again" in " ".join(done.out.split())
    assert sorted(file.name for file in kept.iterdir()) == ["head-again.json", "head.json"]


def test_an_older_baseline_is_compared_and_the_interpreter_of_head_may_be_named(
    tmp_path, scenario, baseline
):
    old = baseline(schema="dlprof.session/1.0", references=[{"round": 0, "memcpy_ns": 1.0}])
    words = ("--head-python", sys.executable, "--budget", 0)
    done = gate(tmp_path, scenario, old, *words, COLUMNS="300")
    assert done.code == 3


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
    tmp_path, scenario, baseline, measured, change, code, said
):
    done = gate(tmp_path, scenario, baseline(**change(measured)), "--unsure", "pass")
    assert done.code == code, done.err
    assert said in done.sentence()
    assert done.out == ""
    assert not list(tmp_path.glob("dlprof/*.json"))


def test_a_baseline_among_the_sessions_of_the_folder_is_set_aside(tmp_path, scenario, baseline):
    kept = tmp_path / "kept"
    kept.mkdir()
    path = baseline().rename(kept / "head.json")
    before = path.read_bytes()
    assert gate(tmp_path, scenario, path, "-o", kept, "--budget", 0).code == 3
    assert (kept / "1" / "head.json").read_bytes() == before


def test_the_sessions_of_an_earlier_gate_are_not_replaced(tmp_path, scenario, baseline):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "head.json").write_text("measured yesterday", encoding="utf-8")
    done = gate(tmp_path, scenario, baseline(), "-o", kept, "--budget", 0)
    assert done.code == 2
    assert f"-o {kept} holds sessions of an earlier gate" in done.sentence()
    assert (kept / "head.json").read_text(encoding="utf-8") == "measured yesterday"


@pytest.mark.parametrize(
    ("change", "words", "expected"),
    [
        (lambda m: {"environment": other(m, cpu="Z80")}, (), (3, "INCOMPARABLE")),
        (lambda m: {"results": []}, (), (4, "NOTHING")),
        (lambda m: {}, ("--head-python", "/bin/false"), (2, "NOTHING")),
    ],
    ids=["another machine", "empty", "no Python"],
)
def test_a_gate_that_was_refused_is_an_error_in_every_report(
    tmp_path, scenario, baseline, measured, change, words, expected
):
    code, kind = expected
    names = ("json", "junit", "markdown")
    options = [word for name in names for word in (f"--{name}", tmp_path / name)]
    summary = tmp_path / "summary"
    done = gate(
        tmp_path,
        scenario,
        baseline(**change(measured)),
        *words,
        *options,
        "--github",
        GITHUB_STEP_SUMMARY=str(summary),
    )
    assert done.code == code, done.err
    said = done.sentence().removeprefix("dlprof: ")
    found = {name: (tmp_path / name).read_text(encoding="utf-8") for name in names}
    suite = ElementTree.fromstring(found["junit"])
    assert (suite.get("name"), suite.get("errors")) == ("dlprof gate", "1")
    assert suite.find(".//error").attrib == {"message": said, "type": kind}
    assert json.loads(found["json"])["exit_code"] == code
    assert json.loads(found["json"])["answers"] == [said]
    assert said[:20] in found["markdown"]
    assert said[:20] in summary.read_text(encoding="utf-8")
    assert done.out.startswith("::error")
