"""``dlprof compare`` and ``dlprof gate`` as a user runs them: files in, reports and exit codes out."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command_line import FAKE, QUICK, content, dlprof

sys.path.insert(0, str(Path(__file__).parent.parent / "unit"))
from comparison_builders import session, suite

pytestmark = pytest.mark.integration


@pytest.fixture
def keep(tmp_path):
    """Write a session of these results and return its path."""

    def write(name, results, **header):
        path = tmp_path / f"{name}.json"
        found = session(results, created=f"2026-01-01 {name}", **header)
        path.write_text(found.model_dump_json(by_alias=True), encoding="utf-8")
        return path

    return write


@pytest.fixture
def base(keep):
    return keep("base", suite())


@pytest.mark.parametrize(
    ("head", "options", "code"),
    [
        (suite(seed=50), (), 0),
        (suite({"c": 1.5}, seed=50), (), 1),
        (suite({"c": 1.5}, seed=50), ("--fail-on", "ready:90%"), 0),
        (suite({"c": 1.3}, count=3, seed=50), (), 3),
        (suite({"c": 1.3}, count=3, seed=50), ("--unsure", "pass"), 0),
        (suite({"c": 1.3}, count=3, seed=50), ("--unsure", "fail"), 1),
        ([], (), 4),
    ],
)
def test_the_gate_answers_with_its_exit_code(tmp_path, base, keep, head, options, code):
    done = dlprof("gate", base, keep("head", head), *options, state=tmp_path)
    assert done.code == code, done.out
    assert len(done.sentences) == bool(code)


def test_compare_tells_and_fails_only_if_it_is_told_what_to_fail_on(tmp_path, base, keep):
    head = keep("head", suite({"c": 1.5}, seed=50))
    done = dlprof("compare", base, head, state=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "numpy.c(x)" in done.out
    assert dlprof("compare", base, head, "--fail-on", "ready:5%", state=tmp_path).code == 1


def test_other_machines_are_refused_also_if_unsure_passes(tmp_path, keep):
    sides = [
        keep(name, suite(seed=seed), environment={"cpu": cpu})
        for name, seed, cpu in (("base", 0, "A"), ("head", 50, "B"))
    ]
    for words in (("gate", *sides, "--unsure", "pass"), ("compare", *sides)):
        done = dlprof(*words, state=tmp_path)
        assert done.code == 3
        assert "cpu A → B" in done.sentence()


def test_the_comparison_is_given_in_every_form(tmp_path, base, keep):
    head = keep("head", suite({"c": 1.5}, seed=50))
    forms = ("json", "markdown", "junit", "html")
    files = [word for form in forms for word in (f"--{form}", tmp_path / form)]
    full = dlprof("compare", base, head, *files, "--full", state=tmp_path).out
    brief = dlprof("compare", base, head, state=tmp_path).out
    assert full.startswith(brief.splitlines()[0])
    assert len(full) > len(brief)
    for form in forms:
        assert "numpy.c(x)" in (tmp_path / form).read_text(encoding="utf-8")
    printed = dlprof("compare", base, head, "--json", "-", state=tmp_path)
    assert json.loads(printed.out) == content(tmp_path / "json")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--fail-on", "redy:5%"), "ready"),
        (("--unsure", "maybe"), "maybe"),
        (("--json", "/no/folder/x.json"), "/no/folder"),
    ],
)
def test_bad_options_are_told_before_anything_is_read(tmp_path, options, word):
    done = dlprof("gate", "no.json", "nor.json", *options, state=tmp_path)
    assert done.code == 2
    assert word in done.sentence()


def test_a_session_with_itself_is_refused(tmp_path, base):
    assert dlprof("gate", base, base, state=tmp_path).code == 2


def test_real_sessions_can_be_compared(tmp_path):
    for name in ("a.json", "b.json"):
        words = ("run", "fake", "fake", "--probe", FAKE, *QUICK, "--rounds", "2")
        assert dlprof(*words, "-o", tmp_path / name, state=tmp_path).code == 0
    words = ("compare", tmp_path / "a.json", tmp_path / "b.json", "--json", "-")
    done = dlprof(*words, state=tmp_path)
    assert done.code in (0, 3)  # 3 where the machine was busy
    cases = json.loads(done.out)["cases"]
    assert {case["status"]["head"] for case in cases} == {"ok"}
    assert all(case["times"][0]["ratio"] or case["times"][0]["reason"] for case in cases)
