"""Merging: the answers of several rounds become one result."""

import pytest
from builders import make_answer, make_measure, make_record, make_timing
from step_builders import step_case

from dlprof.runner.merge import break_even, merge, merge_placement
from dlprof.runner.session import Share

RECORD = make_record()
VIEW = {"verdict": "view", "evidence": {"same_address": True}}
COPY = {"verdict": "copy", "evidence": {"same_address": False}}


def merged(*answers, rounds=3):
    """Merge the answers of rounds 0, 1, 2 ..."""
    return merge(RECORD, list(enumerate(answers)), rounds)


def test_several_rounds_are_one_result():
    result = merged(*(make_answer(host_ns=time) for time in (100.0, 102.0, 98.0)))
    assert result.status == "ok"
    assert result.rounds == [0, 1, 2]
    time = result.host_time
    assert time.median_ns == 100.0
    assert [process.round for process in time.processes] == [0, 1, 2]
    assert time.ci95_ns[0] < 100.0 < time.ci95_ns[1]
    assert time.min_ns == min(min(process.samples_ns) for process in time.processes)


def test_an_interval_does_not_begin_below_the_fastest_sample():
    time = merged(*(make_answer(host_ns=time) for time in (100.0, 101.0, 300.0))).host_time
    assert time.ci95_ns[0] == time.min_ns


def test_a_crash_in_a_later_round_keeps_the_earlier_times():
    result = merged(make_answer(), make_answer("crashed", "killed by SIGSEGV", output="last words"))
    assert result.status == "crashed"
    assert result.reason.startswith("killed by SIGSEGV (round 2 of 3")
    assert result.host_time.median_ns == 100.0
    assert (result.rounds, result.output) == ([0], "last words")


def test_the_ready_time_of_a_synchronous_framework_is_the_host_time():
    ready = merged(make_answer(host_ns=100.0)).ready_time
    assert (ready.same_as, ready.median_ns) == ("host_time", 100.0)


@pytest.mark.parametrize("status", ["crashed", "timeout", "skipped"])
def test_the_host_time_does_not_replace_a_lost_ready_time(status):
    parts = {"host_time": make_timing(50.0)}
    assert merged(make_answer(status, stage="ready_time", parts=parts)).ready_time is None


def owned(*verdicts):
    """Merge the ownership of processes with these verdicts."""
    return merged(*(make_answer(parts={"ownership": one}) for one in verdicts)).ownership


def test_verdicts_that_agree_give_the_first():
    assert owned(VIEW, VIEW, VIEW).model_dump() == VIEW


def test_verdicts_that_disagree_vary_and_keep_every_evidence():
    found = owned(VIEW, COPY, VIEW).model_dump()
    assert found["verdict"] == "varies"
    assert found["evidence"]["reason"].startswith("copy in 1, view in 2 ")
    assert found["processes"] == [VIEW, COPY, VIEW]


def lifetimes(whole, *brief):
    """Merge a diagnosis after two rounds, and brief looks of the timed processes."""
    words = [(2, whole), *enumerate(brief, 4)]
    answers = [
        (round_, {**make_answer(), "parts": {"lifetime": {"verdict": word, "evidence": {}}}})
        for round_, word in words
    ]
    return merge(RECORD, answers, 2).lifetime


def test_a_lifetime_is_safe_if_no_process_speaks_against_it():
    assert lifetimes("safe", "safe", "safe").verdict == "safe"
    assert (
        lifetimes("safe", "safe", "dangling").how_often("dangling") == "Seen in 1 of 3 processes."
    )
    assert lifetimes("safe", "unknown", "safe").verdict == "varies"


def test_a_brief_look_at_a_lifetime_does_not_excuse_what_only_the_whole_one_sees():
    assert lifetimes("retained", "safe", "safe").verdict == "retained"


def test_only_processes_that_repeated_the_conversion_are_asked_about_leaks():
    found = lifetimes("retained", "unknown", "unknown")
    looks = [("retained", {"conversions": 200}), ("unknown", {}), ("unknown", {})]
    processes = [{"verdict": word, "evidence": evidence} for word, evidence in looks]
    found = type(found).model_validate({"verdict": "varies", "processes": processes})
    assert found.how_often("retained") == ""


