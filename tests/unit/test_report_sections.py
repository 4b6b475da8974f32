"""Loops, round trips, steps of inference and scenarios: sections of a session's document."""

import pytest
from builders import make_measure, make_result, make_session
from reading import part, texts, told
from rule_builders import LOOKED, MS, US, disturbed, path, spread, verdict
from step_builders import fresh_result, make_step, step_result

from dlprof.report import terminal
from dlprof.report.document import Level
from dlprof.report.loops import share_text, who_waits
from dlprof.report.session_document import session_document
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


def test_a_loop_has_a_table_on_the_first_screen_and_says_what_pays():
    found = section("In a loop", looped())
    assert found.level is Level.FIRST
    assert "torch.add(x, 1)" in found.heading
    assert texts(found)[0][2:] == ["69 ±3 %", "2 iterations", "torch.tensor(x)"]
    assert "69 %" in told(found)


@pytest.mark.parametrize("ci95", [None, (0.1, 0.9)], ids=["one process", "disagree"])
def test_a_share_that_is_not_known_pays_from_nowhere(ci95):
    found = section("In a loop", looped(ci95=ci95))
    assert texts(found)[0][3] == "-"
    assert "Convert before" not in told(found)


def test_a_loop_that_other_programs_disturbed_is_marked_and_claims_nothing():
    found = section("In a loop", looped(in_loop=disturbed(9 * US)))
    assert texts(found)[0][0].startswith("~")
    assert texts(found)[0][2:4] == ["?", "-"]
    assert "Convert before" not in told(found)


def test_a_refusal_of_the_array_itself_is_quoted():
    assert "TypeError: no" in told(
        section("In a loop", looped(refused={"implicit": "TypeError: no"}))
    )


def test_where_no_loop_ran_the_reason_is_told():
    found = looped(use=None, in_loop=None, hoisted=None, share=None, refused={"in_loop": "no use"})
    assert "no use" in told(section("In a loop", found))


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
def test_a_share_is_written_as_well_as_it_is_known(share, text):
    assert share_text(share) == text


# Round trips

SCENARIO = {"title": "There and back", "question": "Which way?", "report": "round trip"}


def way(producer, consumer, ns, code=None, **parts):
    case = {"producer": producer, "consumer": consumer}
    return path(code or f"{consumer}(x)", ns, case=case, **{**LOOKED, **parts})


THERE, BACK = way("tf", "cupy", 13 * MS, owner="copy"), way("cupy", "tf", 1 * MS)


def trips(*results, **changes):
    changes["request"] = {"scenario": SCENARIO}
    return session_document(make_session(*results, **changes))


def trip_rows(found):
    """The two rows of the first round trip: there, and back."""
    return texts(part(found, "Round trips"))[:2]


def test_the_slower_direction_is_there_and_the_answer_names_the_most_lopsided():
    found = trips(BACK, THERE)
    assert found.answers[1].code == "tf → cupy"
    assert trip_rows(found) == [
        ["tf → cupy", "13 ms copy", "13", "cupy(x)"],
        ["and back", "1.0 ms view", "", "tf(x)"],
    ]


def test_each_direction_takes_its_fastest_safe_path():
    bad = way("tf", "cupy", 1.0, "bad(x)", lifetime=verdict("dangling", changed_after_drop=True))
    assert trip_rows(trips(THERE, BACK, bad))[0][-1] == "cupy(x)"


def test_a_narrow_terminal_names_both_directions_of_a_round_trip():
    long = "tf.experimental.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))"
    found = trips(way("tf", "cupy", 13 * MS, long), way("cupy", "tf", 1 * MS, long))
    screen = terminal.render(found, 80)
    assert screen.count("tf → cupy") == 2  # the answer and the table
    assert screen.count("to_dlpack(") == 2


def test_directions_that_cannot_be_told_apart_are_the_same():
    found = trips(way("tf", "cupy", 1.01 * MS), BACK)
    assert trip_rows(found)[0][2] == "the same"
    assert "none" in found.answers[0].note


def made(**changes):
    parts = {"there_ns": 13e6, "back_ns": 2e6, "release_ns": 0.0, "first_ns": 1e6, "last_ns": 9e6}
    return {
        "there": 0,
        "back": 1,
        "iterations": 100,
        "idle": make_measure(15e6, (14.9e6, 15.1e6)).model_dump(),
        "parts": parts,
        "not_loaded": "cupy finishes its work",
        **changes,
    }


LOADED = {"queued_ns": 50e6, "there_ns": 49e6, "back_ns": 1e6, "others_ns": 99e6, "wait_ns": 0.0}


