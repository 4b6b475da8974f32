"""Floors of single cases in a scenario file."""

import pytest
from builders import make_catalog, make_header, make_probe_info, make_record
from comparison_builders import compared, only_words, suite, timed
from scenario_builders import make_scenario, make_sweep

from dlprof.cli.comparison import rules_of
from dlprof.compare.comparison import exit_code
from dlprof.compare.criteria import own_floors
from dlprof.compare.matching import key
from dlprof.errors import ScenarioError
from dlprof.report.comparison_answers import answers_of
from dlprof.runner.floors import DEFAULT, Floor, FloorRule, idle
from dlprof.runner.session import CaseRecord


def case(**changes):
    return CaseRecord.model_validate(make_record(**changes))


@pytest.mark.parametrize(
    "glob", ["numpy.from_dlpack(x)", "dlpack->from_dlpack", "torch->numpy", "*from_dlpack*"]
)
def test_a_rule_names_cases_by_code_path_or_pair(glob):
    rules = [FloorRule(glob, relative=0.2), FloorRule("jax->*")]
    assert own_floors(rules, [case()], DEFAULT) == {key(case()): (Floor("ready", 0.2, 5.0),)}
    assert idle(rules, iter([case()])) == ["jax->*"]


@pytest.mark.parametrize(
    ("rules", "floors"),
    [
        ([FloorRule("*", absolute_ns=200.0)], (Floor("ready", 0.05, 200.0),)),
        ([FloorRule("*", relative=0.2), FloorRule("*", relative=0.3)], (Floor("ready", 0.3),)),
        ([FloorRule("*", "host", 0.2)], (*DEFAULT, Floor("host", 0.2))),
        ([FloorRule("*", times=False)], ()),
        ([FloorRule("*", times=False), FloorRule("*", relative=0.3)], (Floor("ready", 0.3),)),
    ],
)
def test_the_last_rule_counts_and_what_it_does_not_say_is_as_for_all_cases(rules, floors):
    assert own_floors(rules, [case()], DEFAULT) == {key(case()): floors}


def without_times(name):
    return {key(suite()["abcdefgh".index(name)].case): ()}


def test_a_case_without_times_is_judged_by_its_verdicts():
    own = without_times("c")
    found = compared(suite(), suite({"c": 3.0}, seed=9), own_floors=own)
    assert (exit_code(found), only_words(found).get("c")) == (0, None)
    assert "7 same" in answers_of(found)[0].note
    copies = {"ownership": {"verdict": "copy", "evidence": {}}}
    assert exit_code(compared(suite(), suite(seed=9, **copies), own_floors=own)) == 1


def test_where_no_case_has_times_to_be_judged_verdicts_are_compared():
    own = without_times("a")
    sides = suite(names="a"), suite({"a": 3.0}, seed=9, names="a")
    found = compared(*sides, own_floors=own)
    assert exit_code(found) == 0
    assert "verdicts of 1 case" in answers_of(found)[0].note
    crashed = [timed("a", status="crashed", reason="killed")]
    assert exit_code(compared(suite(names="a"), crashed, own_floors=own)) == 1
    skipped = [timed("a", status="skipped", reason="it was stopped")]
    assert exit_code(compared(suite(names="a"), skipped, own_floors=own), 0) == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('case = "*"', "times = false"),
        ('case = "*"\ntimes = true', "expected False"),
        ('case = "*"\npercent = 0', "above 0"),
        ('case = "*"\npercent = -1', "equal to 0"),
        ("percent = 1", "floor 1, case is missing"),
        ('case = "*"\npercent = 1\nmeasure = "device"', "expected 'ready' or 'host'"),
    ],
)
def test_a_floor_that_makes_no_sense_is_told(text, said):
    with pytest.raises(ScenarioError, match=r"s\.toml") as refused:
        make_scenario(f"[[floor]]\n{text}\n")
    assert said in str(refused.value)


def test_a_session_tells_of_the_floors_of_its_scenario():
    catalog = make_catalog(make_probe_info("numpy"), make_probe_info("torch"))
    request = make_sweep(catalog, '[[floor]]\ncase = "*"\npercent = 10').request
    assert rules_of(make_header(request=request.as_dict())) == (FloorRule("*", relative=0.1),)


@pytest.mark.parametrize(
    "floors", [None, 3, [{"case": 3}], [{"glob": "*"}], [{"case": "*", "relative": -5.0}]]
)
def test_floors_of_a_session_that_make_no_sense_are_none(floors):
    header = make_header(request={"scenario": {"floors": floors}})
    assert rules_of(header) == ()
