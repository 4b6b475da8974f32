"""What a report of a history says: whether anything changed, when, and what came with it."""

import json

import pytest
from history_builders import created, entry, machine, month, result, stepped, trends
from reading import told

from dlprof.history.store import History
from dlprof.report.document import Chart
from dlprof.report.history_document import history_document, render_json


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


def document(entries, **history):
    return history_document(History(tuple(entries), **history), trends(entries), "ready")


def charts(sections):
    return [block for one in sections for block in one.blocks if isinstance(block, Chart)]


def test_the_steps_stand_newest_first_with_what_came_with_them(eventful):
    found = document(eventful)
    newest, oldest = found.tables[0].rows
    assert newest[0].text == "2026-01-16 03:00"
    assert "a view, now a copy" in newest[1].text
    assert "1.20 (" in oldest[1].text
    assert (newest[1].tone, oldest[1].tone) == ("worse", "worse")
    since = oldest[-1].text
    assert "012345678901 → release-2" in since
    assert "numpy 2.4.0 → 2.5.0" in since


def test_the_answer_counts_what_changed(eventful):
    (answer,) = document(eventful).answers
    assert "1 slower, 1 of verdict" in answer.note
    (quiet,) = document(month([1000.0] * 4)).answers
    assert quiet.label != answer.label


def test_machines_stand_apart():
    entries = month(
        [1000.0] * 4, header=lambda number: {"environment": machine(cpu=f"CPU {number % 2}")}
    )
    found = document(entries)
    assert "2 machines" in found.answers[0].note
    assert {row[-1].note for row in found.tables[0].rows} == {
        "on CPU 0, 8 cores",
        "on CPU 1, 8 cores",
    }


def test_what_is_missing_or_has_no_time_in_the_newest_session_is_told():
    crash = result("a", status="crashed", reason="SIGSEGV")
    entries = [*month([1000.0] * 3), entry(3, crash)]
    assert "SIGSEGV" in told(*document(entries).sections)


def test_a_case_without_a_time_is_not_counted_among_those_without_a_step():
    crash = result("b", status="crashed", reason="SIGSEGV")
    some = [entry(at, result("a"), crash) for at in range(3)]
    assert document(some).answers[0].note == "in 1 case; 1 without a time"
    assert document([entry(at, crash) for at in range(3)]).answers[0].label == "unknown"


def test_a_chart_has_a_point_for_each_session_and_a_mark_where_it_changed(eventful):
    (chart,) = charts(document(eventful).sections)
    dates = [created(number)[:16].replace("T", " ") for number in range(20)]
    assert [point.group for point in chart.points] == dates
    marks = {at: (one.severity, one.mark) for at, one in enumerate(chart.points) if one.mark}
    assert marks == {10: ("warning", "1.20\u00d7"), 15: ("warning", "copy")}
    assert all(point.low_ns <= point.time_ns <= point.high_ns for point in chart.points)


def test_files_that_are_no_part_of_the_history_are_named():
    found = document(month([1000.0] * 3), ignored=(("x.parquet", "it is damaged"),), left_out=7)
    assert "x.parquet" in told(*found.sections)
    assert "7 older" in found.title


def test_the_json_holds_every_point_and_step(eventful):
    found = json.loads(render_json(History(tuple(eventful)), trends(eventful), "ready"))
    assert found["schema"] == "dlprof.trend/1"
    assert len(found["sessions"]) == 20
    (one,) = found["trends"]
    assert len(one["points"]) == 20
    assert len(one["points"][0]["processes_ns"]) == 8
    (step,) = one["steps"]
    assert step["when"] == created(10)
    assert step["ci95"][0] < step["ratio"] < step["ci95"][1]
    assert step["labels"][1] == "release-2"
    assert [one["what"] for one in step["differences"]] == ["numpy"]
    assert one["verdicts"][0]["after"] == "copy"
