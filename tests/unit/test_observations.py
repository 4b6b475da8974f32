"""What each process saw, in words: how sure a finding is beside its times."""

from __future__ import annotations

import pytest
from html_builders import US, case, lost, timed
from repro_builders import finding_of
from rule_builders import varying, verdict

from dlprof.rules import RULES, observed
from dlprof.rules.observations import MOST, ONCE

pytestmark = pytest.mark.unit

SIDE_BY_SIDE = (
    "round by round, in fresh processes: 29 us against 9.8 us, 30 us against 10 us, 31 us against"
    " 10 us"
)


def told(rule, **parts):
    return observed(finding_of(rule), [case(**parts)])


def test_processes_that_agree_are_counted_and_the_first_is_told():
    shared = verdict(
        "view",
        source_write_shows=True,
        result_write_shows=True,
        same_address=True,
        source_alignment_bytes=64,
    )
    (found,) = told("DLP018", ownership=shared)
    assert found == (
        "the same verdict in 3 fresh processes; in the first: a view: a write to either shows in"
        " the other; at the same address; the source began at a multiple of 64 bytes"
    )


def test_where_the_arrays_of_all_processes_began_is_told_apart_from_the_first():
    several = {"source_alignment_bytes": 64, "source_alignments_bytes": [16, 64, 4096]}
    (found,) = told("DLP018", ownership=verdict("view", **several))
    assert found == (
        "the same verdict in 3 fresh processes, of sources at multiples of 16, 64 and 4096 bytes;"
        " in the first: a view: the source began at a multiple of 64 bytes"
    )


def test_processes_that_disagree_are_told_one_by_one():
    found = told("DLP018", ownership=varying(("view", 64), ("copy", 16)))
    assert found == [
        "process 1 of 2: a view: the source began at a multiple of 64 bytes",
        "process 2 of 2: a copy: the source began at a multiple of 16 bytes",
    ]


def test_what_a_call_changed_besides_its_result_is_told_as_it_was_looked_for():
    changed = verdict("wrong", changed={"source": {"different": 1, "of": 9}})
    (found,) = told("DLP008", values=changed)
    assert found.startswith("new arrays were converted one after the other; the sources, and")


def test_one_process_is_not_called_several():
    found = told("DLP004", ownership=verdict("copy", source_write_shows=False), rounds=[0])
    assert found == ["in one process: a copy: a write to the source does not show in the result"]


def test_a_thousand_processes_are_not_all_told():
    found = told("DLP018", ownership=varying(*[("view", 64), ("copy", 16)] * 500))
    assert len(found) == MOST + 1
    assert found[-1] == "and 988 more processes"


def test_the_diagnosis_is_said_to_have_looked_once():
    sizes = {"4096": "whole", "1048576": "torn", "x": "?"}
    (found,) = told("DLP020", early_write=verdict("unsafe", sizes_bytes=sizes))
    assert found == f"written right after the call: 4 KiB whole, 1 MiB torn, x ? ({ONCE})"


def test_values_that_are_gone_with_their_source_are_told():
    (found,) = told("DLP011", lifetime=verdict("dangling", changed_after_drop=True))
    assert "its values had changed" in found
    assert ONCE in found


def test_a_process_that_died_is_told_in_its_own_words():
    crash = lost(status="crashed", reason="SIGSEGV during timing\nmore")
    assert observed(finding_of("DLP016"), [crash]) == ["crashed: SIGSEGV during timing …"]
    (found,) = told("DLP016", lifetime=verdict("unknown", reason="SIGSEGV during lifetime"))
    assert found.startswith("SIGSEGV during lifetime (seen once")


@pytest.mark.parametrize("rule", ["DLP012", "DLP013", "DLP019"])
def test_a_claim_of_times_has_no_other_witness(rule):
    assert told(rule) == []


def test_times_that_are_compared_stand_side_by_side_for_each_process():
    slow, fast = case(median_ns=30 * US), case(median_ns=10 * US)
    found = observed(finding_of("DLP012"), [slow], fast)
    assert found == [SIDE_BY_SIDE]
    assert observed(finding_of("DLP019"), [slow], fast) == []


def test_one_process_gives_no_times_to_compare():
    once = case(host_time=timed(US, rounds=1))
    assert observed(finding_of("DLP012"), [once], once) == []


ODD = [None, 3, [], {}, {"processes": 3}, {"sizes_bytes": []}, {"conversions": "many"}]


@pytest.mark.parametrize("evidence", ODD, ids=str)
@pytest.mark.parametrize("rule", [rule.id for rule in RULES])
def test_evidence_of_any_form_is_told_or_left_out(rule, evidence):
    odd = {"verdict": "varies", "evidence": {"processes": [evidence], "x": evidence}}
    names = ("ownership", "values", "ordering", "lifetime", "early_write", "peak_memory")
    assert all(isinstance(line, str) for line in told(rule, **dict.fromkeys(names, odd)))


def test_hostile_words_are_made_fit_to_be_shown():
    (found,) = told("DLP018", ownership=verdict("\x1b[31m\ud800"))
    assert found.isprintable()
