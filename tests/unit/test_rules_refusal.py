"""Refusals: memory they leave behind, and errors that no standard prescribes."""

import pytest
from rule_builders import found, path, verdict

from dlprof.judge import find


def refused(code, *errors, **evidence):
    seen = verdict(evidence.pop("verdict", "clean"), error=list(errors), **evidence)
    return path(code, status="unsupported", refusal=seen)


def test_a_refusal_that_leaves_memory_behind_is_an_error():
    (found,) = find([refused("f(x)", "TypeError", verdict="retained", bytes_per_conversion=16384)])
    assert (found.rule, found.severity) == ("DLP010", "error")
    assert "behind when refusing: 16 KiB per refusal" in found.headline
    assert found.advice.startswith("Do not try the call")


def test_a_plain_array_that_fails_after_a_refusal_is_an_error_and_another_path_is_advised():
    broken = refused("f(x)", "TypeError", verdict="broken", after="TypeError: no")
    (found,) = find([broken, path("g(x)")])
    assert (found.rule, found.severity) == ("DLP026", "error")
    assert found.advice.startswith("g(x) takes it.")


def test_a_plain_array_that_failed_in_one_process_alone_is_no_finding():
    assert find([refused("f(x)", "TypeError", verdict="unknown", after="TypeError: no")]) == []


@pytest.mark.parametrize(
    ("code", "errors", "is_wrong"),
    [
        ("xp.asarray(x, copy=False)", ("RuntimeError", "Exception"), True),
        ("xp.asarray(x, copy=False)", ("ValueError", "Exception"), False),
        ("xp.from_dlpack(x, copy=False)", ("BufferError",), False),
        ("xp.from_dlpack(x, copy=False)", ("RuntimeError",), True),
        ("xp.other(x, copy=False)", ("RuntimeError",), False),
    ],
)
def test_an_error_is_judged_only_if_a_standard_prescribes_another(code, errors, is_wrong):
    copying = path(code.replace(", copy=False", ""), owner="copy")
    found = find([refused(code, *errors), copying])
    assert [one.rule for one in found if one.rule == "DLP024"] == ["DLP024"] * is_wrong


def test_an_error_not_caused_by_a_copy_is_not_judged():
    viewing = path("xp.asarray(x)")
    assert find([refused("xp.asarray(x, copy=False)", "RuntimeError"), viewing]) == []


def unanswered(code, asked, answered):
    """A refusal of the request ``asked``, after which the producer accepts ``answered``."""
    events = [
        {"call": "__dlpack__", "arguments": asked, "outcome": "TypeError: no such argument"},
        {"call": "other export", "arguments": answered, "outcome": "returned"},
    ]
    return path(code, status="unsupported", handshake=events)


@pytest.mark.parametrize(
    ("code", "asked"), [("f(x, copy=False)", "copy"), ("f(x, device='cpu')", "dl_device")]
)
def test_a_users_own_request_is_no_missing_negotiation(code, asked):
    assert find([unanswered(code, {asked: False}, {})]) == []


def test_a_refused_versioned_capsule_is_named_if_the_consumer_takes_a_legacy_one():
    events = [
        {"call": "export", "outcome": "PyCapsule", "capsule": {"name": "dltensor_versioned"}},
        {"call": "other export", "arguments": {}, "outcome": "returned"},
        {"call": "other import", "arguments": {"code": "f(x.__dlpack__())"}, "outcome": "returned"},
    ]
    case = {"protocol": "dlpack-capsule"}
    (found,) = find([path("f(c(x))", status="unsupported", handshake=events, case=case)])
    assert found.rule == "DLP023"
    assert "takes a legacy one" in found.headline
    events[-1]["outcome"] = "TypeError: not this dtype"
    assert find([path("f(c(x))", status="unsupported", handshake=events, case=case)]) == []


@pytest.mark.parametrize(
    ("asked", "stand_in", "refused_at", "is_found"),
    [
        ("returned", "returned", "first call", True),
        ("returned", "returned", "host_time", False),
        ("returned", "RuntimeError: no", "first call", False),
    ],
)
def test_a_refusal_is_named_if_a_stand_in_is_accepted(asked, stand_in, refused_at, is_found):
    events = [{"call": "__cuda_array_interface__", "outcome": asked}] * (asked is not None)
    events += [{"call": "import", "outcome": stand_in}]
    at = {"handshake": events, "refused_at": refused_at}
    case = {"protocol": "cuda-array-interface"}
    found = find([path("f(x)", status="unsupported", case=case, **at)])
    assert [one.rule for one in found] == ["DLP023"] * is_found


COPY_NEEDED = "ValueError: a copy is needed"


@pytest.mark.parametrize(
    ("code", "reason", "is_found"),
    [
        ("f(x, copy=False)", COPY_NEEDED, True),
        ("f(x, copy=False)", "ValueError: it needs gradients", False),
        ("f(x, copy=False)", "TypeError: f() got an unexpected keyword argument 'copy'", False),
        ("f(x.numpy(), copy=False)", COPY_NEEDED, False),
        ("f(x)", COPY_NEEDED, False),
    ],
)
def test_a_view_is_refused_for_a_copy_although_another_path_shares(code, reason, is_found):
    forbids = path(code, None, None, values=None, status="unsupported", reason=reason)
    (view, copy) = path("g(x)"), path("g(x)", owner="copy")
    assert bool(found("DLP033", forbids, view)) is is_found
    assert found("DLP033", forbids, copy) == []


def test_a_dtype_is_refused_although_another_path_shares_it():
    def survey(code, dtype, **parts):
        return path(code, None, case={"dtype": dtype, "survey": True}, **parts)

    plain, other = survey("f(x)", "float32"), survey("g(x)", "bool")
    no_bool = {"owner": None, "values": None, "status": "unsupported", "reason": "no bool"}
    (finding,) = found("DLP033", plain, other, survey("f(x)", "bool", **no_bool))
    assert finding.advice == "g(x) takes it without a copy."
    assert found("DLP033", plain, survey("f(x)", "bool", **no_bool)) == []
