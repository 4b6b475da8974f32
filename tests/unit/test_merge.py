"""From the answers of several rounds to one result, and back."""

from __future__ import annotations

import pytest
from builders import make_answer, make_record, make_timing
from hypothesis import given
from hypothesis import strategies as st

from dlprof.session.merge import agree, merge, unmerge
from dlprof.session.model import Result

pytestmark = pytest.mark.unit

RECORD = make_record()
VIEW = {"verdict": "view", "evidence": {"same_address": True}}
COPY = {"verdict": "copy", "evidence": {"same_address": False}}
FAULTS_FEW, FAULTS_MANY = 0.0, 2000.0


def merged(*answers, rounds=3):
    """The result of answers of rounds 0, 1, 2 ..."""
    return merge(RECORD, list(enumerate(answers)), rounds)


def again(result, rounds=3):
    return merge(RECORD, unmerge(result, rounds), rounds)


def test_several_rounds_are_one_result():
    result = merged(
        make_answer(host_ns=100.0), make_answer(host_ns=102.0), make_answer(host_ns=98.0)
    )
    assert result.status == "ok"
    assert result.rounds == [0, 1, 2]
    assert result.host_time.median_ns == 100.0
    assert [process.round for process in result.host_time.processes] == [0, 1, 2]
    low, high = result.host_time.ci95_ns
    assert low < 100.0 < high


def test_the_minimum_is_that_of_all_samples():
    answers = [make_answer(host_ns=time) for time in (100.0, 90.0, 110.0)]
    smallest = min(
        sample for answer in answers for sample in answer["parts"]["host_time"]["samples_ns"]
    )
    assert merged(*answers).host_time.min_ns == smallest


def test_no_answer_is_skipped():
    result = merged()
    assert (result.status, result.reason) == ("skipped", "the run was stopped before it")
    assert result.host_time is None
    assert result.rounds == []


def test_a_refusal_is_unsupported_in_the_frameworks_words():
    result = merged(make_answer("unsupported", "TypeError: no"))
    assert (result.status, result.reason) == ("unsupported", "TypeError: no")


def test_a_crash_in_a_later_round_keeps_the_earlier_times():
    result = merged(make_answer(host_ns=100.0), make_answer("crashed", "killed by SIGSEGV"))
    assert result.status == "crashed"
    assert result.reason == "killed by SIGSEGV (round 2 of 3; 1 before it worked)"
    assert result.host_time.median_ns == 100.0
    assert result.rounds == [0]


def test_a_disturbed_round_does_not_hide_a_crash_in_a_later_one():
    result = merged(
        make_answer("invalid", "the GPU was throttled"),
        make_answer(),
        make_answer("crashed", "killed by SIGSEGV"),
    )
    assert (result.status, result.reason[:17]) == ("crashed", "killed by SIGSEGV")


def test_what_was_measured_before_a_crash_is_kept():
    answer = make_answer("crashed", "killed by SIGSEGV", parts={"host_time": make_timing(50.0)})
    result = merged(answer)
    assert result.host_time.median_ns == 50.0
    assert result.rounds == []


def test_the_last_output_of_a_crash_is_kept():
    assert (
        merged(make_answer(), make_answer("crashed", "x", output="Fatal error")).output
        == "Fatal error"
    )


def test_the_ready_time_of_a_synchronous_framework_is_the_host_time():
    result = merged(make_answer(host_ns=100.0), make_answer(host_ns=100.0))
    assert result.ready_time.same_as == "host_time"
    assert result.ready_time.processes == []
    assert result.ready_time.median_ns == result.host_time.median_ns


def test_a_ready_time_of_its_own_is_kept_apart():
    result = merged(make_answer(host_ns=100.0, parts={"ready_time": make_timing(900.0)}))
    assert result.ready_time.same_as is None
    assert (result.host_time.median_ns, result.ready_time.median_ns) == (100.0, 900.0)


def test_processes_in_two_modes_are_not_averaged():
    slow = make_answer(parts={"host_time": make_timing(400.0, page_faults=FAULTS_MANY)})
    fast = make_answer(parts={"host_time": make_timing(100.0, page_faults=FAULTS_FEW)})
    time = merged(slow, fast, slow).host_time
    assert time.ci95_ns is None
    assert [(mode.median_ns, mode.rounds) for mode in time.modes] == [(100.0, [1]), (400.0, [0, 2])]
    assert [mode.page_faults_per_call for mode in time.modes] == [FAULTS_FEW, FAULTS_MANY]


