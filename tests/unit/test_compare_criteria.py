"""``--fail-on`` of compare and gate: the definition of a regression."""

import re

import pytest

from dlprof.compare.verdicts import CRASHED, Change, parse
from dlprof.errors import UsageError


@pytest.mark.parametrize(
    ("texts", "floors"),
    [
        (["ready:5%,200ns"], [("ready", 0.05, 200.0)]),
        (["host:1.5us"], [("host", 0.05, 1500.0)]),
        (["ready"], [("ready", 0.05, 5.0)]),
        (["host:10%,ready:5%,200ns"], [("host", 0.1, 5.0), ("ready", 0.05, 200.0)]),
    ],
)
def test_floors_follow_their_measure(texts, floors):
    found = parse(texts)
    assert [(f.measure, f.relative, f.absolute_ns) for f in found.floors] == [
        (name, pytest.approx(relative), absolute) for name, relative, absolute in floors
    ]
    assert found.severities == {"error", "warning"}


def test_a_severity_covers_all_that_are_worse_and_times_and_changes_combine():
    assert parse(["info"]).severities == {"error", "warning", "info"}
    found = parse(["ready:5%,error", "copy"])
    assert (len(found.floors), found.severities, found.words) == (1, {"error"}, {"copy"})


def test_the_diagnosis_is_needed_only_if_its_verdicts_count():
    assert parse([]).need_diagnosis
    assert not parse(["ready:5%", "copy"]).need_diagnosis


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("redy:5%", "did you mean 'ready'"),
        ("ready:5x", "units are %, ns"),
    ],
)
def test_invalid_criteria_are_reported(text, reason):
    with pytest.raises(UsageError, match=re.escape(reason)):
        parse([text])


@pytest.mark.parametrize(
    ("word", "change", "fails"),
    [
        ("unsafe", Change("status", "ok", "crashed", "worse", "error"), True),
        ("copy", Change("ownership", "view", "varies", "worse", "warning", "copy"), True),
        ("wrong", Change("ownership", "view", "varies", "worse", "warning", "copy"), False),
        ("retained", Change("lifetime", "safe", CRASHED, "worse", "error"), True),
        ("copy", Change("lifetime", "safe", CRASHED, "worse", "error"), False),
        ("info", Change("ownership", "copy", "view", "better"), False),
    ],
    ids=["crash", "worst process", "other word", "crash of it", "crash of another", "better"],
)
def test_a_change_fails_by_its_severity_its_worst_word_or_a_crash(word, change, fails):
    assert parse([word]).fails(change) == fails
