"""Rules on waiting: DLP001, DLP002, DLP003, DLP019, DLP034."""

import pytest
from rule_builders import MS, US, found, ordered, owned, path, rules, spread, verdict

WAITING = path("wait(x)", 2 * US, ordering=ordered("host-sync"))
FREE = path("free(x)", ordering=ordered("stream-ordered", 9 * US))


def test_a_wait_that_another_path_avoids_is_a_warning_that_names_it():
    (finding,) = found("DLP001", WAITING, FREE)
    assert (finding.severity, finding.results, finding.against) == ("warning", [0], 1)
    assert "2.0 µs alone, 45 ms behind 45 ms of work" in finding.headline
    assert finding.advice == "free(x) does not wait."
    assert finding.evidence["cost_ns"] == 45 * MS - 2 * US


def test_waits_that_no_path_avoids_are_one_informative_finding_of_the_producer():
    other = path("other(x)", case={"consumer": "jax"}, ordering=ordered("host-sync"))
    (finding,) = found("DLP001", WAITING, other)
    assert (finding.severity, finding.results) == ("info", [0, 1])


ON_DEVICE = {"device": "cuda"}


def test_a_wait_is_a_warning_if_the_result_stays_on_the_device_and_copies_do_not_cross():
    waits = ordered("host-sync")
    view = path("view(x)", case=ON_DEVICE, ordering=waits)
    crossing = verdict("copy", result_device="cuda", crosses_twice=True)
    upload = path("upload(x)", case=ON_DEVICE, owner=crossing, ordering=waits)
    host = path("host(x)", case=ON_DEVICE, owner=owned("copy"), ordering=waits)
    warning, info = found("DLP001", view, upload, host)
    assert (warning.severity, warning.results) == ("warning", [0])
    assert (info.severity, info.results) == ("info", [1, 2])


@pytest.mark.parametrize("word", ["synchronous", "stream-ordered", "unknown", "varies"])
def test_no_wait_is_found_without_proof(word):
    assert rules(path("f(x)", ordering=ordered(word))) == []


@pytest.mark.parametrize(
    ("others", "advice"),
    [
        ([], "No measured path"),
        ([FREE], "free(x) does not wait"),
        ([WAITING], "wait(x) waits for its source alone"),
    ],
)
def test_a_wait_for_the_whole_device_is_a_warning(others, advice):
    (finding,) = found("DLP002", path("f(x)", ordering=ordered("device-sync")), *others)
    assert finding.severity == "warning"
    assert finding.advice.startswith(advice)


def racing(code, waits=None, **evidence):
    order = ordered("unordered", waits=waits, **evidence)
    return path(code, 2 * US, ordering=order)


@pytest.mark.parametrize("default", ["stream-ordered", "host-sync"])
def test_a_race_hidden_by_the_default_streams_is_told_apart(default):
    runs = {"default": verdict(default), "own streams": verdict("unordered")}
    everywhere, elsewhere = found(
        "DLP003", racing("a(x)"), racing("b(x)", by_streams=runs, streams="own streams")
    )
    assert "non-blocking" not in everywhere.summary
    assert "non-blocking" in elsewhere.summary
    assert "Ordered on: default streams. Not ordered on: own streams." in elsewhere.summary


def test_an_unordered_path_is_an_error_that_names_an_ordered_one():
    (finding,) = found("DLP003", racing("race(x)"), WAITING)
    assert finding.severity == "error"
    assert "wait(x) waits for the work" in finding.advice
    assert "cost_ns" not in finding.evidence


def test_a_result_that_is_ready_long_after_the_call_was_returned_early():
    (finding,) = found("DLP019", path("f(x)", 2 * MS, host=spread(100 * US)))
    assert finding.severity == "info"
    assert "100 µs for the call, 2.0 ms until ready" in finding.headline


@pytest.mark.parametrize(("waits", "code", "count"), [
    (True, "put(x, non_blocking=True)", 1),
    (True, "put(x)", 0),
    (False, "put(x, non_blocking=True)", 0),
    (None, "put(x, non_blocking=True)", 0),
])  # fmt: skip
def test_only_a_copy_that_must_not_block_and_is_seen_to_wait_is_blocked(waits, code, count):
    order = verdict("synchronous", upload_waits=waits)
    assert len(found("DLP034", path(code, ordering=order))) == count