def test_processes_in_one_mode_name_no_modes():
    assert merged(make_answer(), make_answer()).host_time.modes == []


def test_verdicts_that_agree_are_the_first_of_them():
    assert merged(*[make_answer(parts={"ownership": VIEW})] * 3).ownership.model_dump() == VIEW


def test_verdicts_that_disagree_vary_and_keep_every_evidence():
    found = agree([VIEW, COPY, VIEW])
    assert found["verdict"] == "varies"
    assert found["evidence"]["reason"] == "copy in 1, view in 2 of 3 processes"
    assert found["evidence"]["processes"] == [VIEW, COPY, VIEW]


def aligned(*sizes):
    each = [{**VIEW, "evidence": {"source_alignment_bytes": size}} for size in sizes]
    return [make_answer(parts={"ownership": one}) for one in each]


def test_all_alignments_of_sources_are_kept():
    result = merged(*aligned(64, 4096, 64))
    assert result.ownership.verdict == "view"
    assert result.ownership.evidence["source_alignments_bytes"] == [64, 4096]
    assert "source_alignments_bytes" not in merged(*aligned(64, 64)).ownership.evidence
    assert "source_alignments_bytes" not in merged(*aligned(None, 64)).ownership.evidence


def test_all_alignments_of_sources_outlast_a_resume():
    before = merged(*aligned(64, 4096))
    answers = [*unmerge(before, 3), (2, aligned(16)[0])]
    again = merge(before.case.model_dump(by_alias=True), answers, 3)
    assert again.ownership.evidence["source_alignments_bytes"] == [16, 64, 4096]


@pytest.mark.parametrize("odd", [5, "64", [[1]], ["a", 64], [None], {}])
def test_odd_alignments_of_a_session_cost_nothing(odd):
    evidence = {"source_alignment_bytes": 64, "source_alignments_bytes": odd}
    answers = [make_answer(parts={"ownership": {"verdict": "view", "evidence": evidence}})]
    result = merged(*answers, *aligned(16))
    assert (result.status, result.ownership.verdict) == ("ok", "view")


def test_ownership_that_differs_between_processes_varies():
    result = merged(make_answer(parts={"ownership": VIEW}), make_answer(parts={"ownership": COPY}))
    assert result.ownership.verdict == "varies"


def test_no_verdict_is_none():
    assert agree([]) is None
    assert merged(make_answer()).ownership is None


def test_the_first_call_is_the_one_with_the_fewest_conversions_before_it():
    calls = [
        {"ns": 5, "cases_before": 3},
        {"ns": 900, "cases_before": 0},
        {"ns": 7, "cases_before": 1},
    ]
    result = merged(*(make_answer(parts={"first_call": call}) for call in calls))
    assert (result.first_call_ns, result.first_call_cases_before) == (900, 0)


def test_phases_are_medians_over_the_processes():
    laps = [
        {
            "export_ns": export,
            "import_ns": 10.0,
            "release_ns": 1.0,
            "resolution_ns": 25.0,
            "count": 9,
        }
        for export in (1.0, 5.0, 3.0)
    ]
    result = merged(*(make_answer(parts={"phases": lap}) for lap in laps))
    assert (result.phases.export_ns, result.phases.import_ns) == (3.0, 10.0)


def test_the_speed_of_a_copy_is_its_bytes_over_the_ready_time():
    cost = {"size_bytes": 1000, "memcpy_gb_per_s": 20.0}
    result = merged(make_answer(host_ns=100.0, parts={"copy_cost": cost}))
    assert result.copy_cost.gb_per_s == pytest.approx(10.0)
    assert result.copy_cost.share_of_memcpy == pytest.approx(0.5)


def test_an_array_without_bytes_has_no_speed():
    assert merged(make_answer(parts={"copy_cost": {"size_bytes": 0}})).copy_cost is None


def device_answer(*samples_ns):
    series = {"median_ns": 0.0, "samples_ns": list(samples_ns)}
    return make_answer(parts={"device_time": {"verdict": "ok", "warm": series, "cold": series}})


def test_device_time_is_the_median_of_the_process_medians_with_an_interval():
    result = merged(device_answer(1.0, 2.0, 9.0), device_answer(3.0), device_answer(7.0))
    warm = result.device_time["warm"]
    assert warm["median_ns"] == 3.0
    assert warm["ci95_ns"][0] < 3.0 < warm["ci95_ns"][1]
    assert [process["round"] for process in warm["processes"]] == [0, 1, 2]


