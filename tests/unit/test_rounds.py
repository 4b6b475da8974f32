"""The rounds: shuffled, crash-proof, and stopped by the budget; with workers without processes."""

from contextlib import closing
from dataclasses import replace
from unittest.mock import patch

import pytest
from builders import make_answer, make_case, make_record
from scripted_workers import ScriptedWorkers

from dlprof.protocol.messages import DIAGNOSIS, NO_CUPTI
from dlprof.runner import rounds, worker_client
from dlprof.runner.case_client import ALIGNMENT, TRACE
from dlprof.runner.merge import merge
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Settings
from dlprof.runner.rounds import Runner
from dlprof.runner.session import Company
from dlprof.runner.session_file import SessionFile
from dlprof.runner.survey import SHAPE
from dlprof.runner.worker_client import Workers


class Watched(Watcher):
    def __init__(self):
        self.total = None
        self.done = 0

    def start(self, total, limit_s=None, rounds=0):
        self.total = total

    def step(self, work=1):
        self.done += work


@pytest.fixture
def workers(monkeypatch):
    workers = ScriptedWorkers()
    monkeypatch.setattr(rounds, "processors", lambda: 2)
    with patch.object(worker_client, "start", workers):
        yield workers


@pytest.fixture
def file(tmp_path):
    with closing(SessionFile(tmp_path / "session.json", {})) as file:
        yield file


def cases_of(count, **changes):
    return [make_case(name=f"import{index}", **changes) for index in range(count)]


def run(cases, file, watcher=None, **settings):
    settings = Settings(**{"diagnose": False, "alignment": False} | settings)
    ran = Runner(Workers("python", {}), cases, settings, file, watcher or Watcher())
    ran.run()
    return ran


def statuses(file, case):
    return [(round_, answer["status"]) for round_, answer in file.answers(case)]


def test_every_round_measures_every_case_once_in_fresh_workers(workers, file):
    run(cases_of(5), file, rounds=3)
    assert [statuses(file, case) for case in range(5)] == [[(0, "ok"), (1, "ok"), (2, "ok")]] * 5
    assert [len(asked) for asked in workers.asked] == [5, 5, 5]


@pytest.mark.parametrize("refuses", [set(), {"import1"}], ids=["works", "is refused itself"])
def test_a_path_that_breaks_its_process_makes_no_other_unsupported(workers, file, refuses):
    workers.spoils, workers.refuses = {"import1"}, refuses
    run(cases_of(6), file, rounds=3)
    good = [found for case in range(6) if case != 1 or not refuses
            for found in statuses(file, case)]  # fmt: skip
    assert set(good) == {(0, "ok"), (1, "ok"), (2, "ok")}
    notes = {
        str(note) for case in range(6) for note in merge(make_record(), file.answers(case), 3).notes
    }
    assert [note.endswith(": TypeError: no") for note in notes] == [True]


def test_calls_of_one_function_that_were_refused_alike_are_confirmed_in_one_process(workers, file):
    workers.refuses = {f"import{index}" for index in range(4)}
    same = [replace(case.path.import_, code="take({x})") for case in cases_of(4)]
    paths = [replace(case.path, import_=one) for case, one in zip(cases_of(4), same, strict=True)]
    cases = [replace(case, path=path) for case, path in zip(cases_of(4), paths, strict=True)]
    run(cases, file, rounds=1)
    assert [len(asked) for asked in workers.asked if asked] == [4, 3]


@pytest.mark.parametrize("times", [True, False])
def test_a_run_without_times_imports_for_the_diagnosis_of_a_device_at_once(workers, file, times):
    run(cases_of(2, device="cuda"), file, rounds=1, diagnose=True, times=times)
    assert len(workers.imported) == (0 if times else 2)


@pytest.mark.parametrize(
    ("together", "groups"), [(False, [["a", "c"], ["b"]]), (True, [["a", "b", "c"]])]
)
def test_each_pair_has_workers_of_its_own_unless_all_are_together(workers, file, together, groups):
    pairs = (("torch", "numpy", "a"), ("numpy", "torch", "b"), ("torch", "numpy", "c"))
    run([make_case(*pair) for pair in pairs], file, rounds=1, together=together)
    assert sorted(sorted(asked) for asked in workers.asked) == groups


def test_the_order_differs_in_each_round_and_is_the_same_in_each_run(workers, tmp_path):
    orders = []
    for name in ("first", "again"):
        workers.asked = []
        with closing(SessionFile(tmp_path / name, {})) as file:
            run(cases_of(8), file, rounds=2)
        orders.append([tuple(asked) for asked in workers.asked])
    assert orders[0] == orders[1]
    assert len({*orders[0], tuple(f"import{index}" for index in range(8))}) == 3


