"""Times that are not the path's own, disturbed or scattered: what reports and findings say of them."""

from __future__ import annotations

import pytest
from builders import make_header, make_measure, make_result
from rule_builders import MS, US, found, ordered, path, spread, verdict

from dlprof.analysis.case_view import CaseView
from dlprof.analysis.quantity import times_text
from dlprof.reports.answer import answers
from dlprof.reports.cell_text import told_time
from dlprof.reports.result_row import row_of
from dlprof.reports.terminal import render
from dlprof.rules.copying import saved_ns
from dlprof.session.model import ProcessSamples

pytestmark = pytest.mark.unit


def scattered(median_ns=8 * MS, fastest_ns=0.1 * MS):
    """One process, of whose samples most took far longer than its fastest."""
    samples = [fastest_ns, median_ns, median_ns]
    process = ProcessSamples(round=0, loops=1, samples_ns=samples, disturbed=0.0)
    return make_measure(median_ns, None, min_ns=fastest_ns, processes=[process])


def row(measure, **changes):
    return row_of(make_result("copy(x)", host_time=measure, ready_time=measure, **changes))


def test_a_time_of_one_process_whose_samples_disagree_is_called_scattered():
    text = render(make_header(), [row(scattered())])
    assert "~8.0 ms view   scattered" in text
    assert "whose median is over 3 times its fastest sample" in " ".join(text.split())


def test_a_time_of_one_process_whose_samples_agree_is_ok():
    assert "~8.0 ms view   ok" in render(make_header(), [row(scattered(fastest_ns=7 * MS))])


def test_a_ready_time_that_is_the_host_time_is_judged_by_the_samples_of_that():
    ready = scattered().model_copy(update={"processes": [], "same_as": "host_time"})
    assert row_of(make_result(host_time=scattered(), ready_time=ready)).scattered


def test_a_sentence_says_why_a_time_is_not_known():
    assert told_time(row(scattered())) == "~8.0 ms (scattered)"
    assert told_time(row(make_measure(8 * MS, (7.9 * MS, 8.1 * MS)))) == "8.00 ±0.10 ms"


def disturbed(median_ns):
    """A time of which other programs had most in every process."""
    processes = [
        ProcessSamples(round=at, loops=1, samples_ns=[median_ns], disturbed=1.0) for at in range(3)
    ]
    return spread(median_ns).model_copy(update={"processes": processes})


def widely(*medians_ns):
    """A time whose processes differ widely: its interval is far wider than their range."""
    processes = [
        ProcessSamples(round=at, loops=1, samples_ns=[median], disturbed=0.0)
        for at, median in enumerate(medians_ns)
    ]
    middle = sorted(medians_ns)[len(medians_ns) // 2]
    fields = {"min_ns": min(medians_ns), "processes": processes}
    return make_measure(middle, (min(medians_ns) / 2, 2 * max(medians_ns)), **fields)


GREEDY = {"peak_memory": verdict("ok", arrays=2.0)}
LEAN = {"peak_memory": verdict("ok", arrays=1.0)}


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (8 * MS, 80 * US, "needs 1.0: 80 us instead of 8.0 ms, 100 times as fast."),
        (disturbed(8 * MS), 80 * US, "needs 1.0: 80 us."),
        (8 * MS, disturbed(80 * US), "needs 1.0."),
        (disturbed(8 * MS), disturbed(80 * US), "needs 1.0."),
        (scattered(), 80 * US, "needs 1.0: 80 us."),
    ],
)
def test_advice_tells_no_time_and_no_ratio_of_a_time_that_is_not_known(before, after, told):
    greedy = path("f(x)", before, "copy", **GREEDY)
    (finding,) = found("DLP005", greedy, path("g(x)", after, "copy", **LEAN))
    assert finding.advice == f"g(x) {told}"


