"""Steps in reports: a table of strategies, and sentences that answer with numbers."""

from __future__ import annotations

import pytest
from builders import make_header, make_measure, make_session
from step_builders import fresh_result, make_change, make_step, step_result

from dlprof.reports.answer import answers
from dlprof.reports.html import render as render_html
from dlprof.reports.markdown import render as render_markdown
from dlprof.reports.result_row import row_of
from dlprof.reports.terminal import render

pytestmark = pytest.mark.unit


def report(*results):
    return render(make_header(), [row_of(result) for result in results])


def answer(*results):
    (found,) = answers(row_of(result) for result in results)
    return found


def test_the_table_has_a_row_for_each_strategy():
    shown = report(fresh_result(), step_result())
    assert "torch, input 4x4 float32 on cpu:" in shown
    (row,) = (line for line in shown.splitlines() if line.startswith("persistent "))
    assert row.split() == [
        *("persistent", "1.00", "±0.10", "us", "10", "±5", "%", "556,000"),
        *("2", "1", "of", "8", "until", "next", "+500", "ns"),
    ]
    assert max(map(len, shown.splitlines())) <= 80


def test_a_strategy_is_shown_as_code_with_what_it_needs():
    result = step_result(case={"setup": "buffer = torch.empty_like(output)"})
    shown = " ".join(report(fresh_result(), result).split())
    assert (
        "torch persistent: y = model(x, out=buffer); before: buffer = torch.empty_like(output)"
    ) in shown


def test_what_is_saved_stands_beside_what_it_costs():
    assert answer(fresh_result(), step_result()).startswith(
        "torch, 4x4 float32 on cpu: persistent saves 100 ns of the 1.0 us of a step that allocates"
        " its output (10 ±5 %). With each output read: 556,000 steps/s instead of 500,000. But an"
        " output does not always last: that of persistent changes with the next call after it."
    )


def test_what_cannot_be_told_saves_nothing():
    step = make_step(saved=0.1, ci95=(-0.05, 0.2))
    assert "no strategy saves what can be told of the 1.0 us" in answer(
        fresh_result(), step_result(step=step)
    )


def test_a_hundredth_is_not_told_however_narrow_its_interval():
    step = make_step(saved=0.01, ci95=(0.009, 0.011))
    assert "no strategy saves" in answer(fresh_result(), step_result(step=step))


def test_what_the_table_writes_as_two_hundredths_is_told():
    step = make_step(saved=0.0196, ci95=(0.01, 0.03))
    assert "persistent saves 20 ns" in answer(fresh_result(), step_result(step=step))


def test_the_sentence_has_the_numbers_of_the_table():
    versus = {**make_step()["versus"], "fresh": make_measure(1100.0)}
    step = make_step(versus={**versus, "fresh_reading": make_measure(2200.0)})
    results = fresh_result(), step_result(step=step)
    assert "saves 100 ns of the 1.0 us" in answer(*results)
    assert "556,000 steps/s instead of 500,000" in answer(*results)
    assert " 500,000 " in report(*results)


def test_no_interval_is_of_nothing():
    step = make_step(saved=0.2, ci95=(0.198, 0.202))
    assert "20 ±<1 %" in report(fresh_result(), step_result(step=step))


def test_what_takes_more_is_named():
    found = answer(
        fresh_result(), step_result("copied", step=make_step(saved=-0.2, ci95=(-0.25, -0.15)))
    )
    assert " copied takes more." in found


def test_outputs_that_stay_are_no_hazard():
    assert "does not always last" not in answer(
        fresh_result(), step_result("ahead", make_step(after=None))
    )


def test_two_buffers_last_until_the_second_call():
    results = fresh_result(), step_result(), step_result("two-buffers", make_step(after=2))
    assert (
        "that of persistent changes with the next call, that of two-buffers changes with the"
        " second call after it."
    ) in answer(*results)
    assert "until 2nd" in report(*results)


def test_a_change_of_shape_is_told_where_it_can_be():
    told = answer(fresh_result(), step_result())
    assert "Another shape at each call (2x3 and back) adds to a step: fresh +500 ns" in told
    unsure = make_step(change=make_change(500.0, (-1.0, 1000.0)))
    assert "persistent +" not in answer(fresh_result(), step_result(step=unsure))


def test_one_process_says_that_it_cannot_tell():
    step = make_step(ci95=None)
    assert "one process has no interval" in answer(fresh_result(), step_result(step=step))


def test_without_an_output_for_each_call_nothing_is_compared():
    assert "no strategy could be compared" in answer(step_result())


def test_a_wrong_output_is_shown_and_never_advised():
    wrong = {"verdict": "wrong", "evidence": {"changed": {"values": {"different": 1, "of": 2}}}}
    results = fresh_result(), step_result(values=wrong)
    assert "saves" not in answer(*results)
    assert "another output than at first: 1 of 2 values" in report(*results)


def test_on_the_host_ahead_cannot_help_and_the_report_says_so():
    assert "it cannot help there" in " ".join(report(fresh_result(), step_result("ahead")).split())
    assert "it cannot help there" not in report(fresh_result(), step_result())


def test_what_could_not_be_seen_is_told_with_the_reason():
    step = make_step(
        allocations={"reason": "torch does not tell", "kept": 8, "buffers": 8},
        reuse={"verdict": "unknown", "evidence": {"reason": "always the same output"}},
        change=None,
    )
    shown = report(fresh_result(), step_result(step=step, notes=["shape_change: four rows only"]))
    assert "torch persistent: allocations unknown: torch does not tell" in shown
    assert "torch persistent: output unknown: always the same output" in shown
    assert "torch persistent: new shape: four rows only" in shown


def test_a_strategy_that_was_refused_is_told_with_its_name():
    refused = step_result("cuda-graph", {}, status="unsupported", reason="no CUDA")
    lost = refused.model_copy(update={"ready_time": None, "host_time": None})
    assert "cuda-graph: y = model(x, out=buffer): unsupported: no CUDA" in report(
        fresh_result(), lost
    )


def test_no_report_calls_a_step_a_conversion():
    results = fresh_result(), step_result()
    texts = (
        report(*results),
        render_markdown(make_header(), [row_of(result) for result in results]),
        render_html(make_session(*results)),
    )
    for shown in texts:
        assert "cheapest that is" not in shown
        assert "torch → torch" not in shown
        assert "persistent saves 100 ns" in " ".join(shown.split())


def test_the_page_says_that_rules_are_about_conversions():
    assert "2 steps of inference measured; rules are about conversions alone" in render_html(
        make_session(fresh_result(), step_result())
    )


def test_evidence_of_any_form_can_be_shown():
    step = make_step(reuse={"verdict": "overwritten", "evidence": {"after_calls": "x"}})
    odd = make_step(reuse={"verdict": "\x1b[2J", "evidence": {}})
    shown = report(fresh_result(), step_result(step=step), step_result("ahead", odd))
    assert "\x1b" not in shown
