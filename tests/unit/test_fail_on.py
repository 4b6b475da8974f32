"""``--fail-on``: which findings end in exit code 1."""

from __future__ import annotations

import pytest

from dlprof.cli.fail_on import parse
from dlprof.errors import FindingsFailed, UsageError
from dlprof.session import FindingRecord

pytestmark = pytest.mark.unit


def finding(rule="DLP012", name="slow-path", severity="info"):
    return FindingRecord(rule=rule, name=name, severity=severity, results=[0], summary="slow")


@pytest.mark.parametrize("text", ["DLP012", "dlp012", "slow-path", "DLP001,DLP012", "info"])
def test_a_finding_that_was_named_fails(text):
    with pytest.raises(FindingsFailed, match="DLP012 slow-path"):
        parse([text]).check([finding()])


@pytest.mark.parametrize("text", ["DLP001", "warning", "error"])
def test_a_finding_that_was_not_named_passes(text):
    parse([text]).check([finding()])


def test_a_severity_means_all_that_are_worse():
    with pytest.raises(FindingsFailed):
        parse(["warning"]).check([finding(severity="error")])


def test_no_finding_passes():
    parse(["info"]).check([])


def test_an_unknown_word_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'slow-path'"):
        parse(["slow_path"])


def test_the_exit_code_is_one():
    assert FindingsFailed.exit_code == 1


@pytest.mark.parametrize("texts", [[""], [" "], [","], ["DLP001", ""]])
def test_an_empty_word_is_refused_since_it_would_let_everything_pass(texts):
    with pytest.raises(UsageError, match="--fail-on is empty"):
        parse(texts)