def test_copies_on_several_devices_do_not_agree():
    def copy_on(device):
        return {**COPY, "evidence": {"result_device": device}}

    found = owned(copy_on("cuda"), copy_on("cpu"))
    assert found.verdict == "varies"
    assert found.evidence.reason == "the results are on cpu and cuda"
    assert owned(copy_on("cuda"), copy_on("cuda")).verdict == "copy"


@pytest.mark.parametrize(
    ("sizes", "kept"), [((64, 4096, 64), [64, 4096]), ((64, 64), None), ((None, 64), None)]
)
def test_all_alignments_of_sources_are_kept(sizes, kept):
    found = owned(*({**VIEW, "evidence": {"source_alignment_bytes": size}} for size in sizes))
    assert found.verdict == "view"
    alignments = found.evidence.source_alignments_bytes
    assert (alignments and list(alignments)) == kept


def test_the_first_call_is_the_one_with_the_fewest_conversions_before_it():
    calls = [{"ns": ns, "cases_before": before} for ns, before in ((5, 3), (900, 0), (7, 1))]
    result = merged(*(make_answer(parts={"first_call": call}) for call in calls))
    assert (result.first_call_ns, result.first_call_cases_before) == (900, 0)


COST = {"size_bytes": 1000, "memcpy_gb_per_s": 20.0}


def test_the_speed_of_a_copy_is_its_bytes_over_the_ready_time():
    result = merged(make_answer(host_ns=100.0, parts={"copy_cost": COST}))
    assert result.copy_cost.gb_per_s == pytest.approx(10.0)
    assert result.copy_cost.share_of_memcpy == pytest.approx(0.5)


def test_a_path_that_does_not_always_copy_has_no_speed():
    copied = make_answer(parts={"copy_cost": COST, "ownership": COPY})
    assert merged(copied).copy_cost is not None
    assert merged(copied, make_answer(parts={"ownership": VIEW})).copy_cost is None
    assert merged(make_answer(parts={"copy_cost": {"size_bytes": 0}})).copy_cost is None


def device_time_of(*answers):
    return merged(*answers).model_dump()["device_time"]


def device_answer(*samples_ns):
    series = {"median_ns": 0.0, "samples_ns": list(samples_ns)}
    return make_answer(parts={"device_time": {"verdict": "ok", "warm": series, "cold": series}})


UNKNOWN = {"verdict": "unknown", "reason": "the host was slower", "warm": None, "cold": None}


def test_device_time_is_the_median_of_the_process_medians_with_an_interval():
    answers = device_answer(1.0, 2.0, 9.0), device_answer(3.0), device_answer(7.0)
    warm = device_time_of(*answers)["warm"]
    assert warm["median_ns"] == 3.0
    assert warm["ci95_ns"][0] < 3.0 < warm["ci95_ns"][1]
    assert [process["round"] for process in warm["processes"]] == [0, 1, 2]


def test_a_device_time_missing_in_one_process_comes_from_the_others():
    lost = make_answer(parts={"device_time": UNKNOWN})
    for answers in ([device_answer(1.0), lost], [lost, device_answer(1.0)]):
        found = device_time_of(*answers)
        assert (found["warm"]["median_ns"], found["reason"]) == (1.0, "the host was slower")
    assert device_time_of(lost) == UNKNOWN


@pytest.mark.parametrize(
    ("verdict", "device", "warm_ns", "told"),
    [
        ("copy", "cuda", 0.0, "unknown"),
        ("copy", "cuda", 3_000.0, "ok"),
        ("copy", "cpu", 0.0, "ok"),
        ("view", "cuda", 0.0, "ok"),
    ],
)
def test_a_copy_without_time_on_the_consumers_stream_has_no_device_time(
    verdict, device, warm_ns, told
):
    owned = {"verdict": verdict, "evidence": {"result_device": device}}
    answer = device_answer(warm_ns)
    answer["parts"]["device_time"] |= {"resolution_ns": 500.0, "spin_ns": 1, "host_ns": 1}
    answer["parts"]["ownership"] = owned
    assert device_time_of(answer)["verdict"] == told


