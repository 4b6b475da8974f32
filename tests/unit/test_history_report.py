"""What is said of a history: in a terminal, as JSON, on a page."""

from __future__ import annotations

import json
import re

import pytest
from history_builders import created, day, entry, machine, month, result, stepped, trends
from hostile import BITES

from dlprof.history.store import History
from dlprof.reports import history as terminal
from dlprof.reports import history_json
from dlprof.reports.history_document import history_document
from dlprof.reports.html import render
from dlprof.reports.sparkline import DIGITS, sparkline

pytestmark = pytest.mark.unit


def header(number):
    version = "2.5.0" if number >= 10 else "2.4.0"
    return {"environment": machine(packages={"numpy": version})}


def label(number):
    return f"{'0123456789' * 4}" if number < 10 else "release-2"


def views(number):
    verdict = "copy" if number >= 15 else "view"
    return {"ownership": {"verdict": verdict, "evidence": {}}}


@pytest.fixture(scope="module")
def eventful():
    """A step in time and one in the verdict."""
    return month(stepped(), views, header, label)


def text(entries, width=80, **options):
    found = trends(entries)
    return terminal.render(History(tuple(entries)), found, "ready", width, **options)


def test_the_terminal_tells_the_step_and_what_brought_it(eventful):
    said = " ".join(text(eventful).split())
    step = (
        r"2026-01-11 03:00 numpy\.a\(x\): \S+ [nµ]s → 1\.\d\d µs: 1\.\d\d \(1\.\d\d-1\.\d\d\) times"
    )
    assert re.search(step, said), said
    assert "since 2026-01-10 03:00: label 012345678901 → release-2, numpy 2.4.0 → 2.5.0" in said
    assert "2026-01-16 03:00 numpy.a(x): ownership: view, now copy (warning)" in said
    assert said.endswith("Steps in 1 case: 1 slower, 1 change of verdict.")


def test_no_line_is_wider_than_the_terminal(eventful):
    assert max(map(len, text(eventful).splitlines())) <= 80


def test_steps_stand_newest_first(eventful):
    said = text(eventful)
    assert said.index("now copy") < said.index("1.20 (")


def test_a_quiet_history_says_so():
    assert text(month([1000.0] * 4)).endswith("No step in 1 case.\n")


def test_colour_is_given_only_where_it_is_asked_for(eventful):
    assert "\x1b[" not in text(eventful)
    assert "\x1b[" in text(eventful, colour=True)


def test_digits_stand_where_bars_cannot(eventful):
    said = text(eventful, marks=DIGITS)
    assert re.search(r"numpy\.a\(x\) [01]{10}[4-7]{10} ", said)


def test_machines_stand_apart():
    entries = month(
        [1000.0] * 4,
        header=lambda number: {"environment": machine(cpu=f"CPU {number % 2}")},
    )
    said = text(entries)
    assert "CPU 0, 8 cores" in said
    assert "CPU 1, 8 cores" in said
    assert said.endswith("No step in 1 case on 2 machines.\n")


def test_what_is_too_new_to_tell_is_told():
    said = " ".join(text(month(stepped(12, 11, 1.5))).split())
    assert "its newest session takes 1.50 times as long; too few yet to tell" in said


def test_the_json_holds_every_point_and_step(eventful):
    found = json.loads(history_json.render(History(tuple(eventful)), trends(eventful), "ready"))
    assert found["schema"] == "dlprof.trend/1"
    assert len(found["sessions"]) == 20
    (one,) = found["trends"]
    assert len(one["points"]) == 20
    assert len(one["points"][0]["processes_ns"]) == 8
    (step,) = one["steps"]
    assert step["when"] == created(10)
    assert step["ci95"][0] < step["ratio"] < step["ci95"][1]
    assert step["labels"][1] == "release-2"
    assert step["differences"] == [
        {"what": "numpy", "base": "2.4.0", "head": "2.5.0", "kind": "version"}
    ]
    assert one["verdicts"][0]["after"] == "copy"


def test_a_page_has_the_steps_a_chart_of_each_trend_and_what_was_left_out(eventful):
    history = History(tuple(eventful), (("x.parquet", "it is damaged"),))
    found = render(history_document(history, trends(eventful), "ready"))
    assert "numpy 2.4.0 → 2.5.0" in found
    assert found.count("<svg") == 1
    assert "x.parquet" in found


@pytest.mark.parametrize("word", BITES)
def test_hostile_text_is_shown_and_does_nothing(word):
    def one(number):
        changed = {"verdict": word if number else "view", "evidence": {}}
        case = {"producer": word, "consumer": word, "dtype": word, "layout": word}
        return entry(
            number,
            result("a", seed=number, ownership=changed, case=case).model_copy(
                update={"environment": None}
            ),
            label=word,
            environment=machine(cpu=word, python=word, packages={word: f"{word}{number}"}),
        )

    entries = [one(number) for number in range(3)]
    entries.append(entry(3, result("a", case={"producer": word}, status="crashed", reason=word)))
    history = History(tuple(entries), ((word, word),))
    found = trends(entries)
    said = terminal.render(history, found, "ready")
    json.loads(history_json.render(history, found, "ready"))
    assert "\x1b" not in said
    assert "\u202e" not in said


def test_a_session_that_says_nothing_of_its_machine_is_of_an_unknown_one():
    (one,) = trends([entry(0, result(), environment={})])
    assert one.series.machine.name == "unknown machine"


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([], ""),
        ([None, None], "  "),
        ([1.0], "▁"),
        ([1.0, 1.0, 2.0, 2.0], "▁▁██"),
        ([1.0, None, 2.0], "▁ █"),
        ([1.0, 1.01, 1.0], "▁▁▁"),
        ([1.0] * 30 + [3.0] * 30, "▁▁▁▁▁▁▁▁▁▁██████████"),
    ],
)
def test_a_line_of_characters_shows_the_trend(values, line):
    assert sparkline(values, 20) == line


def test_a_day_is_a_session():
    assert day(0, result()).created == created(0)
