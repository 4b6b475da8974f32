"""From a scenario to what is measured: pairs, axes, origins, counts, and how long it may take."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_case, make_catalog, make_probe_info, make_way
from scenario_builders import make_scenario

from dlprof.errors import ScenarioError, UsageError
from dlprof.plan.request import request_from
from dlprof.plan.settings import Settings
from dlprof.scenario.estimate import IMPORT_S, START_S, duration_text, estimate
from dlprof.scenario.pairs import pairs, parse
from dlprof.scenario.request import MOST_CASES, axes_of, check_count, count, settings_of, sweep
from dlprof.scenario.settle import settle

pytestmark = pytest.mark.unit

CATALOG = make_catalog(
    make_probe_info("numpy", aliases=("np",)),
    make_probe_info("torch"),
    make_probe_info("jax", found=False),
)


def made(more="", catalog=CATALOG, **given):
    scenario, origins = settle(make_scenario(more), given, "s.toml")
    return sweep(scenario, origins, Path("s.toml"), "python", lambda *_: catalog)


# Pairs


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["torch->numpy"], [("torch", "numpy")]),
        (["torch->np", "torch->numpy"], [("torch", "numpy")]),
        (["torch<->numpy"], [("torch", "numpy"), ("numpy", "torch")]),
        (["t*->*"], [("torch", "numpy"), ("torch", "torch")]),
        (["jax->numpy"], [("jax", "numpy")]),
        (["j*->numpy"], []),
    ],
    ids=str,
)
def test_a_pair_is_named_by_names_aliases_and_globs(texts, found):
    patterns = [parse(text) for text in texts]
    assert pairs(patterns, CATALOG, ["numpy", "torch"]) == tuple(found)


@pytest.mark.parametrize("text", ["a", "a->", "->b", "a->b->c", "a<-b", "a b->c", "a<->b<->c"])
def test_what_is_no_pair_is_refused(text):
    with pytest.raises(UsageError, match="is not like"):
        parse(text)


# Origins


def test_every_value_says_where_it_comes_from():
    _, origins = settle(make_scenario('shapes = ["4"]\nrounds = 5'), {"rounds": 1}, "s")
    told = {key: (value, origin) for key, value, origin in origins}
    assert told["shapes"] == ("4", "file")
    assert told["rounds"] == ("1", "command line")
    assert told["dtypes"] == ("float32", "default")


def test_the_command_line_stands_over_the_file():
    scenario, _ = settle(make_scenario("rounds = 5"), {"rounds": 1}, "s")
    assert scenario.rounds == 1


def test_a_command_line_that_makes_no_sense_is_refused_as_a_file_would_be():
    with pytest.raises(ScenarioError, match="the command line: dtypes 1: there is no dtype"):
        settle(make_scenario(), {"dtypes": ["float23"]}, "the command line")


# The request


def test_ranges_are_spread_and_named_once():
    axes = axes_of(make_scenario('shapes = ["4..8", 4, "2x2"]'))
    assert axes.shapes == ((4,), (8,), (2, 2))


def test_the_session_tells_all_that_a_request_needs_to_be_finished():
    more = 'expect = ["DLP001 on *->np"]\ndevices = ["cpu", "cuda"]\n[thresholds]\nslow_ratio = 3.0'
    request = made(more).request
    assert request_from(request.as_dict(), request.command) == request
    assert request.scenario.expect == ("DLP001 on *->numpy",)


def test_a_session_that_had_room_for_several_interpreters_is_finished():
    request = made().request
    assert request_from({**request.as_dict(), "environments": []}, request.command) == request


TRIPS = 'round_trips = 9\nreport = "round trip"'


def test_trips_need_a_way_back():
    with pytest.raises(ScenarioError, match="no pair is there in both directions"):
        made(TRIPS)
    assert made(TRIPS, pairs=["torch<->numpy"]).request.settings.round_trips == 9


def test_nothing_is_expected_of_a_pair_that_is_not_measured():
    with pytest.raises(ScenarioError, match=r"expect 2: numpy->torch is none of the pairs"):
        made('expect = ["no error", "DLP001 on numpy->torch"]')
    # What a glob means depends on what is installed.
    assert made('expect = ["DLP001 on jax->*"]', pairs=["*->*"]).request.scenario.expect


def test_a_glob_says_which_frameworks_it_does_not_reach():
    found = made(pairs=["*->*"])
    assert found.request.scenario.left_out == ("jax, which is not installed",)


# Counts


def test_cases_are_counted_without_being_made():
    ways = [make_way("a", code="a({x})"), make_way("b", code="b({x})")]
    catalog = make_catalog(make_probe_info("torch"), make_probe_info("numpy", imports=ways))
    assert count(made('shapes = ["4..8"]\ndtypes = ["int8", "bool"]', catalog)) == 2 * 2 * 2


def test_a_missing_framework_counts_for_nothing():
    assert count(made(pairs=["torch->numpy", "jax->numpy"])) == 1


def test_too_many_cases_must_be_meant():
    check_count(MOST_CASES, meant=False)
    check_count(MOST_CASES + 1, meant=True)
    with pytest.raises(UsageError, match=r"20,001 cases, more than 20,000: add --yes"):
        check_count(MOST_CASES + 1, meant=False)


# Time


def test_more_of_anything_takes_longer():
    cases, settings = [make_case(name="a"), make_case(name="b")], Settings(diagnose=False)
    whole = estimate(cases, settings).total_s
    assert estimate(cases[:1], settings).total_s < whole
    assert estimate(cases, replace(settings, rounds=5)).total_s > whole
    assert estimate(cases, replace(settings, diagnose=True)).total_s > whole
    assert estimate([make_case(shape=(1 << 24,))] * 2, settings).total_s > whole


def test_a_single_round_has_its_imports_and_its_first_calls():
    cases, quick = [make_case(name="a"), make_case(name="b")], Settings(rounds=1, diagnose=False)
    expected = estimate(cases, quick)
    assert expected.starts_s == START_S + 2 * IMPORT_S
    assert 2 * expected.rounds_s > estimate(cases, replace(quick, rounds=2)).rounds_s
    together = [make_case(), make_case("jax"), make_case("tensorflow")]
    one = estimate(together, replace(quick, together=True))
    assert one.starts_s == START_S + 4 * IMPORT_S


def test_loops_and_trips_take_time_of_their_own():
    cases, settings = [make_case(), make_case("numpy", "torch")], Settings(diagnose=False)
    whole = estimate(cases, settings).total_s
    assert estimate(cases, replace(settings, round_trips=100)).trips_s > 0
    assert estimate(cases[:1], replace(settings, round_trips=100)).trips_s == 0
    assert estimate(cases, replace(settings, placements=("convert", "in-loop"))).total_s > whole


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "1 s"), (45, "45 s"), (600, "10 min"), (9000, "2.5 h")]
)
def test_a_duration_is_told_in_its_unit(seconds, text):
    assert duration_text(seconds) == text


def test_placements_and_round_trips_are_settings():
    text = 'placement = ["Hoisted", "in-loop"]\nround_trips = 100\nreport = "round trip"\n'
    settings = settings_of(make_scenario(text))
    assert settings.placements == ("hoisted", "in-loop")
    assert settings.round_trips == 100
    assert settings_of(make_scenario()).placements == ("convert",)
    assert settings_of(make_scenario()).round_trips == 0