def test_a_dead_worker_is_replaced_and_the_others_are_measured(workers, file):
    workers.dies = {"import2"}
    run(cases_of(6), file, rounds=1)
    assert [asked for asked in workers.asked if asked == ["import2"]]  # once more, alone
    assert all(statuses(file, case) == [(0, "ok")] for case in (0, 1, 3, 4, 5))
    ((_, answer),) = file.answers(2)
    assert (answer["reason"], answer["output"]) == ("killed by SIGSEGV, import2", "last words")


def test_an_array_that_ends_its_process_when_it_is_made_is_made_once(workers, file):
    workers.dies_of_dtype, workers.stage = "float32", "create"
    run(cases_of(6), file, rounds=2)
    assert len(workers.order()) == 1
    assert all(statuses(file, case) == [(0, "crashed")] for case in range(6))
    assert {file.answers(case)[0][1]["output"] for case in range(6)} == {"last words"}


# The survey


def surveyed(*names, **changes):
    return [make_case(name=name, **PLAIN, **changes) for name in names]


PLAIN = {"shape": SHAPE, "layout": "aligned", "surveyed": True}


@pytest.mark.parametrize("refuses", [set(), {"import1"}], ids=["works", "is refused itself"])
def test_a_case_refused_in_a_survey_is_retried_alone_after_the_paths_plain_array(
    workers, file, refuses
):
    workers.spoils, workers.refuses = {"import0"}, refuses
    cases = [*surveyed("import0", "import1"), *surveyed("import1", dtype="int8")]
    run(cases, file)
    status = "unsupported" if refuses else "ok"
    assert [statuses(file, case)[0][1] for case in range(3)] == ["ok", status, status]
    assert workers.asked[-1] == ["import1", "import1"]
    assert ("in_company" in file.answers(2)[0][1]["parts"]) == (not refuses)


@pytest.mark.parametrize("parts", [
    {"settings": {"verdict": "changed", "evidence": {}}},
    {"values": {"verdict": "wrong", "evidence": {"changed": {"values": {}}}}},
    {"ownership": {"verdict": "view", "evidence": {}}},
], ids=lambda parts: next(iter(parts)))  # fmt: skip
def test_a_fault_that_a_rule_would_blame_is_confirmed_in_a_process_without_other_conversions(
    workers, file, parts
):
    workers.gives = {"import1": parts}
    cases = surveyed("import0", "import1")
    promising = replace(cases[1].path, import_=replace(cases[1].path.import_, promise="copy"))
    run([cases[0], replace(cases[1], path=promising)], file)
    assert workers.order().count("import1") == 2
    (name,) = parts
    assert file.answers(1)[0][1]["parts"][name] == parts[name]


def test_wrong_values_that_only_another_path_causes_are_not_kept(workers, file):
    workers.corrupts = {"import0": "import1"}
    run(surveyed("import0", "import1"), file)
    ((_, answer),) = file.answers(1)
    assert "values" not in answer["parts"]
    assert answer["parts"]["in_company"]["reason"] == "its values were wrong"


def test_refusals_break_a_path_only_in_a_process_without_others(workers, file):
    workers.jams = {"import0"}
    run([*surveyed("import0"), *surveyed("import0", dtype="complex64")], file)
    assert file.answers(1)[0][1]["parts"]["refusal"]["verdict"] == "broken"


def test_a_path_that_ended_three_processes_of_its_own_gets_no_other_array(workers, file):
    workers.dies = {"import0"}
    arrays = [make_case(name="import0", shape=(size,), surveyed=True) for size in range(1, 6)]
    run([*arrays, *surveyed("import1")], file)
    found = [statuses(file, case)[0][1] for case in range(6)]
    assert found == ["crashed"] * 4 + ["skipped"] + ["ok"]
    assert workers.open == 0


def test_an_array_is_converted_itself_if_the_paths_plain_array_ends_its_process(workers, file):
    workers.dies_of_dtype = "float32"
    run([*surveyed("import0"), *surveyed("import0", dtype="int8")], file)
    assert [statuses(file, case)[0][1] for case in range(2)] == ["crashed", "ok"]


def test_two_workers_share_a_survey(workers, file, monkeypatch):
    monkeypatch.setattr(rounds, "lanes", lambda _: 2)
    workers.most_open, workers.refuses = 2, {"import3", "import8"}
    run(surveyed(*(f"import{index}" for index in range(20))), file)
    found = [statuses(file, case)[0][1] for case in range(20)]
    assert found == ["unsupported" if index in (3, 8) else "ok" for index in range(20)]


# Isolation in timed rounds


