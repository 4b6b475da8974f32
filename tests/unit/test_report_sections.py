"""Loops, steps of inference and scenarios: sections of a session's document."""

import pytest
from builders import make_session
from reading import part, texts, told
from rule_builders import US, path, spread, verdict
from step_builders import fresh_result, make_step, step_result

from dlprof.report.session_document import session_document
from dlprof.report.steps import share_text
from dlprof.runner.session import Share


def section(heading, *results, **changes):
    return part(session_document(make_session(*results, **changes)), heading)


# Loops


def looped(code="torch.tensor(x)", ci95=(0.66, 0.71), pays_from=2, **changes):
    placement = {
        "use": "torch.add(x, 1)",
        "in_loop": spread(350 * US),
        "hoisted": spread(110 * US),
        "share": {"median": 0.69, "ci95": ci95},
        "break_even_iterations": pays_from,
    }
    return path(code, 240 * US, placement=placement | changes)


def test_a_loop_has_a_table_on_the_first_screen_and_names_the_break_even():
    found = section("In a loop", looped())
    assert found.is_first
    assert "torch.add(x, 1)" in found.heading
    assert texts(found)[0][2:] == ["69 ±3 %", "2 iterations", "torch.tensor(x)"]
    assert "69 %" in told(found)


KERNEL = "kernel[1, 1](x, weights, output)"


def untimed_loop(code, in_loop, order, default="unordered"):
    loop = {
        "use": KERNEL,
        "in_loop": spread(in_loop),
        "hoisted": spread(100 * US),
        "implicit": spread(120 * US),
    }
    ordering = verdict(order, by_streams={"default": {"verdict": default}})
    parts = {"placement": loop, "ordering": ordering, "untimed": True}
    recipe = {"result": {"use": "launch({x})"}}
    return path(code, case={"device": "cuda"}, recipe=recipe, **parts)


@pytest.mark.parametrize(
    ("order", "default", "says", "time"),
    [
        ("host-sync", "unordered", "With sync=False the call races with queued work. Without", ""),
        ("unordered", "unordered", "sync=False changes nothing: the call races", "150 µs"),
        ("unordered", "stream-ordered", "the call races with work on a non-blocking", "150 µs"),
    ],
)
def test_a_loop_on_a_simulated_device_has_the_time_of_conversions_alone(order, default, says, time):
    waits = untimed_loop("view(x)", 250 * US, order, default)
    other = untimed_loop("view(x, sync=False)", 200 * US, "unordered", default)
    found = section("In a loop", waits, other)
    rows = {row[3]: row[:3] for row in texts(found)}
    assert rows["view(x, sync=False)"][:2] == ["3 arrays", "99 µs"]
    assert rows[KERNEL] == ["3 arrays", "20 µs", "-"]
    assert rows["view(x)"][1] == time
    assert says in told(found)
    assert "Convert before the loop" in told(found)


@pytest.mark.parametrize(
    ("order", "cells"),
    [("stream-ordered", ["20 µs", "ordered"]), ("host-sync", ["", "waits for the queue"])],
)
def test_a_kernel_that_takes_the_array_itself_has_the_order_of_its_own_path(order, cells):
    launch = untimed_loop("launch(x)", 0, order)
    nothing = launch.placement.model_copy(update={"in_loop": None, "hoisted": None})
    launch = launch.model_copy(update={"placement": nothing})
    found = section("In a loop", untimed_loop("view(x)", 250 * US, "unordered"), launch)
    assert {row[3]: row[1:3] for row in texts(found)}[KERNEL] == cells


@pytest.mark.parametrize("ci95", [None, (0.1, 0.9)], ids=["one process", "disagree"])
def test_an_unknown_share_has_no_break_even(ci95):
    found = section("In a loop", looped(ci95=ci95))
    assert texts(found)[0][3] == "-"
    assert "Convert before" not in told(found)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, "-"),
        (Share(median=0.61), "~61 %"),
        (Share(median=0.61, ci95=(0.58, 0.64)), "61 ±3 %"),
        (Share(median=0.99, ci95=(0.988, 0.992)), "99 ±<1 %"),
        (Share(median=-0.001, ci95=(-0.02, 0.02)), "0 ±2 %"),
        (Share(median=0.5, ci95=(0.1, 0.9)), "?"),
    ],
)
def test_a_share_is_written_to_its_known_precision(share, text):
    assert share_text(share) == text


# Waits for the queue


def waiting(code, word="host-sync", **evidence):
    order = verdict(word, **evidence)
    return path(code, case={"device": "cuda"}, ordering=order)


WHOLE = {"waits_in": "to(x)", "waits_for_later": True}
BACK = {"code": "back(y)", "order": "unordered"}


def test_a_wait_for_the_whole_queue_is_said_first_with_the_way_back():
    results = waiting("take(to(x))", **WHOLE), waiting("other(x)")
    (answer, *_) = session_document(make_session(*results, way_back=BACK)).answers
    assert (answer.label, answer.code) == ("waits", "to(x)")
    assert "waits for everything that torch has queued" in answer.note
    assert "the way back orders nothing: back(y)" in answer.note


def test_a_wait_that_another_path_avoids_is_not_said_first():
    results = waiting("take(to(x))", **WHOLE), waiting("other(x)", "stream-ordered")
    assert session_document(make_session(*results)).answers[0].label != "waits"


# Steps of inference


def steps(*results):
    return session_document(make_session(*results))


def test_steps_have_a_row_for_each_strategy_and_the_best_is_named():
    found = steps(fresh_result(), step_result())
    (table, *_) = (one for one in found.sections if one.is_first)
    assert [row[0] for row in texts(table)] == ["fresh", "persistent"]
    assert texts(table)[1][2:] == ["10 ±5 %", "560,000", "2", "1 of 8", "next call", "+500 ns"]
    assert found.answers[0].code == "persistent"
    assert "next call" in found.answers[0].note


@pytest.mark.parametrize(
    ("saved", "ci95"),
    [(0.1, (-0.05, 0.2)), (0.01, (0.009, 0.011)), (0.1, None), (-0.1, (-0.2, -0.05))],
)
def test_a_saving_not_clearly_above_zero_is_no_saving(saved, ci95):
    found = steps(fresh_result(), step_result(step=make_step(saved, ci95)))
    assert not found.answers[0].code


# Scenarios


def test_a_scenario_has_its_expectations_on_the_first_screen():
    scenario = {"file": "s", "title": "There and back", "question": "Which way?"}
    expectations = [{"text": "view", "verdict": "not met", "reason": "a copy"}]
    found = session_document(
        make_session(path("f(x)"), request={"scenario": scenario}, expectations=expectations)
    )
    assert found.title.startswith(scenario["title"])
    first = [one.heading for one in found.sections if one.is_first]
    assert first[0] == "Expectations"
    assert texts(found.sections[0]) == [["view", "not met", "a copy"]]


def test_a_loop_over_another_shape_has_the_order_that_the_first_shape_showed():
    first = untimed_loop("view(x)", 250 * US, "host-sync")
    other = untimed_loop("view(x)", 250 * US, "host-sync")
    case = other.case.model_copy(update={"shape": (64, 64)})
    other = other.model_copy(update={"case": case, "ordering": None})
    sections = session_document(make_session(first, other)).sections
    loops = [found for found in sections if found.heading.startswith("In a loop")]
    views = [row[1:3] for found in loops for row in texts(found) if row[3] == "view(x)"]
    assert views == 2 * [["", "waits for the queue"]]
