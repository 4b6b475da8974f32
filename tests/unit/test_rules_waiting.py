"""Rules on waiting: who waits for what, and whether that could be avoided."""

from __future__ import annotations

import pytest
from rule_builders import MS, US, found, ordered, path, rules, spread, verdict

from dlprof.analysis import thresholds

pytestmark = pytest.mark.unit

WAITING = path("wait(x)", 2 * US, ordering=ordered("host-sync"))
FREE = path("free(x)", ordering=ordered("stream-ordered", 9 * US))


def test_a_wait_that_another_path_avoids_is_a_warning_that_names_it():
    (finding,) = found("DLP001", WAITING, FREE)
    assert finding.severity == "warning"
    assert finding.results == (0,)
    assert "wait(x) waits" in finding.summary
    assert "2.0 us of conversion idle, 45 ms behind 45 ms of queued work" in finding.summary
    assert finding.advice == "free(x) does not wait: 9.0 us behind 45 ms of queued work."


def fitted(**fit):
    return path("wait(x)", 2 * US, ordering=ordered("host-sync", host=fit))


def test_a_wait_tells_the_line_that_was_fitted():
    (finding,) = found(
        "DLP001", fitted(slope=0.998, interval=[0.99, 1.012], intercept_ns=-60 * US), FREE
    )
    assert "45 ms behind 45 ms of queued work (slope 1.00, 0.99 to 1.01)" in finding.summary
    assert finding.evidence["slope"] == "1.00, 0.99 to 1.01; intercept -60 us"


@pytest.mark.parametrize(
    "fit", [{}, {"slope": 1}, {"slope": "x", "interval": [0, 1]}, {"slope": 1, "interval": [1]},
            {"slope": 1, "interval": 7}, {"slope": 1, "interval": [None, 1]}],
)  # fmt: skip
def test_a_line_that_cannot_be_read_is_not_told(fit):
    (finding,) = found("DLP001", fitted(**fit), FREE)
    assert "slope" not in finding.summary
    assert finding.evidence.get("slope") is None


TRACED = verdict(
    "traced",
    events=[
        {"name": "cudaLaunchKernel", "duration_ns": 5 * US, "waited": False},
        {"name": "cudaStreamSynchronize", "duration_ns": 44 * MS, "waited": True},
        {
            "name": "cudaMemcpyAsync",
            "duration_ns": 12 * MS,
            "waited": False,
            "bytes": 64 << 20,
            "direction": "device to host",
        },
    ],
)
SEEN = (
    "; the trace saw: cudaStreamSynchronize waited in 44 ms,"
    " cudaMemcpyAsync copied 64 MiB (device to host) in 12 ms"
)


@pytest.mark.parametrize("others", [[FREE], []], ids=["avoidable", "of every path"])
def test_a_wait_names_the_calls_that_waited_or_copied_as_the_trace_saw_them(others):
    traced = path("wait(x)", 2 * US, ordering=ordered("host-sync"), trace=TRACED)
    (finding,) = found("DLP001", traced, *others)
    assert SEEN in finding.summary


@pytest.mark.parametrize(
    "events", [None, 7, [], [None], [{}], [{"waited": True}], [{"bytes": "x", "direction": 3}]]
)
def test_a_trace_of_which_nothing_can_be_read_adds_no_number(events):
    traced = path("wait(x)", ordering=ordered("host-sync"), trace=verdict("traced", events=events))
    (finding,) = found("DLP001", traced)
    assert " copied " not in finding.summary


def test_a_wait_of_every_path_is_worth_knowing_only():
    other = path("other(x)", ordering=ordered("host-sync"))
    (finding,) = found("DLP001", WAITING, other)
    assert finding.severity == "info"
    assert finding.results == (0, 1)
    assert "every measured path from torch to numpy waits" in finding.summary


def test_every_consumer_of_a_producer_that_waits_is_one_finding():
    other = path("other(x)", case={"consumer": "jax"}, ordering=ordered("host-sync"))
    (finding,) = found("DLP001", WAITING, other)
    assert "from torch to numpy, jax" in finding.summary


def test_every_path_is_not_said_of_paths_whose_order_is_not_known():
    (finding,) = found("DLP001", WAITING, path("other(x)", ordering=ordered("unknown")))
    assert "every" not in finding.summary
    assert (
        "no measured path that is safe and gives the same is known not to wait" in finding.summary
    )


def test_a_copy_that_waits_is_not_told_to_be_a_view():
    copy = path("copy(x)", owner="copy", case={"promise": "copy"}, ordering=ordered("host-sync"))
    (finding,) = found("DLP001", copy, FREE)
    assert finding.severity == "info"


@pytest.mark.parametrize(
    "parts",
    [
        {"values": {"verdict": "wrong", "evidence": {"changed": {"shape": [[1], [2]]}}}},
        {"lifetime": {"verdict": "dangling", "evidence": {"changed_after_drop": True}}},
        {"early_write": {"verdict": "unsafe", "evidence": {}}},
        {"status": "invalid"},
    ],
)
def test_an_unsafe_path_is_not_advised(parts):
    unsafe = FREE.model_copy(update=dict(path("free(x)", ordering=FREE.ordering, **parts)))
    (finding,) = found("DLP001", WAITING, unsafe)
    assert "free(x)" not in finding.advice


