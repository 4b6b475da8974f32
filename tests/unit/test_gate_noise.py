"""The noise file: floors that it raises, what it says, and files that are none."""

from __future__ import annotations

import json

import pytest
from builders import make_record

from dlprof.compare.match import key
from dlprof.errors import UsageError
from dlprof.gate.noise import CaseNoise, Noise, Terms, load, raised, said, write
from dlprof.plan.floors import Floor
from dlprof.session.model import CaseRecord

pytestmark = pytest.mark.unit

FLOORS = (Floor(),)


def case(name="a", **changes):
    return CaseRecord.model_validate(
        make_record(**{"import": name, "code": f"{name}(x)", **changes})
    )


def noise(*cases, **changes):
    fields = {
        "created": "2026-01-01",
        "scenario": "s.toml",
        "environment": {},
        "rounds": 8,
        "gate_rounds": 8,
        "budget_s": 300.0,
    }
    return Noise(cases=list(cases), **{**fields, **changes})


def of(name="a", floor=0.1, **changes):
    fields = {
        "measure": "ready",
        "median_ns": 1000.0,
        "processes": 16,
        "spread": 0.02,
        "modes": [],
        "caught": 0.1,
    }
    return CaseNoise(case=case(name), floor=floor, **{**fields, **changes})


@pytest.mark.parametrize(
    ("floor", "relative"),
    [(0.2, 0.2), (0.3, 0.3), (0.5, 0.05), (2.0, 0.05), (0.03, 0.05), (None, 0.05)],
)
def test_a_floor_is_raised_to_what_the_machine_can_tell_and_never_lowered(floor, relative):
    found = raised(noise(of(floor=floor)), [case()], FLOORS, {})
    assert found.get(key(case()), FLOORS)[0].relative == relative


def test_a_floor_of_the_scenario_is_raised_too():
    own = {key(case()): (Floor("ready", 0.1, 200.0),)}
    found = raised(noise(of(floor=0.3)), [case()], FLOORS, own)
    assert found[key(case())] == (Floor("ready", 0.3, 200.0, raised_from=0.1),)
    assert raised(noise(of(floor=0.07)), [case()], FLOORS, own) == own


def test_another_measure_is_not_raised():
    found = raised(noise(of(floor=0.3)), [case()], (Floor("host"),), {})
    assert found == {}


def test_what_it_means_is_said_in_words():
    cases = [case("a"), case("b"), case("c")]
    file = noise(of("a", 0.2), of("b", None))
    told = said(file, cases, raised(file, cases, FLOORS, {}))
    assert told == [
        "Floors raised to what this machine can tell: a(x) 20 %.",
        "Too noisy to gate here (no floor up to 30 % tells): b(x).",
        "Of 1 cases the noise file says nothing.",
    ]


def test_against_a_baseline_it_is_said_that_the_machine_tells_less():
    first, *_ = said(noise(of("a", 0.2)), [case("a")], {}, Terms(in_turns=False))
    assert "measured in turns: against a baseline the machine tells less" in first


@pytest.mark.parametrize(
    ("terms", "told"),
    [
        (Terms(budget_s=60.0), "what a gate of 300 s tells; one of 60 s tells less"),
        (Terms(sample_ns=5_000_000), "of samples of another length (sample_ms): calibrate again"),
    ],
)
def test_a_gate_that_measures_otherwise_says_that_the_file_promises_too_much(terms, told):
    (first,) = said(noise(of("a", 0.01), sample_ns=60_000_000), [case("a")], {}, terms)
    assert told in first


def test_a_file_of_before_samples_were_kept_and_a_longer_gate_need_no_word():
    terms = Terms(budget_s=600.0, sample_ns=5_000_000)
    assert said(noise(of("a", 0.01)), [case("a")], {}, terms) == []


def test_a_file_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "n.json"
    written = noise(of(), of("b", None))
    write(path, written)
    assert load(path) == written


def test_keys_of_a_newer_minor_are_no_obstacle(tmp_path):
    path = tmp_path / "n.json"
    content = {**noise(of()).model_dump(by_alias=True), "schema": "dlprof.noise/1", "more": 1}
    path.write_text(json.dumps(content), encoding="utf-8")
    assert load(path).cases[0].floor == 0.1


@pytest.mark.parametrize(
    ("text", "said_"),
    [
        ("", "not JSON"),
        ("[]", "no schema"),
        ('{"schema": "dlprof.session/1"}', "no schema"),
        ('{"schema": "dlprof.noise/2"}', "was written by a newer dlprof"),
        ('{"schema": "dlprof.noise/10.1"}', "was written by a newer dlprof"),
        ('\ufeff{"schema": "dlprof.noise/1"}', "created"),
        ('{"schema": "dlprof.noise/1"}', "created"),
    ],
)
def test_a_file_that_is_none_is_told_in_one_sentence(tmp_path, text, said_):
    path = tmp_path / "n.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=said_):
        load(path)


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(UsageError, match="cannot read the noise file"):
        load(tmp_path / "n.json")
