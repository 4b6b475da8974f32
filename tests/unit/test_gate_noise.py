"""The noise file: the floors of a machine against itself, and what a gate makes of them."""

import json
import re
from dataclasses import replace

import pytest
from builders import MACHINE, make_record
from comparison_builders import sample

from dlprof.compare.matching import key
from dlprof.compare.noise import (
    Calibrated,
    CaseNoise,
    Noise,
    across_of,
    check_machine,
    floor_of,
    load,
    raised,
    write,
)
from dlprof.compare.sequential import IN_TURNS, begin, look
from dlprof.errors import Unsure, UsageError
from dlprof.judge.slower import SAME, SLOWER
from dlprof.report.machine import calibration_document
from dlprof.runner.floors import Floor
from dlprof.runner.header import Environment
from dlprof.runner.session import CaseRecord

FLOORS = (Floor(),)
HERE = Environment.model_validate({**MACHINE, "cpu": "a"})
LEVEL = IN_TURNS.level * IN_TURNS.shares[-1]


def case(name="a"):
    return CaseRecord.model_validate(make_record(**{"import": name, "code": f"{name}(x)"}))


def noise(*cases, **changes):
    fields = {
        "created": "2026-01-01",
        "scenario": "s.toml",
        "environment": {},
        "rounds": 8,
        "budget_s": 300.0,
        "sample_ns": 40_000_000,
        "allocator": "steady",
    }
    return Noise(cases=list(cases), **{**fields, **changes})


def of(name="a", floor=0.1):
    times = {
        "measure": "ready",
        "median_ns": 1000.0,
        "processes": 16,
        "spread": 0.02,
        "across": None,
    }
    return CaseNoise(case=case(name), floor=floor, **times)


def test_the_floor_of_two_sessions_holds_what_the_machine_drifts_meanwhile():
    quiet = sample(sd=0.001)
    assert across_of(quiet) == pytest.approx(0.07, abs=0.005)
    slow = [replace(one, time_ns=1.3 * one.time_ns) for one in quiet.head[16:]]
    late = [replace(one, time_ns=1.3 * one.time_ns) for one in quiet.base[16:]]
    drifted = replace(quiet, base=(*quiet.base[:16], *late), head=(*quiet.head[:16], *slow))
    assert across_of(drifted) == pytest.approx(1.07 * 1.3 - 1, abs=0.01)
    assert across_of(sample(sd=0.001, faults=[0.0, 300.0] * 16)) is None


def test_a_noise_file_of_another_allocator_is_refused():
    with pytest.raises(Unsure, match="calibrate --allocator system"):
        check_machine(noise(of(), environment=MACHINE), HERE, "system")


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        ({}, "not known"),
        ({**MACHINE, "cpu": "b"}, "cpu b → a"),
        ({"machine_id": "other", "boot_id": "other"}, "machine id other"),
    ],
)
def test_a_noise_file_of_another_machine_or_of_an_unknown_one_is_refused(machine, reason):
    with pytest.raises(Unsure, match=reason):
        check_machine(noise(of(), environment=machine), HERE, "steady")


def test_a_noise_file_of_other_tunables_is_refused():
    told = noise(of(), environment={**MACHINE, "variables": {"GLIBC_TUNABLES": "a=1"}})
    with pytest.raises(Unsure, match="other GLIBC_TUNABLES"):
        check_machine(told, HERE, "steady")


def test_a_noise_file_of_another_governor_is_refused():
    here = HERE.model_copy(update={"governor": "powersave"})
    told = noise(of(), environment={**MACHINE, "cpu": "a", "governor": "performance"})
    with pytest.raises(Unsure, match="another CPU governor performance → powersave"):
        check_machine(told, here, "steady")


def test_a_noise_file_from_before_a_restart_counts():
    before = noise(of(), environment={**MACHINE, "boot_id": "before"})
    check_machine(before, HERE, "steady")


@pytest.mark.parametrize(
    "sd", [0.02, *(pytest.param(sd, marks=pytest.mark.nightly) for sd in (0.005, 0.06))]
)
def test_by_the_floor_of_a_case_equal_code_is_the_same_and_slower_code_is_found(sd):
    floor = floor_of(sample(sd=sd), LEVEL)
    words = {
        ratio: [
            look(begin(IN_TURNS, 1), [sample(ratio, sd=sd, floor=floor, seed=seed)]).words[0]
            for seed in range(2, 42)
        ]
        for ratio in (1.0, 1 + floor)
    }
    assert SLOWER not in words[1.0]
    assert words[1.0].count(SAME) >= 36
    assert words[1 + floor].count(SLOWER) >= 38


def test_a_noisier_case_has_a_larger_floor_and_more_rounds_a_smaller_one():
    assert floor_of(sample(sd=0.01), LEVEL) < floor_of(sample(sd=0.04), LEVEL)
    assert floor_of(sample(sd=0.04, rounds=64), LEVEL) < floor_of(sample(sd=0.04, rounds=16), LEVEL)


def test_processes_in_modes_have_no_floor():
    assert floor_of(sample(sd=0.01, faults=[0.0, 300.0] * 16), LEVEL) is None


@pytest.mark.parametrize(
    ("floor", "relative"),
    [(0.2, 0.2), (0.3, 0.3), (0.5, 0.05), (0.03, 0.05), (None, 0.05)],
)
def test_a_floor_is_raised_to_what_the_machine_can_tell_and_never_lowered(floor, relative):
    found = raised(noise(of(floor=floor)), [case()], FLOORS, {})
    assert found.get(key(case()), FLOORS)[0].relative == relative


def test_a_floor_of_the_scenario_is_raised_too():
    own = {key(case()): (Floor("ready", 0.1, 200.0),)}
    found = raised(noise(of(floor=0.3)), [case()], FLOORS, own)
    assert found[key(case())] == (Floor("ready", 0.3, 200.0, raised_from=0.1),)
    assert raised(noise(of(floor=0.07)), [case()], FLOORS, own) == own
    assert raised(noise(of(floor=0.3)), [case()], (Floor("host"),), {}) == {}


def test_a_calibration_names_what_is_too_noisy_to_gate():
    found = Calibrated(noise(of("a", 0.1), of("b", 2.0), of("c", None)), (case("d"),))
    document = calibration_document(found)
    gated, noisy, lost = (answer.note for answer in document.answers)
    assert "1 of 3" in gated
    assert "10 %" in gated
    assert {"b(x)", "c(x)"} <= set(re.findall(r"\w\(x\)", noisy))
    assert lost == "d(x)"
    assert "200 %" in {cell.text for row in document.tables[0].rows for cell in row}


def test_a_file_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "n.json"
    written = noise(of(), of("b", None))
    write(path, written)
    assert load(path) == written
    later = {**json.loads(path.read_text(encoding="utf-8")), "more": 1}
    path.write_text(json.dumps(later), encoding="utf-8")
    assert load(path).cases == written.cases


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("[]", "no schema"),
        ('{"schema": "dlprof.session/1"}', "no schema"),
        ('{"schema": "dlprof.noise/2"}', "newer dlprof"),
        ('{"schema": "dlprof.noise/1"}', "created"),
        (None, "cannot read"),
    ],
)
def test_a_file_that_is_none_is_told_in_one_sentence(tmp_path, text, reason):
    path = tmp_path / "n.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=reason):
        load(path)