@pytest.mark.parametrize("together", [False, True])
def test_a_case_that_broke_a_shared_worker_is_retried_alone_and_marked(workers, file, together):
    workers.dies_in_company = {f"import{index}" for index in range(3)}
    run(cases_of(3), file, rounds=1, together=together)
    assert [statuses(file, case) for case in range(3)] == [[(0, "ok")]] * 3
    retried = workers.order()[1]
    answers = file.answers(int(retried[-1]))
    reason = f"killed by SIGSEGV, {retried}"
    what = "after other conversions in the same process"
    assert answers[0][1]["failures"] == [{"instrument": what, "reason": reason}]
    company = Company(status="crashed", reason=reason, rounds=[0])
    assert merge(make_record(), answers, 1).in_company == company


@pytest.mark.parametrize(("name", "asked"), [("dies", 1), ("hangs_at_import", 1)])
def test_a_timed_case_that_ends_a_process_without_others_is_not_retried(workers, file, name, asked):
    setattr(workers, name, {"import0"})
    run(cases_of(1), file, rounds=3)
    assert workers.order().count("import0") == asked


@pytest.mark.parametrize("together", [False, True])
def test_a_case_that_had_not_begun_when_its_worker_died_is_measured_in_the_next(
    workers, file, together
):
    workers.poisons = {f"import{index}" for index in range(4)}
    run(cases_of(4), file, rounds=1, together=together)
    assert all(statuses(file, case) == [(0, "ok")] for case in range(4))
    assert [len(asked) for asked in workers.asked] == [1, 1, 1, 1]


@pytest.mark.parametrize(("trouble", "status"), [("dies", "crashed"), ("refuses", "unsupported")])
def test_a_case_that_did_not_work_is_not_repeated(workers, file, trouble, status):
    setattr(workers, trouble, {"import1"})
    watcher = Watched()
    run(cases_of(3), file, watcher, rounds=3)
    assert workers.order().count("import1") == 2  # once more, in a new process
    assert [found for _, found in statuses(file, 1)] == [status]
    assert workers.order().count("import0") == 3
    assert watcher.done == watcher.total > 0


@pytest.mark.parametrize("diagnose", [False, True])
def test_a_worker_whose_state_changed_serves_no_other_case(workers, file, diagnose):
    workers.changes_settings = {"import0"}
    run(cases_of(4), file, rounds=2, diagnose=diagnose)
    assert not any("import0" in asked[:-1] for asked in workers.asked)
    assert all((1, "ok") in statuses(file, case) for case in range(4))
    assert len(file.answers(3)) == 2 + 3 * diagnose
    assert workers.open == 0


@pytest.mark.parametrize(("fatal", "failed"), [("import1", [1]), (None, [])])
def test_a_death_at_exit_counts_for_a_path_that_dies_alone_and_not_without_conversion(
    workers, file, fatal, failed
):
    workers.dies_at_exit = {fatal}
    run(cases_of(3), file, diagnose=True)
    answers = {case: [answer["parts"] for _, answer in file.answers(case)] for case in range(3)}
    assert [case for case in range(3) if any("exit" in parts for parts in answers[case])] == failed
    assert workers.open == 0


def diagnoses(workers):
    """Return the requests of the diagnosis: import, shape and instruments."""
    return [
        (request["import"], request["shape"], tuple(request["instruments"]))
        for request in workers.requests
        if set(request["instruments"]) <= set(DIAGNOSIS) and not request["brief"]
    ]


def test_every_path_is_diagnosed_once_after_all_rounds(workers, file):
    watcher = Watched()
    run(cases_of(2), file, watcher, rounds=2, diagnose=True)
    assert sorted(diagnoses(workers)) == [
        (f"import{index}", (4, 4), DIAGNOSIS) for index in range(2)
    ]
    assert [round_ for round_, _ in file.answers(0)] == [0, 4, 1, 5, 2]
    assert watcher.done == watcher.total > 0


def test_each_timed_process_looks_at_lifetimes_briefly_after_all_of_its_times(workers, file):
    run(cases_of(2), file, rounds=3, diagnose=True)
    looks = [[one["brief"] for one in workers.requests][begin : begin + 4] for begin in (0, 4, 8)]
    assert looks == [[False, False, True, True]] * 3
    assert [len(asked) for asked in workers.asked if len(asked) > 2] == [4] * 3  # the timed ones


def test_a_resumed_run_looks_at_the_lifetimes_of_rounds_that_have_their_times(workers, file):
    for round_ in (0, 1):
        file.add(0, round_, make_answer())
    run(cases_of(1), file, rounds=2, diagnose=True)
    brief = [tuple(one["instruments"]) for one in workers.requests if one["brief"]]
    assert brief == [("lifetime",)] * 2