@pytest.mark.parametrize("word", ["synchronous", "stream-ordered", "unknown", "varies"])
def test_no_wait_is_found_where_none_was_proved(word):
    assert rules(path("f(x)", ordering=ordered(word))) == []


def test_a_wait_for_the_whole_device_is_a_warning():
    (finding,) = found("DLP002", path("f(x)", ordering=ordered("device-sync")), FREE)
    assert finding.severity == "warning"
    assert "all work of the device" in finding.summary
    assert "free(x) does not wait" in finding.advice


def test_a_wait_for_the_whole_device_is_a_warning_without_another_path_too():
    (finding,) = found("DLP002", path("f(x)", ordering=ordered("device-sync")))
    assert (finding.severity, finding.advice) == ("warning", "")


def test_waiting_for_the_source_alone_is_better_than_for_the_device():
    (finding,) = found("DLP002", path("f(x)", ordering=ordered("device-sync")), WAITING)
    assert "wait(x) waits for its source alone" in finding.advice


def test_an_unordered_path_is_an_error_that_names_an_ordered_one():
    racing = path("race(x)", ordering=ordered("unordered", 3 * US))
    (finding,) = found("DLP003", racing, WAITING)
    assert finding.severity == "error"
    assert "ready long before the work was done" in finding.summary
    assert "wait(x) waits for the work" in finding.advice


def test_a_wrong_value_is_the_better_proof():
    timed = path("a(x)", ordering=ordered("unordered"))
    seen = path("b(x)", ordering=ordered("unordered", values_right=False))
    (finding,) = found("DLP003", timed, seen)
    assert finding.results == (1, 0)
    assert "wrong values were read" in finding.summary
    assert "no measured path orders it" in finding.advice


def racing_and_waiting(code, waits="host-sync"):
    order = ordered("unordered", values_right=False, waits=waits)
    return path(code, 2 * US, ordering=order)


def test_a_race_that_waits_is_one_error_that_tells_both():
    (finding,) = found("DLP003", racing_and_waiting("race(x)"))
    assert finding.severity == "error"
    assert finding.summary == (
        "race(x) orders nothing: behind queued work wrong values were read; all the same the call"
        " waits for the work that is queued on its source: 2.0 us of conversion idle, 45 ms behind"
        " 45 ms of queued work"
    )
    assert rules(racing_and_waiting("race(x)")) == ["DLP003"]


def test_a_race_that_waits_costs_the_wait():
    (finding,) = found("DLP003", racing_and_waiting("race(x)"))
    assert finding.evidence["waits"] == "host-sync"
    assert finding.evidence["cost_ns"] == 45 * MS - 2 * US


def test_a_race_that_waits_for_the_whole_device_says_so():
    (finding,) = found("DLP003", racing_and_waiting("race(x)", "device-sync"))
    assert "all the same the call waits for all work of the device" in finding.summary


def test_races_that_wait_are_told_apart_from_those_that_do_not():
    seen = path("a(x)", ordering=ordered("unordered", 3 * US, values_right=False))
    both = found("DLP003", seen, racing_and_waiting("b(x)"), racing_and_waiting("c(x)"))
    told = {finding.results: "all the same" in finding.summary for finding in both}
    assert told == {(0,): False, (1, 2): True}


def test_a_race_that_waits_is_a_path_that_waits():
    (finding,) = found("DLP001", WAITING, racing_and_waiting("race(x)"))
    assert "every measured path from torch to numpy waits" in finding.summary


@pytest.mark.parametrize("word", [None, 7, [], "unordered", "sleeps"])
def test_what_a_race_waits_for_is_read_as_a_known_word_or_not_at_all(word):
    (finding,) = found("DLP003", racing_and_waiting("race(x)", word))
    assert "all the same" not in finding.summary


def test_a_result_that_is_ready_long_after_the_call_was_returned_early():
    (finding,) = found("DLP019", path("f(x)", 2 * MS, host=spread(100 * US)))
    assert finding.severity == "info"
    assert "100 us until the call returns, 2.0 ms until the values are there" in finding.summary


@pytest.mark.parametrize("beyond", [False, True])
def test_early_is_by_ratio_and_by_gap(beyond):
    step = 1.01 if beyond else 0.99
    by_ratio = path("f(x)", thresholds.EARLY_RATIO * 100 * US * step, host=spread(100 * US))
    by_gap = path("f(x)", US + thresholds.EARLY_GAP_NS * step, host=spread(US))
    assert bool(rules(by_ratio)) is beyond
    assert bool(rules(by_gap)) is beyond


def test_a_ready_time_that_repeats_the_host_time_is_not_late():
    repeated = spread(2 * MS, same_as="host_time")
    assert rules(path("f(x)", repeated, host=spread(100 * US))) == []
