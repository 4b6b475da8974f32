"""Expectations: each is met, not met, or could not be checked; none is ignored."""

import pytest
from builders import make_result
from repro_builders import finding_of

from dlprof.errors import UsageError
from dlprof.measuring.judged import check, parse_expectation

WAITS = {"verdict": "host-sync", "evidence": {}}


def finding(rule="DLP001", severity="warning", results=(0,)):
    return finding_of(rule, severity=severity, results=list(results))


def verdict(text, *findings, results=None, rounds=3) -> tuple[str, str]:
    results = [make_result(ordering=WAITS)] if results is None else results
    (found,) = check([parse_expectation(text)], results, findings, rounds)
    return found.verdict, found.reason


@pytest.mark.parametrize(
    "text",
    ["DLP001", "DLP001 on torch->*", "host-sync on *->numpy", "warning", "DLP001 on numpy<->torch"],
)
def test_a_finding_meets_its_expectation(text):
    assert verdict(text, finding()) == ("met", "")


def test_a_finding_of_another_pair_does_not():
    results = [make_result(ordering=WAITS), make_result(case={"producer": "jax"}, ordering=WAITS)]
    assert verdict("DLP001 on torch->*", finding(results=[1]), results=results)[0] == "not met"
    assert verdict("DLP002", finding())[0] == "not met"
    assert verdict("no warning", finding())[0] == "not met"


def test_an_unmeasured_pair_is_not_checked():
    told, reason = verdict("DLP001 on jax->*")
    assert (told, "jax->*" in reason) == ("not checked", True)


@pytest.mark.parametrize("text", ["DLP001", "no DLP001"])
def test_without_its_instrument_a_rule_is_not_checked(text):
    told, reason = verdict(text, results=[make_result(ordering=None)])
    assert (told, "ordering" in reason) == ("not checked", True)


@pytest.mark.parametrize("text", ["DLP012", "no slow-path", "no warning", "info"])
def test_one_process_cannot_tell_times_apart(text):
    told, reason = verdict(text, rounds=1)
    assert (told, "one process" in reason) == ("not checked", True)


@pytest.mark.parametrize(
    ("text", "met"),
    [("no error", "met"), ("error", "not met"), ("no crash", "met"), ("wrong-values", "not met")],
)
def test_one_process_is_enough_without_times(text, met):
    assert verdict(text, rounds=1) == (met, "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not like"),
        ("no", "is not like"),
        ("DLP001 DLP002", "is not like"),
        ("DLP001 on ", "is not like"),
        ("DLP001 on tf", "'tf'"),
        ("DLP999", "there is no rule"),
        ("host-sink", "did you mean 'host-sync'"),
    ],
)
def test_another_text_is_refused_with_a_message(text, reason):
    with pytest.raises(UsageError, match=reason):
        parse_expectation(text)


LOST = {"status": "crashed", "reason": "killed by SIGILL during import", "median_ns": None}


@pytest.mark.parametrize("text", ["no DLP016", "no error on torch->*"])
@pytest.mark.parametrize("status", ["crashed", "timeout", "skipped", "invalid"])
def test_a_pair_that_lost_all_cases_without_a_finding_is_not_checked(text, status):
    lost = make_result(case={"consumer": "tensorflow"}, ordering=WAITS, **LOST | {"status": status})
    results = [make_result(ordering=WAITS), lost]
    told, reason = verdict(text, results=results)
    assert (told, "torch->tensorflow" in reason) == ("not checked", True)
    assert verdict("no error on *->numpy", results=results)[0] == "met"


@pytest.mark.parametrize(
    "parts",
    [
        {"ownership": {"verdict": "unknown", "reason": "AttributeError", "evidence": {}}},
        {"ownership": None, "notes": [{"instrument": "ownership", "reason": "AttributeError"}]},
    ],
)
def test_a_conversion_that_may_be_a_view_or_a_copy_meets_no_severity(parts):
    told, reason = verdict("no error", results=[make_result(ordering=WAITS, **parts)])
    assert (told, reason) == ("not checked", "view or copy is unknown from torch to numpy")