def test_what_a_conversion_takes_idle_is_told_only_where_it_is_known():
    waits = ordered("host-sync")
    (known,) = found("DLP001", path("f(x)", 2 * US, ordering=waits))
    (unknown,) = found("DLP001", path("f(x)", disturbed(2 * US), ordering=waits))
    assert "2.0 us of conversion idle, 45 ms behind" in known.summary
    assert "idle" not in unknown.summary
    assert "45 ms behind 45 ms of queued work" in unknown.summary


def test_a_result_is_called_late_by_a_time_that_is_not_known_only_if_its_fastest_was():
    host, late = spread(2 * US), disturbed(900 * US)
    (finding,) = found("DLP019", path("f(x)", late, host=host))
    assert finding.summary == "f(x) returns before the result is there"
    assert finding.evidence == {}
    once_early = late.model_copy(update={"min_ns": 5 * US})
    assert found("DLP019", path("f(x)", once_early, host=host)) == []
    (known,) = found("DLP019", path("f(x)", 900 * US, host=host))
    assert known.summary.endswith(
        ": 2.0 us until the call returns, 900 us until the values are there"
    )


def test_a_finding_that_rests_on_no_time_costs_nothing_that_is_known():
    view = path("f(x)", 5 * US, case={"layout": "aligned"})
    copy = path("f(x)", disturbed(900 * US), "copy", case={"layout": "sliced"})
    assert saved_ns(CaseView(0, copy), CaseView(1, view)) == 0.0


def test_times_that_differ_widely_are_told_by_their_range_and_their_ratio_as_the_least():
    copy = path("copy(x)", widely(190 * US, 665 * US, 841 * US), "copy")
    view = path("view(x)", widely(22 * US, 23 * US, 24 * US), "view")
    (finding,) = found("DLP004", copy, view)
    assert finding.summary.endswith(": 190-840 us against 22-24 us")
    assert finding.advice == (
        "view(x) is a view: 22-24 us instead of 190-840 us, at least 7.9 times as fast."
    )


def test_times_that_reach_into_each_other_are_told_without_a_ratio():
    greedy = path("f(x)", widely(190 * US, 665 * US, 841 * US), "copy", **GREEDY)
    lean = path("g(x)", widely(90 * US, 95 * US, 300 * US), "copy", **LEAN)
    (finding,) = found("DLP005", greedy, lean)
    assert finding.advice == "g(x) needs 1.0: 90-300 us instead of 190-840 us."


def test_an_answer_and_a_finding_tell_the_same_ratio():
    copy = path("copy(x)", widely(190 * US, 665 * US, 841 * US), "copy")
    view = path("view(x)", 23 * US, "view")
    (finding,) = found("DLP004", copy, view)
    (answer,) = answers([row_of(view), row_of(copy)])
    assert "at least 8.2 times as fast" in finding.advice
    assert "takes 190-840 us: at least 8.2 times as long" in answer


def test_a_wide_interval_without_its_processes_is_told_by_its_ends():
    wide = make_measure(600 * US, (100 * US, 3_000 * US))
    assert times_text(wide, spread(25 * US)) == "at least 4.0"
    assert times_text(spread(9_000 * US), wide) == "at least 3.0"


def test_at_least_as_long_is_no_ratio():
    wide = make_measure(600 * US, (100 * US, 3_000 * US))
    assert times_text(spread(3_060 * US), wide) == ""


def test_of_a_loop_whose_rest_was_disturbed_only_the_time_with_the_conversion_is_told():
    share = {"median": 0.5, "ci95": (0.48, 0.52)}
    loops = {"in_loop": spread(90 * US), "hoisted": disturbed(45 * US)}
    placement = {"use": "add(x, 1)", "share": share} | loops
    (finding,) = found("DLP014", path("f(x)", placement=placement))
    assert finding.summary.endswith("per turn with the conversion inside")
    assert "hoisted_ns" not in finding.evidence


def test_a_copy_that_takes_no_time_is_offered_all_the_same():
    rows = [row_of(path("f(x)", 0.0)), row_of(path("g(x)", 0.0, "copy"))]
    assert "If you need a copy: g(x)" in answers(rows)[0]
