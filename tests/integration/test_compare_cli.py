"""``dlprof compare`` and ``dlprof gate`` of two files: reports and exit codes."""

from __future__ import annotations

import json

import pytest
from command_line import RUN_RECORDED, content, dlprof, replay
from comparison_builders import suite

pytestmark = pytest.mark.integration


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
def test_the_gate_answers_with_its_exit_code(base, keep, head, options, code):
    done = dlprof("gate", base, keep("head", head), *options)
    assert done.code == code, done.out
    assert len(done.sentences) == bool(code)


def test_compare_fails_only_if_it_is_told_what_to_fail_on(sides):
    done = dlprof("compare", *sides)
    assert (done.code, done.err) == (0, "")
    assert "numpy.c(x)" in done.out
    assert dlprof("compare", *sides, "--fail-on", "ready:5%").code == 1


@pytest.mark.parametrize("words", [("gate", "--unsure", "pass"), ("compare",)], ids=" ".join)
def test_other_machines_are_refused_also_if_unsure_passes(keep, words):
    sides = [
        keep(name, suite(seed=seed), environment={"cpu": cpu})
        for name, seed, cpu in (("base", 0, "A"), ("head", 50, "B"))
    ]
    done = dlprof(words[0], *sides, *words[1:])
    assert done.code == 3
    assert "cpu A → B" in done.sentence()


def test_the_comparison_is_given_in_every_form(tmp_path, sides):
    forms = ("json", "markdown", "junit", "html")
    files = [word for form in forms for word in (f"--{form}", tmp_path / form)]
    full = dlprof("compare", *sides, *files, "--full").out
    assert len(full) > len(dlprof("compare", *sides).out)
    for form in forms:
        assert "numpy.c(x)" in (tmp_path / form).read_text(encoding="utf-8")
    printed = dlprof("compare", *sides, "--json", "-")
    assert json.loads(printed.out) == content(tmp_path / "json")


@pytest.mark.parametrize(
    ("options", "word"),
    [(("--fail-on", "redy:5%"), "ready"), (("--unsure", "maybe"), "maybe")],
)
def test_bad_options_are_told_before_anything_is_read(options, word):
    done = dlprof("gate", "no.json", "nor.json", *options)
    assert done.code == 2
    assert word in done.sentence()


def test_a_session_with_itself_is_refused(base):
    assert dlprof("gate", base, base).code == 2


def test_sessions_of_real_frameworks_can_be_compared(tmp_path):
    base, head = tmp_path / "base.json", tmp_path / "head.json"
    assert replay(*RUN_RECORDED, "-o", head).code == 0
    yesterday = {**content(head), "created": "2026-01-01T00:00:00+00:00"}
    base.write_text(json.dumps(yesterday), encoding="utf-8")
    done = dlprof("compare", base, head, "--json", "-")
    cases = json.loads(done.out)["cases"]
    assert {case["status"]["head"] for case in cases} == {"ok"}
    assert {case["times"][0]["ratio"] for case in cases} == {1.0}
