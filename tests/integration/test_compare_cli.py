"""``dlprof compare`` and ``dlprof gate`` as a user runs them: files in, words and exit codes out."""

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
    ("head", "code"),
    [
        (suite(seed=50), 0),
        (suite({"c": 0.5}, seed=50), 0),
        (suite({"c": 1.5}, seed=50), 1),
        (suite(seed=50, ownership={"verdict": "copy"}), 1),
        (suite(seed=50, names="abcdefg"), 1),
        (suite({"c": 1.5}, count=3, seed=50), 3),
        (suite(seed=50, case={"dtype": "int8"}), 4),
        ([], 4),
    ],
    ids=["same", "faster", "slower", "copies", "gone", "few", "other arrays", "empty"],
)
def test_the_gate_answers_with_its_exit_code(tmp_path, base, keep, head, code):
    done = dlprof("gate", base, keep("head", head), state=tmp_path)
    assert done.code == code, done.out
    assert len(done.sentences) == bool(code)


def test_compare_tells_and_does_not_fail(tmp_path, base, keep):
    head = keep("head", suite({"c": 1.5}, seed=50))
    done = dlprof("compare", base, head, state=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "HEAD is slower: numpy.c(x) takes 1.5" in " ".join(done.out.split())


def test_compare_fails_where_it_is_told_what_to_fail_on(tmp_path, base, keep):
    head = keep("head", suite({"c": 1.5}, seed=50))
    assert dlprof("compare", base, head, "--fail-on", "ready:5%", state=tmp_path).code == 1
    assert dlprof("compare", base, head, "--fail-on", "ready:90%", state=tmp_path).code == 0


@pytest.mark.parametrize(("word", "code"), [("pass", 0), ("fail", 1)])
def test_unsure_passes_or_fails_as_asked(tmp_path, base, keep, word, code):
    head = keep("head", suite({"c": 1.3}, count=3, seed=50))
    assert dlprof("gate", base, head, "--unsure", word, state=tmp_path).code == code


def test_other_machines_are_refused_also_where_unsure_passes(tmp_path, keep):
    sides = [
        keep(name, suite(seed=seed), environment={"cpu": cpu})
        for name, seed, cpu in (("base", 0, "A"), ("head", 50, "B"))
    ]
    for words in (("gate", *sides, "--unsure", "pass"), ("compare", *sides)):
        done = dlprof(*words, state=tmp_path)
        assert done.code == 3
        assert done.sentence() == (
            "dlprof: Not known whether HEAD is slower: measured on different machines: cpu A → B."
        )


@pytest.mark.parametrize("verb", ["gate", "compare"])
def test_the_json_is_printed_alone_or_written(tmp_path, base, keep, verb):
    head, file = keep("head", suite(seed=50)), tmp_path / "found.json"
    printed = dlprof(verb, base, head, "--json", "-", state=tmp_path)
    written = dlprof(verb, base, head, "--json", file, state=tmp_path)
    assert json.loads(printed.out) == content(file)
    assert content(file)["schema"] == "dlprof.comparison/1"
    assert written.out.startswith("torch → numpy")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--fail-on", "redy:5%"), "--fail-on knows no measure 'redy': did you mean 'ready'?"),
        (("--unsure", "maybe"), "--unsure is pass or fail, not 'maybe'"),
        (("--json", "/no/folder/x.json"), "cannot write /no/folder/x.json: No such file or directory"),
    ],
)  # fmt: skip
def test_bad_options_are_told_before_anything_is_read(tmp_path, options, sentence):
    done = dlprof("gate", "no.json", "nor.json", *options, state=tmp_path)
    assert (done.code, done.sentence()) == (2, f"dlprof: {sentence}")


def test_a_session_with_itself_is_refused(tmp_path, base):
    done = dlprof("gate", base, base, state=tmp_path)
    assert done.code == 2
    assert done.sentence().startswith("dlprof: BASE and HEAD are the same measurement")


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
