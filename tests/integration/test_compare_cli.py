"""``dlprof compare`` and ``dlprof gate`` of two files: reports and exit codes."""

import json

import pytest
from command_line import content, dlprof
from comparison_builders import suite


@pytest.fixture
def base(keep):
    return keep("base", suite())


@pytest.mark.parametrize(
    ("head", "options", "code"),
    [
        (suite(seed=50), (), 0),
        (suite({"c": 2.5}, seed=50), (), 1),
        (suite({"c": 1.6}, count=3, seed=50), (), 3),
        (suite({"c": 1.6}, count=3, seed=50), ("--unsure", "pass"), 0),
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


def test_the_comparison_is_given_in_every_form(tmp_path, sides):
    forms = ("json", "markdown", "junit", "html")
    files = [word for form in forms for word in (f"--{form}", tmp_path / form)]
    full = dlprof("compare", *sides, *files, "--full").out
    assert len(full) > len(dlprof("compare", *sides).out)
    for form in forms:
        text = (tmp_path / form).read_text(encoding="utf-8")
        assert "numpy.c(x)" in text.replace("<wbr>", "")
    printed = dlprof("compare", *sides, "--json", "-")
    assert json.loads(printed.out) == content(tmp_path / "json")
