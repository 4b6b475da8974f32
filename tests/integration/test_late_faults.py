"""Faults that show late, rarely or at one size are found, and confirmed by their scripts."""

import sys

import pytest
from command_line import PROBE_FILES, dlprof

from dlprof.measuring.judged import load
from dlprof.ticket import ticket as tickets
from dlprof.ticket.reproducer import reproducer

FAULTS = {
    "take_along": ("DLP011", "lifetime", "source_after_drop"),
    "share_copy": ("DLP011", "lifetime", "other_after_drop"),
    "release_there": ("DLP011", "lifetime", "released_by"),
    "crash_at_exit": ("DLP016", "exit", "lost"),
    "main_thread_only": ("DLP008", "values", "in_thread"),
    "four_buffers": ("DLP008", "values", "earlier_result"),
    "keep_each": ("DLP010", "lifetime", "per_source"),
    "late_rows": ("DLP020", "early_write", "sizes_bytes"),
}
HEALTHY = ("view", "copy", "defer")
PAIR = ("habits", "habits", "--probe", PROBE_FILES / "habits.py")


def session_of(tmp_path_factory, *command):
    path = tmp_path_factory.mktemp("habits") / "session.json"
    done = dlprof(*command, "-o", path)
    assert done.code == 0, done.err
    return load(path)


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    own = ("--no-survey", "--shape", "1024x1024", "--rounds", 1)
    return session_of(tmp_path_factory, "run", *PAIR, *own)


def errors_of(session, name):
    """Return the findings that make an import unsafe."""
    return [
        finding
        for finding in session.findings
        if finding.severity != "info"
        and any(session.results[index].case.import_ == name for index in finding.results)
    ]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_by_its_rule_with_its_evidence(session, name):
    rule, instrument, key = FAULTS[name]
    assert rule in {finding.rule for finding in errors_of(session, name)}
    (result,) = (one for one in session.results if one.case.import_ == name)
    evidence = getattr(result, instrument).evidence
    assert getattr(getattr(evidence, "changed", None) or evidence, key)


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_import_of_the_same_library_is_not_blamed(session, name):
    assert errors_of(session, name) == []


@pytest.mark.parametrize("name", FAULTS)
def test_a_script_without_dlprof_shows_the_fault_and_a_copy_lacks_it(session, name):
    rule, *_ = FAULTS[name]
    check_script(session, name, rule)


@pytest.mark.parametrize("name", ["mask_later", "spin_later"])
def test_a_setting_that_a_later_call_changes_is_found_and_shown(session, name):
    check_script(session, name, "DLP025")


def test_times_beside_a_thread_that_runs_for_good_are_not_certain(session):
    times = {one.case.import_: one.host_time.processes for one in session.results}
    assert [process.disturbed for process in times["spin_later"]] == [1.0]
    assert 1.0 not in [process.disturbed for process in times["share_copy"]]


def check_script(session, name, rule):
    finding = next(one for one in errors_of(session, name) if one.rule == rule)
    indices = [i for i in finding.results if session.results[i].case.import_ == name]
    text = reproducer(session, finding.model_copy(update={"results": indices})).text
    healthy = text.replace(f"habits.{name}(", "habits.copy(")
    for script, code in ((text, 1), (healthy, 0)):
        ran = tickets.run(script, sys.executable)
        assert ran.code == code, ran
