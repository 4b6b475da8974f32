"""``--fail-on``: findings that lead to exit code 1, and runs that cannot decide."""

import pytest
from builders import make_result
from repro_builders import finding_of

from dlprof.errors import FindingsFailed, Unsure, UsageError
from dlprof.judge import NEED_TIMES, NEEDS
from dlprof.judge.cases import coverage
from dlprof.judge.fail_on import parse


@pytest.mark.parametrize("text", ["DLP012", "dlp012", "slow-path", "DLP001,DLP012", "info"])
def test_a_named_finding_fails(text):
    with pytest.raises(FindingsFailed, match="DLP012 slow-path"):
        parse([text]).check([finding_of("DLP012", severity="info")])
    assert FindingsFailed.exit_code == 1


@pytest.mark.parametrize("text", ["DLP001", "warning"])
def test_an_unnamed_finding_passes(text):
    parse([text]).check([finding_of("DLP012", severity="info")])


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["slow_path"], "did you mean 'slow-path'"),
        ([""], "--fail-on is empty"),
        (["DLP001", ""], "--fail-on is empty"),
    ],
)
def test_an_unknown_or_empty_word_is_refused(texts, words):
    with pytest.raises(UsageError, match=words):
        parse(texts)


def test_a_named_rule_needs_the_diagnosis_or_several_processes():
    for rule in NEEDS:
        assert "needs the diagnosis" in parse([rule]).missing(diagnosed=False, timed=True)
    assert parse(["DLP012,DLP018,warning"]).missing(diagnosed=False, timed=True) == ""
    once = parse(["DLP012"]).missing(diagnosed=True, timed=True, repeated=False)
    assert "DLP012 needs several processes" in once
    with pytest.raises(Unsure, match="DLP020 needs the diagnosis"):
        parse(["DLP020"]).check_coverage([make_result(lifetime=None, early_write=None)])
    assert Unsure.exit_code == 3


@pytest.mark.parametrize("rule", NEED_TIMES)
def test_a_rule_on_times_never_passes_on_a_simulated_device(rule):
    assert f"{rule} needs times" in parse([rule]).missing(diagnosed=True, timed=False)
    with pytest.raises(Unsure, match="times"):
        parse([rule]).check_coverage([make_result(median_ns=None, untimed=True)])


def test_coverage_counts_conversions_without_a_result():
    refused = make_result(status="unsupported", reason="no")
    steps = make_result(case={"protocol": "step"})
    assert coverage([make_result(), refused, steps]) == "looked at 1 of 2 (1 refused)"


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("skipped", "dlprof or a probe failed in values.py, line 3: TypeError: no"),
        ("crashed", "the probe is faulty: no name"),
    ],
)
def test_a_conversion_with_a_failed_instrument_passes_nothing(status, reason):
    lost = make_result("g", None, status=status, reason=reason)
    with pytest.raises(Unsure, match=f"looked at 1 of 2.*: {reason}"):
        parse(["DLP016"]).check_coverage([make_result("f"), lost])
