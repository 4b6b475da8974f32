"""What is here must be what a session was measured with, and what it knows finds its new place."""

from __future__ import annotations

from contextlib import closing

import pytest
from builders import make_case, make_catalog, make_probe_info, make_result, make_session

from dlprof.errors import UsageError
from dlprof.measuring import resuming
from dlprof.plan.catalog import environment
from dlprof.plan.pairing import Axes
from dlprof.plan.request import Request, request_from
from dlprof.session import model as sessions
from dlprof.session.journal import Journal
from dlprof.session.model import RoundTrip

pytestmark = pytest.mark.unit

NUMPY = make_probe_info()


def jax(jaxlib="0.4"):
    return make_probe_info("jax", also={"jaxlib": jaxlib})


def tensorflow(distribution):
    return make_probe_info("tensorflow", distribution=distribution, version="2.0")


def of_pair(producer="jax", consumer="numpy", **changes):
    return make_result(case={"producer": producer, "consumer": consumer}, **changes)


def check(then, now, *results):
    """Finish here, where there is the catalog ``now``, what was measured with ``then``."""
    session = make_session(*(results or (of_pair(),)), environment=environment(then, {}))
    resuming.check_same(session, now)


def test_what_has_not_changed_can_be_finished():
    check(make_catalog(NUMPY, jax()), make_catalog(NUMPY, jax()))


def test_a_session_that_does_not_say_what_it_was_measured_with_can_be_finished():
    session = make_session(of_pair(), environment={})
    resuming.check_same(session, make_catalog(NUMPY, jax()))


@pytest.mark.parametrize(
    ("then", "now", "told"),
    [
        (jax("0.4"), jax("0.5"), "jaxlib 0.4 → 0.5"),
        (
            tensorflow("tensorflow-cpu"),
            tensorflow("tensorflow"),
            "tensorflow missing → 2.0",
        ),
    ],
    ids=["a library of the framework", "another distribution"],
)
def test_all_that_a_framework_consists_of_must_be_the_same(then, now, told):
    with pytest.raises(UsageError, match=rf"measured with other versions \({told}\)$"):
        check(make_catalog(NUMPY, then), make_catalog(NUMPY, now), of_pair(then.name))


def test_what_is_not_measured_may_have_changed():
    old, new = (make_catalog(NUMPY, jax(version)) for version in ("0.4", "0.5"))
    check(old, new, of_pair("numpy"))
    check(old, new, of_pair("numpy"), of_pair(status="skipped"))


def test_a_framework_that_was_missing_may_be_there_now():
    check(make_catalog(NUMPY), make_catalog(NUMPY, jax()), of_pair("numpy"))


def test_an_older_session_that_does_not_name_libraries_can_be_finished():
    then = environment(make_catalog(NUMPY, jax()), {})
    del then["libraries"], then["packages"]["jaxlib"]
    session = make_session(of_pair(), environment=then)
    resuming.check_same(session, make_catalog(NUMPY, jax()))


def of_case(case):
    return make_result(case=case.record())


@pytest.fixture
def journal():
    with closing(Journal()) as found:
        yield found


@pytest.fixture
def recalled(journal):
    def recall(cases, results, trips=(), complete=True):
        session = make_session(*results, round_trips=list(trips), complete=complete)
        return resuming.recall(session, cases, journal, rounds=3)

    return recall


HERE, OTHER, GONE = (make_case(name=name) for name in ("here", "other", "gone"))


def test_results_are_known_by_what_they_are_of(recalled):
    results = [of_case(OTHER), of_case(GONE), of_case(HERE)]
    found = recalled([HERE, OTHER], results)
    assert found.known == {0: results[2], 1: results[0]}
    assert list(found.unplanned) == [results[1]]


def test_trips_are_of_the_results_they_were_made_of(recalled):
    refused = [{"result": 1, "reason": "no"}]
    trip = RoundTrip.model_validate({"there": 0, "back": 2, "iterations": 9, "refused": refused})
    results = [of_case(OTHER), of_case(GONE), of_case(HERE)]
    (found,) = recalled([HERE, OTHER], results, [trip]).trips
    assert (found.there, found.back, found.refused[0].result) == (1, 0, 2)


def test_trips_of_a_session_that_was_stopped_are_kept_until_they_are_made_again(recalled):
    trip = RoundTrip(there=0, back=0, iterations=9)
    assert recalled([HERE], [of_case(HERE)], [trip], complete=False).trips == [trip]


def test_a_result_of_another_form_is_refused_in_a_sentence(recalled):
    odd = {"verdict": "ok", "warm": {"median_ns": 1.0}, "cold": {"median_ns": 1.0}}
    result = of_case(HERE).model_copy(update={"device_time": odd})
    with pytest.raises(UsageError, match="has not the form"):
        recalled([HERE], [result])


@pytest.mark.parametrize("nowhere", [-1, 1])
def test_a_trip_of_a_result_that_is_not_there_is_left_out(recalled, nowhere):
    trip = RoundTrip(there=nowhere, back=0, iterations=9)
    assert recalled([HERE], [of_case(HERE)], [trip]).trips == []


@pytest.mark.parametrize("axis", ["dtypes", "layouts"])
def test_an_array_that_says_nothing_of_itself_can_be_measured_on(axis):
    asked = Request((("numpy", "torch"),), Axes(**{axis: ("unknown",)}), command=("time",))
    assert request_from(asked.as_dict(), ("time",)) == asked


@pytest.mark.parametrize(
    ("earlier_s", "earlier", "cores"),
    [(30.0, 2.0, 1.7), (0.0, 0.0, 0.5), (30.0, None, 0.5)],
)
def test_the_cores_of_others_are_those_of_both_parts_of_a_run(earlier_s, earlier, cores):
    assert resuming.together(7.5, 0.5, earlier_s, earlier) == pytest.approx(cores)


def test_cores_of_others_that_cannot_be_counted_now_are_unknown():
    assert resuming.together(7.5, None, 30.0, 2.0) is None


def test_a_session_of_several_interpreters_is_not_finished(tmp_path):
    path = tmp_path / "s.json"
    session = make_session(of_pair(environment="old"), environments=[{"name": "old"}])
    sessions.write(path, session, session.results)
    with pytest.raises(UsageError, match="holds several interpreters, so it cannot be finished"):
        resuming.resume(path, ("run",))