def test_trips_in_a_row_have_a_table_with_their_halves_and_what_waits():
    found = section("Round trips in a row", THERE, BACK, round_trips=[made(loaded=LOADED)])
    (row,) = texts(found)
    assert row[:3] == ["tf → cupy and back", "100", "15.00 ±0.10 ms"]
    assert row[3:5] == ["13 ms", "2.0 ms"]


def test_what_was_seen_of_trips_in_a_row_is_told():
    look = {"views": 5, "view_alignments": [64]}
    trip = made(
        refused=[{"result": 0, "reason": "BufferError: odd"}],
        restarted="read-only",
        processes=[{"round": 0, "in_a_row": {"there": look}, "by_halves": {}}],
    )
    notes = told(section("Notes on round trips", THERE, BACK, round_trips=[trip]))
    for text in ("BufferError: odd", "read-only", "5 views", "cupy finishes its work", "9.0 ms"):
        assert text in notes


@pytest.mark.parametrize(
    ("there_ns", "others_ns", "wait_ns", "waits"),
    [
        (120e6, 8e6, 20e3, "the first trip"),  # less than half of a queue that was long once
        (76e3, 8e6, 200e6, "no call"),
        (76e3, 8e6, 20e3, "not known"),  # the queue was over before
        (76e3, 280e6, 20e3, "a later trip"),
        (1.9e6, 45e6, 8e3, "not known"),
        (80e6, 8e6, 150e6, "not known"),
    ],
)
def test_who_waits_is_judged_against_an_idle_trip(there_ns, others_ns, wait_ns, waits):
    found = {"queued_ns": 300e6, "there_ns": there_ns, "back_ns": 1e3}
    assert who_waits({**found, "others_ns": others_ns, "wait_ns": wait_ns}, 76e3, 100) == waits


# Steps of inference


def steps(*results):
    return session_document(make_session(*results))


def test_steps_have_a_row_for_each_strategy_and_the_best_is_named():
    found = steps(fresh_result(), step_result())
    (table, *_) = found.shown(Level.FIRST)
    assert [row[0] for row in texts(table)] == ["fresh", "persistent"]
    assert texts(table)[1][2:] == ["10 ±5 %", "556,000", "2", "1 of 8", "next call", "+500 ns"]
    assert found.answers[0].code == "persistent"
    assert "next call" in found.answers[0].note


@pytest.mark.parametrize(
    ("saved", "ci95"),
    [(0.1, (-0.05, 0.2)), (0.01, (0.009, 0.011)), (0.1, None), (-0.1, (-0.2, -0.05))],
)
def test_what_cannot_be_told_from_nothing_saves_nothing(saved, ci95):
    found = steps(fresh_result(), step_result(step=make_step(saved=saved, ci95=ci95)))
    assert not found.answers[0].code


def test_a_wrong_output_is_shown():
    wrong = step_result(values=verdict("wrong", changed={"dtype": ["float32", "int8"]}))
    (table, *_) = steps(fresh_result(), wrong).shown(Level.FIRST)
    assert "wrong" in texts(table)[1]


def test_the_code_of_a_strategy_and_what_is_not_known_stand_in_full():
    unseen = make_step(
        allocations={"reason": "nobody counts"}, reuse=verdict("unknown", reason="no address")
    )
    result = step_result(step=unseen, case={"setup": "buffer = 1"})
    notes = told(part(steps(fresh_result(), result), "Strategies"))
    for text in ("buffer = 1", "nobody counts", "no address"):
        assert text in notes


# Scenarios


def test_a_scenario_has_its_expectations_on_the_first_screen():
    expectations = [{"text": "view", "verdict": "not met", "reason": "a copy"}]
    found = session_document(
        make_session(BACK, request={"scenario": SCENARIO}, expectations=expectations)
    )
    assert found.title.startswith(SCENARIO["title"])
    first = [one.heading for one in found.shown(Level.FIRST)]
    assert first[0] == "Expectations"
    assert texts(found.sections[0]) == [["view", "not met", "a copy"]]


def test_the_values_of_a_scenario_are_told_with_their_origin():
    scenario = {**SCENARIO, "file": "a.toml", "origins": [["rounds", "3", "file"]]}
    found = section("Scenario", make_result(), request={"scenario": scenario})
    facts = dict(found.blocks[0].items)
    assert facts["from the file"] == "rounds 3"


@pytest.mark.parametrize(
    ("settings", "words"), [({}, "1, each new"), ({"survey_alone": True}, "one for an array")]
)
def test_a_survey_tells_of_no_rounds(settings, words):
    session = make_session(make_result("f(x)"), rounds=1, request={"settings": settings})
    shown = terminal.render(session_document(session), 100, level=Level.FULL)
    assert words in shown