def test_the_device_time_of_one_process_has_no_interval():
    assert merged(device_answer(1.0, 2.0)).device_time["cold"]["ci95_ns"] is None


def test_a_view_that_takes_the_device_no_time_has_no_interval():
    assert merged(device_answer(0.0), device_answer(-1.0)).device_time["warm"]["ci95_ns"] is None


def test_a_device_time_that_is_unknown_stays_so():
    unknown = {"verdict": "unknown", "reason": "the call waits", "warm": None, "cold": None}
    result = merged(make_answer(parts={"device_time": unknown}))
    assert result.device_time.model_dump() == unknown


def test_the_handshake_is_the_newest():
    first, second = [{"call": "__dlpack__"}], [{"call": "import"}]
    result = merged(
        make_answer(parts={"handshake": first}), make_answer(parts={"handshake": second})
    )
    assert [one.call for one in result.handshake] == ["import"]


def test_the_same_note_of_several_rounds_is_told_once():
    answer = make_answer(failures=[{"instrument": "values", "reason": "no"}])
    assert merged(answer, answer).notes == ["values: no"]


@pytest.mark.parametrize(
    "parts",
    [
        {"host_time": {"loops": 1, "samples_ns": []}},
        {"host_time": {"loops": 1, "samples_ns": [None]}},
        {"host_time": {"loops": 1, "samples_ns": ["fast"]}},
        {"host_time": {"loops": 1, "samples_ns": [float("nan")]}},
        {"host_time": {"loops": 1, "samples_ns": [float("inf")]}},
        {"host_time": {"samples_ns": [1.0]}},
        {"host_time": None},
        {"host_time": [1.0]},
        {"ownership": "view"},
        {"ownership": {"evidence": {}}},
        {"ownership": {"verdict": ["view"]}},
        {"first_call": {"ns": 1}},
        {"phases": {"export_ns": 1}},
        {"handshake": "dlpack"},
        {"device_time": 3},
        {"device_time": {"verdict": "ok"}},
        {"device_time": {"verdict": "ok", "warm": {"samples_ns": []}, "cold": None}},
        {"copy_cost": {"size_bytes": 8}},
        {"copy_cost": {"size_bytes": 8, "memcpy_gb_per_s": "fast"}},
        {"copy_cost": {"size_bytes": 8, "memcpy_gb_per_s": 0}},
    ],
    ids=str,
)
def test_an_answer_that_breaks_the_contract_is_a_crash_with_the_reason(parts):
    result = merged(make_answer(parts=parts))
    assert result.status == "crashed"
    assert result.reason.startswith("broken answer from the worker: ")
    assert len(result.reason.splitlines()) == 1


times = st.floats(min_value=0.01, max_value=1e10).map(lambda time: round(time, 2))
timings = st.builds(
    lambda samples, loops, faults: {
        "samples_ns": samples,
        "loops": loops,
        "page_faults_per_call": faults,
    },
    st.lists(times, min_size=1, max_size=4),
    st.integers(1, 1000),
    st.none() | st.floats(0, 1e4),
)
verdicts = st.sampled_from(
    [VIEW, COPY, {"verdict": "unknown", "evidence": {"reason": "no address"}}]
)
phases = st.fixed_dictionaries(
    {f"{name}_ns": times for name in ("export", "import", "release", "resolution")}
)
first_calls = st.fixed_dictionaries({"ns": times, "cases_before": st.integers(0, 9)})
copy_costs = st.fixed_dictionaries(
    {"size_bytes": st.integers(0, 10**9), "memcpy_gb_per_s": st.floats(0.1, 1e3)}
)
handshakes = st.lists(st.fixed_dictionaries({"call": st.text(max_size=5)}), max_size=2)
values = st.sampled_from(
    [{"verdict": "ok", "evidence": {}}, {"verdict": "wrong", "evidence": {"changed": {}}}]
)
device_samples = st.fixed_dictionaries({"samples_ns": st.lists(times, min_size=1, max_size=3)})
device_times = st.just({"verdict": "unknown", "warm": None, "cold": None}) | st.fixed_dictionaries(
    {"verdict": st.just("ok"), "warm": device_samples, "cold": device_samples}
)
parts = st.fixed_dictionaries(
    {"host_time": timings},
    optional={
        "ready_time": timings,
        "ownership": verdicts,
        "values": values,
        "phases": phases,
        "first_call": first_calls,
        "copy_cost": copy_costs,
        "handshake": handshakes,
        "device_time": device_times,
    },
)
failures = st.lists(st.just({"instrument": "values", "reason": "no"}), max_size=1)
measured = st.builds(
    lambda parts, failures: make_answer(parts=parts, failures=failures), parts, failures
)
broken = st.builds(
    lambda status, reason, found, output: make_answer(status, reason, parts=found, output=output),
    st.sampled_from(["crashed", "timeout", "unsupported"]),
    st.text(max_size=20),
    st.just({}) | parts,
    st.none() | st.text(min_size=1, max_size=20),
)