def test_a_path_that_is_refused_is_not_looked_at_further(workers, file):
    workers.refuses = {"import1"}
    run(cases_of(2), file, rounds=3, diagnose=True)
    assert [round_ for round_, _ in file.answers(1)] == [0]


@pytest.mark.parametrize(
    ("shapes", "refused", "diagnosed"),
    [([(2,), (3,)], [], (2,)), ([(0,), (3,)], [], (3,)), ([(2,), (3,)], [0], (3,))],
    ids=["the first", "the first with elements", "the first that works"],
)
def test_one_shape_stands_for_a_path(workers, file, shapes, refused, diagnosed):
    for index in refused:
        file.add(index, 0, make_answer("unsupported", "no"))
    run([make_case(shape=shape) for shape in shapes], file, rounds=1, diagnose=True)
    assert diagnoses(workers) == [("from_dlpack", diagnosed, DIAGNOSIS)]


def test_without_a_diagnosis_the_alignment_of_each_path_is_checked_once(workers, file):
    cases = [
        make_case(shape=(2,)), make_case(shape=(3,)), make_case(name="other"),
        make_case(layout="F"), make_case(device="cuda"),
    ]  # fmt: skip
    run(cases, file, rounds=2, diagnose=False, alignment=True)
    assert sorted(diagnoses(workers)) == [
        ("from_dlpack", (2,), ALIGNMENT), ("other", (4, 4), ALIGNMENT),
    ]  # fmt: skip


@pytest.mark.parametrize(("can_trace", "asked"), [(True, 1), (False, 0)])
def test_no_worker_is_asked_for_a_trace_without_cupti(workers, file, can_trace, asked):
    settings = Settings(rounds=1, diagnose=True)
    cases = [make_case(device="cuda")]
    Runner(Workers("python", {}), cases, settings, file, Watcher(), can_trace).run()
    assert [tuple(one["instruments"]) for one in workers.requests].count(TRACE) == asked
    round_, answer = file.answers(0)[-1]
    assert round_ == 2
    assert can_trace or answer["parts"]["trace"]["evidence"] == {"reason": NO_CUPTI}


@pytest.mark.parametrize("instrument", DIAGNOSIS)
def test_an_instrument_that_ends_its_worker_loses_only_its_own_answer(workers, file, instrument):
    workers.fatal = {instrument}
    run(cases_of(1), file, rounds=1, diagnose=True)
    answer = file.answers(0)[-1][1]
    assert answer["status"] == "ok"
    assert answer["parts"][instrument] == {
        "verdict": "unknown",
        "evidence": {"reason": f"killed by SIGSEGV during {instrument}", "worker": "crashed"},
    }
    unanswered = tuple(one for one in DIAGNOSIS if one != instrument)
    assert [asked for _, _, asked in diagnoses(workers)] == [DIAGNOSIS, unanswered]
    assert workers.open == 0


@pytest.mark.parametrize(
    ("instrument", "status"), [("fresh_source", "ok"), ("ready_time", "timeout")]
)
def test_an_instrument_that_takes_too_long_is_no_hang_of_a_conversion_that_was_timed(
    workers, file, instrument, status
):
    workers.slow = {instrument}
    run(cases_of(1), file, rounds=1)
    result = merge(make_record(), file.answers(0), 1)
    assert (result.status, result.host_time.median_ns) == (status, 100.0)
    lost = [note.instrument for note in result.notes]
    assert lost == ([instrument] if status == "ok" else [])
    assert workers.open == 0


def test_a_worker_that_dies_after_its_last_case_costs_no_diagnosis(workers, file):
    workers.poisons = {"import0"}
    run(cases_of(1), file, rounds=1, diagnose=True)
    assert diagnoses(workers)[-1] == ("import0", (4, 4), DIAGNOSIS)
    assert file.answers(0)[-1][1]["failures"] == []


@pytest.mark.parametrize(("processors", "loaded"), [(1, []), (2, [2, 2])])
def test_two_workers_import_at_once_before_either_takes_times(
    workers, file, monkeypatch, processors, loaded
):
    monkeypatch.setattr(rounds, "processors", lambda: processors)
    run([make_case(name="a"), make_case(name="b")], file, rounds=2)
    assert [len(asked) for asked in workers.asked] == [2, 2]
    assert workers.imported == loaded
    assert workers.open == 0


def test_only_the_leading_imports_of_a_users_setup_run_ahead(workers, file):
    case = make_case(name="a")
    setup = "import os, torch; os.environ['A'] = '1'; import jax; x = 1"
    path = replace(case.path, import_=replace(case.path.import_, setup=setup))
    producer = replace(case.producer, source="code:")
    run([replace(case, producer=producer, path=path)], file, rounds=2)
    assert {one["statements"] for one in workers.loaded} == {"import os, torch"}