@pytest.mark.parametrize(
    "parts",
    [
        {"host_time": {"loops": 1, "samples_ns": []}},
        {"host_time": {"loops": 1, "samples_ns": [float("nan")]}},
        {"host_time": None},
        {"ownership": {"verdict": ["view"]}},
        {"first_call": {"ns": 1}},
        {"device_time": 3},
        {"copy_cost": {"size_bytes": 8, "memcpy_gb_per_s": 0}},
    ],
    ids=str,
)
def test_an_answer_that_breaks_the_contract_is_a_crash_with_the_reason(parts):
    result = merged(make_answer(parts=parts))
    assert result.status == "crashed"
    assert result.reason.startswith("broken answer")
    assert len(result.reason.splitlines()) == 1


# Loops

SURE = Share(median=0.5, ci95=(0.4, 0.6))


def timings(times):
    return {name: make_timing(ns) for name, ns in times.items()}


def placement(*rounds):
    """Merge the loops of several processes; each is its time in the loop, and hoisted."""
    told = {"use": "add(x, 1)", "refused": {"implicit": "no"}}
    found = [
        (round_, {"placement": {**told, "times": timings(times)}})
        for round_, times in enumerate(rounds)
    ]
    return merge_placement(found, make_measure(50.0))


def loops(in_loop, hoisted):
    return {"in-loop": in_loop, "hoisted": hoisted}


def test_each_process_compares_its_own_two_loops():
    # One process of a busy machine is ten times as slow in both loops.
    found = placement(loops(100.0, 50.0), loops(1000.0, 500.0), loops(104.0, 52.0))
    assert found.share.median == pytest.approx(0.5)
    assert found.share.ci95 == pytest.approx((0.5, 0.5))
    assert (found.in_loop.median_ns, found.refused) == (104.0, {"implicit": "no"})


@pytest.mark.parametrize(
    ("convert", "in_loop", "hoisted", "share", "expected"),
    [
        (50.0, 100.0, 50.0, SURE, 2),
        (10.0, 100.0, 50.0, SURE, 2),
        (500.0, 100.0, 50.0, SURE, 11),
        (50.0, 100.0, 50.0, Share(median=0.5, ci95=(-0.1, 0.6)), None),
        (50.0, 100.0, 50.0, Share(median=0.5), None),
        (50.0, 100.0, 50.0, Share(median=0.5, ci95=(0.1, 0.8)), None),
        (50.0, 100.0, 50.0, None, None),
        (50.0, 50.0, 50.0, SURE, None),
    ],
)
def test_hoisting_pays_once_it_has_saved_its_conversion(convert, in_loop, hoisted, share, expected):
    measures = [make_measure(ns) for ns in (convert, in_loop, hoisted)]
    assert break_even(*measures, share) == expected


# Steps of inference


def step_parts(step=90.0, fresh=100.0, word="overwritten"):
    versus = {"step": step, "fresh": fresh, "reading": 2 * step}
    change = {"steady": 100.0, "other": 60.0, "changing": 400.0}
    return {
        "versus": {"times": timings(versus)},
        "shape_change": {"shape": [2, 3], "times": timings(change)},
        "reuse": {"verdict": word, "evidence": {"after_calls": 1}},
        "allocations": {"per_call": 2.0, "kept": 8, "buffers": 1},
    }


def step_of(*found):
    answers = [(round_, make_answer(parts=one)) for round_, one in enumerate(found)]
    return merge(step_case(), answers, len(found)).step


def test_each_process_compares_its_own_steps():
    found = step_of(step_parts(), step_parts(900.0, 1000.0), step_parts(91.0, 101.0))
    assert found.saved.median == pytest.approx(0.1, abs=0.002)
    assert found.saved.ci95[0] > 0.09
    # A turn of the loop that changes has both shapes, and two changes.
    assert found.change_ns == pytest.approx(120.0, rel=0.01)


def test_a_step_has_only_measured_values():
    nothing = step_parts()
    nothing["versus"]["times"]["fresh"]["samples_ns"] = [0.0] * 5
    assert step_of(nothing).saved is None
    one = step_of(step_parts())
    assert (one.saved.ci95, one.change_ci95_ns) == (None, None)
    assert merge(step_case(protocol="dlpack"), [(0, make_answer())], 1).step is None