@given(st.lists(measured, max_size=3))
def test_a_result_survives_being_taken_apart_and_merged_again(answers):
    result = merged(*answers)
    assert again(result) == result


@given(st.lists(measured, max_size=2), broken)
def test_a_broken_result_survives_being_taken_apart_and_merged_again(answers, last):
    result = merged(*answers, last)
    assert again(result) == result


@given(st.lists(measured, max_size=2), measured | broken)
def test_a_result_that_was_written_and_read_merges_to_the_same(answers, last):
    result = merged(*answers, last)
    read = Result.model_validate_json(result.model_dump_json(by_alias=True))
    assert again(read) == again(result)


def test_the_last_output_of_a_crash_survives_being_taken_apart():
    result = merged(make_answer("crashed", "killed by SIGSEGV", output="Fatal error"))
    assert again(result).output == "Fatal error"


def test_the_reason_of_a_crash_in_a_later_round_is_not_told_twice():
    result = merged(make_answer(), make_answer("crashed", "killed by SIGSEGV"))
    assert again(result).reason == "killed by SIGSEGV (round 2 of 3; 1 before it worked)"


def test_what_was_measured_before_a_crash_survives_being_taken_apart():
    result = merged(
        make_answer("crashed", "killed by SIGSEGV", parts={"host_time": make_timing(50.0)})
    )
    assert again(result).host_time == result.host_time


def test_a_result_that_was_skipped_is_measured_from_the_start():
    assert unmerge(merged(), 3) == []


def test_a_stopped_run_is_finished_with_further_rounds():
    stopped = merged(make_answer(host_ns=100.0), make_answer(host_ns=104.0))
    answers = [*unmerge(stopped, 3), (2, make_answer(host_ns=96.0))]
    finished = merge(RECORD, answers, 3)
    assert finished == merged(*(make_answer(host_ns=time) for time in (100.0, 104.0, 96.0)))


def test_what_several_processes_said_is_told_of_each_when_more_have_been_asked():
    stopped = merged(make_answer(parts={"ownership": VIEW}), make_answer(parts={"ownership": COPY}))
    answers = [*unmerge(stopped, 3), (2, make_answer(parts={"ownership": VIEW}))]
    owned = merge(RECORD, answers, 3).ownership
    assert owned.verdict == "varies"
    assert [word for word, _ in owned.seen] == ["view", "copy", "view"]


def test_a_wait_that_failed_makes_the_host_time_no_ready_time_later():
    failures = [{"instrument": "ready_time", "reason": "RuntimeError: no"}]
    stopped = merged(make_answer(failures=failures))
    assert stopped.ready_time is None
    finished = merge(RECORD, [*unmerge(stopped, 2), (1, make_answer())], 2)
    assert finished.ready_time is None
    assert finished.notes == stopped.notes


def test_what_a_case_did_beside_others_stays_of_the_round_it_was_tried_again_in():
    company = {"status": "crashed", "reason": "killed by SIGSEGV"}
    result = merged(make_answer(), make_answer(parts={"in_company": company}))
    assert result.in_company.rounds == [1]
    assert again(result) == result


def test_a_diagnosis_is_no_round():
    diagnosis = {**make_answer(), "parts": {"lifetime": {"verdict": "safe", "evidence": {}}}}
    result = merge(RECORD, [(0, make_answer()), (1, diagnosis)], rounds=1)
    assert result.rounds == [0]
    assert result.lifetime.verdict == "safe"
    assert again(result, rounds=1) == result


ROUND = "round 2 was interrupted during phases"
STOPPED = "the diagnosis was interrupted during lifetime"
ORDERED = {"verdict": "host-sync", "evidence": {}}


def interrupted(reason=ROUND, **parts):
    return make_answer("interrupted", reason, parts=parts)


def test_an_interrupted_round_is_told_and_is_no_round():
    result = merged(make_answer(), interrupted(host_time=make_timing(102.0)))
    assert (result.status, result.rounds, result.interrupted) == ("ok", [0], ROUND)
    assert result.notes == [ROUND]
    assert [process.round for process in result.host_time.processes] == [0, 1]


