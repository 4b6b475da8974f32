"""A session in which a number is missing is read without that measure, and says so."""

from __future__ import annotations

import json

import pytest
from html_builders import US, alone, case, timed

from dlprof.cli.show import show_table
from dlprof.errors import SessionError
from dlprof.reports import markdown
from dlprof.reports.html import page, unmeasured
from dlprof.reports.html.entry import entries
from dlprof.reports.html.headline import headline
from dlprof.reports.result_row import row_of
from dlprof.session.model import chunks, parse

pytestmark = pytest.mark.unit

NAN, INFINITE = float("nan"), float("-inf")


def content_of(session):
    return json.loads("".join(chunks(session, session.results)))


def with_placement():
    """A case whose call, wait and loops are timed apart."""
    loop = timed(9 * US)
    share = {"median": 0.5, "ci95": (0.4, 0.6)}
    placement = {"use": "y", "in_loop": loop, "hoisted": loop, "share": share}
    return case(ready_time=timed(5 * US), placement=placement)


def read_with(value, *place, session=None):
    """The session with ``value`` at that place of its text."""
    content = content_of(session or alone(with_placement(), case("numpy.array(x)", 9 * US, "copy")))
    inner = content
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return parse(json.dumps(content), "odd.json")


@pytest.mark.parametrize("value", [NAN, INFINITE, None])
@pytest.mark.parametrize(
    "where",
    [("median_ns",), ("ci95_ns", 0), ("min_ns",), ("processes", 0, "samples_ns", 2)],
    ids=lambda where: where[0],
)
@pytest.mark.parametrize("measure", ["ready_time", "host_time"])
def test_a_time_that_is_no_number_is_a_missing_measure_with_its_reason(measure, where, value):
    found = read_with(value, "results", 0, measure, *where).results
    assert getattr(found[0], measure) is None
    assert found[0].notes == [f"{measure}: its time is no number"]
    assert (found[1].ready_time, found[1].notes) != (None, found[0].notes)


def test_the_rest_of_a_result_stays_as_it_was():
    whole = parse(json.dumps(content_of(alone(with_placement(), case()))), "whole.json").results[0]
    found = read_with(NAN, "results", 0, "ready_time", "median_ns").results[0]
    assert found.model_copy(update={"ready_time": whole.ready_time, "notes": []}) == whole


def test_of_a_loop_only_what_is_no_number_is_missing():
    found = read_with(NAN, "results", 0, "placement", "in_loop", "median_ns").results[0]
    assert found.placement.in_loop is None
    assert found.placement.hoisted is not None
    assert found.notes == ["placement: in_loop: its time is no number"]


def test_a_share_that_is_no_number_is_missing():
    found = read_with(NAN, "results", 0, "placement", "share", "median").results[0]
    assert found.placement.share is None
    assert found.notes == ["placement: share: it is no number"]


def test_parts_of_a_trip_that_are_no_numbers_are_left_out():
    trip = {"there": 0, "back": 0, "iterations": 9, "idle": timed(US),
            "parts": {"there_ns": 5.0, "back_ns": NAN}, "loaded": {"there_ns": NAN}}  # fmt: skip
    content = content_of(alone(case())) | {"round_trips": [trip]}
    found = parse(json.dumps(content), "odd.json")
    (read,) = found.round_trips
    assert (read.parts, read.loaded) == ({"there_ns": 5.0}, None)
    assert read.idle is not None


@pytest.mark.parametrize(
    "place",
    [
        ("results", 0, "ready_time", "processes", 0, "loops"),
        ("results", 0, "case", "shape", 0),
        ("results", 0, "status"),
        ("seed",),
    ],
    ids=lambda place: place[-1],
)
def test_what_is_no_measure_must_be_there(place):
    with pytest.raises(SessionError, match="is not a valid session"):
        read_with(None, *place)


def test_a_measure_of_another_kind_is_refused():
    with pytest.raises(
        SessionError, match=r"ready_time\.median_ns: Input should be a valid number"
    ):
        read_with("fast", "results", 0, "ready_time", "median_ns")


def plain(text):
    """The text in one line, without the escapes of Markdown."""
    return " ".join(text.replace("\\", "").split())


def test_every_report_says_why_there_is_no_time(capsys):
    session = read_with(NAN, "results", 0, "ready_time", "median_ns")
    rows = [row_of(result) for result in session.results]
    show_table(session, rows)
    shown = [capsys.readouterr().out, markdown.render(session, rows), page.render(session)]
    assert all("ready_time: its time is no number" in plain(text) for text in shown)


def test_a_time_that_is_no_number_is_told_among_what_was_not_measured():
    session = read_with(NAN, "results", 0, "ready_time", "median_ns")
    (found,) = unmeasured.unmeasured(session, entries(session)).lost
    assert (found.what, found.why) == ("ok", "ready_time: its time is no number")


def test_a_result_without_any_time_says_so():
    content = content_of(alone(case()))
    for measure in ("host_time", "ready_time"):
        content["results"][0][measure]["median_ns"] = NAN
    session = parse(json.dumps(content), "odd.json")
    assert row_of(session.results[0]).why_not == "ready_time: its time is no number"
    assert headline(session, entries(session)).lead == ("torch → numpy: 1 case: 1 without a time.",)
