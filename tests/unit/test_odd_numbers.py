"""A session in which a number of a measure is missing or odd is read without it, and says so."""

import json

import pytest
from html_builders import alone, case, timed
from rule_builders import US

from dlprof.runner.session import chunks, parse

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


@pytest.mark.parametrize("value", [NAN, INFINITE, None, "fast"])
@pytest.mark.parametrize(
    ("measure", "where"),
    [
        ("ready_time", ("median_ns",)),
        ("host_time", ("ci95_ns", 0)),
        ("ready_time", ("processes", 0, "samples_ns", 2)),
    ],
    ids=str,
)
def test_a_time_that_is_no_number_is_a_missing_measure_with_its_reason(measure, where, value):
    found = read_with(value, "results", 0, measure, *where).results
    assert getattr(found[0], measure) is None
    assert [one.instrument for one in found[0].notes] == [measure]
    assert (found[1].ready_time, found[1].notes) != (None, found[0].notes)