def test_an_interruption_is_told_no_more_when_the_round_has_been_measured():
    stopped = merged(make_answer(), interrupted(host_time=make_timing(102.0)))
    finished = merge(RECORD, [*unmerge(stopped, 2), (1, make_answer())], 2)
    assert (finished.notes, finished.interrupted, finished.rounds) == ([], None, [0, 1])


def test_the_ready_time_of_the_other_rounds_outlasts_an_interrupted_one():
    stop = interrupted("round 2 was interrupted during ready_time", host_time=make_timing(102.0))
    assert merged(make_answer(), stop).ready_time.same_as == "host_time"


def test_a_host_time_is_no_ready_time_where_that_was_interrupted():
    stop = interrupted("round 1 was interrupted during ready_time", host_time=make_timing(102.0))
    assert merged(stop).ready_time is None


def test_a_case_that_was_interrupted_in_its_first_round_is_skipped_and_keeps_what_came():
    stop = interrupted("round 1 was interrupted during phases", ownership=VIEW)
    result = merged(stop)
    assert (result.status, result.rounds) == ("skipped", [])
    assert result.reason == "round 1 was interrupted during phases"
    assert result.ownership.verdict == "view"
    assert unmerge(result, 3) == []


def test_a_round_that_was_measured_again_replaces_the_interrupted_one():
    answers = [
        (0, make_answer()), (1, interrupted(host_time=make_timing(500.0))), (1, make_answer()),
    ]  # fmt: skip
    result = merge(RECORD, answers, 2)
    assert [process.round for process in result.host_time.processes] == [0, 1]
    assert (result.interrupted, result.notes, result.rounds) == (None, [], [0, 1])


def test_an_interrupted_diagnosis_keeps_what_was_found_and_says_nothing_of_the_rest():
    result = merge(RECORD, [(0, make_answer()), (1, interrupted(STOPPED, ordering=ORDERED))], 1)
    assert (result.status, result.interrupted) == ("ok", STOPPED)
    assert result.ordering.verdict == "host-sync"
    assert result.lifetime is None


def test_an_interrupted_diagnosis_is_finished_by_resume():
    result = merge(RECORD, [(0, make_answer()), (1, interrupted(STOPPED, ordering=ORDERED))], 1)
    answers = unmerge(Result.model_validate_json(result.model_dump_json(by_alias=True)), 1)
    assert [(round_, answer["status"]) for round_, answer in answers] == [
        (0, "ok"), (1, "interrupted"),
    ]  # fmt: skip
    assert merge(RECORD, answers, 1) == result
    safe = {"verdict": "safe", "evidence": {}}
    whole = make_answer(parts={"ordering": ORDERED, "lifetime": safe})
    del whole["parts"]["host_time"]
    finished = merge(RECORD, [*answers, (1, whole)], 1)
    assert (finished.interrupted, finished.notes) == (None, [])
    assert finished.lifetime.verdict == "safe"


def test_an_interrupted_round_survives_being_taken_apart():
    result = merged(make_answer(), interrupted(host_time=make_timing(102.0)))
    assert again(result) == result


@pytest.mark.parametrize(
    "reason",
    [
        "killed by SIGSEGV during ready_time",
        "memory ran out during ready_time: the kernel ended the process",
        "no answer within 60 s during ready_time",
    ],
)
def test_the_time_of_the_host_is_not_taken_for_a_ready_time_that_was_lost(reason):
    lost = make_answer("crashed", reason, parts={"host_time": make_timing(50.0)})
    assert merged(lost).ready_time is None


def test_a_copy_in_some_processes_has_no_speed_by_the_times_of_views():
    cost = {"size_bytes": 1000, "memcpy_gb_per_s": 20.0}
    copied = make_answer(parts={"copy_cost": cost, "ownership": COPY})
    assert merged(copied).copy_cost is not None
    result = merged(copied, make_answer(parts={"ownership": VIEW}))
    assert result.copy_cost is None
    assert again(result) == result


def test_a_device_time_that_one_process_could_not_tell_is_told_by_the_others():
    unknown = {"verdict": "unknown", "reason": "the host was slower", "warm": None, "cold": None}
    lost = make_answer(parts={"device_time": unknown})
    for answers in ([device_answer(1.0), lost], [lost, device_answer(1.0)]):
        result = merged(*answers)
        assert result.device_time["warm"]["median_ns"] == 1.0
        assert result.device_time["reason"] == "the host was slower"
        assert again(result).device_time == result.device_time
