"""The rounds: shuffled, survived, and stopped by the budget; with workers that are no processes."""

from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import pytest
from builders import make_answer, make_case, make_record, make_way
from scripted_workers import Workers

from dlprof.probes.base import DTYPES
from dlprof.protocol.messages import DIAGNOSIS, NO_CUPTI, verdict
from dlprof.runner import rounds
from dlprof.runner.merge import merge
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Settings
from dlprof.runner.rounds import Runner
from dlprof.runner.schedule import ALIGNMENT, TRACE
from dlprof.runner.session import Company
from dlprof.runner.session_file import SessionFile
from dlprof.runner.survey import SHAPE
from dlprof.runner.worker_client import started_by


class Watched(Watcher):
    def __init__(self):
        self.total = None
        self.steps = 0

    def start(self, total, limit_s=None):
        self.total = total

    def step(self):
        self.steps += 1


@pytest.fixture
def workers(monkeypatch):
    workers = Workers()
    monkeypatch.setattr(rounds, "time", SimpleNamespace(monotonic=lambda: workers.clock_s))
    monkeypatch.setattr(rounds, "processors", lambda: 2)
    with started_by(workers):
        yield workers


@pytest.fixture
def file():
    with closing(SessionFile()) as file:
        yield file


def cases_of(count, **changes):
    return [make_case(name=f"import{index}", **changes) for index in range(count)]


def runner(cases, file, watcher=None, **settings):
    settings = Settings(**{"diagnose": False, "alignment": False} | settings)
    return Runner("python", {}, cases, settings, file, watcher or Watcher())


def run(cases, file, watcher=None, **settings):
    ran = runner(cases, file, watcher, **settings)
    ran.run()
    return ran


def statuses(file, case):
    return [(round_, answer["status"]) for round_, answer in file.answers(case)]


def test_every_round_measures_every_case_once_in_fresh_workers(workers, file):
    run(cases_of(5), file, rounds=3)
    assert [statuses(file, case) for case in range(5)] == [[(0, "ok"), (1, "ok"), (2, "ok")]] * 5
    assert [len(asked) for asked in workers.asked] == [5, 5, 5]


@pytest.mark.parametrize("refuses", [set(), {"import3"}], ids=["works", "is refused itself"])
def test_a_path_that_breaks_its_process_makes_no_other_unsupported(workers, file, refuses):
    workers.spoils, workers.refuses = {"import3"}, refuses
    run(cases_of(6), file, rounds=3)
    good = [found for case in range(6) if case != 3 or not refuses
            for found in statuses(file, case)]  # fmt: skip
    assert set(good) == {(0, "ok"), (1, "ok"), (2, "ok")}
    notes = {
        str(note) for case in range(6) for note in merge(make_record(), file.answers(case), 3).notes
    }
    assert [note.endswith(": TypeError: no") for note in notes] == [True]


@pytest.mark.parametrize(
    ("together", "groups"), [(False, [["a", "c"], ["b"]]), (True, [["a", "b", "c"]])]
)
def test_each_pair_has_workers_of_its_own_unless_all_are_together(workers, file, together, groups):
    pairs = (("torch", "numpy", "a"), ("numpy", "torch", "b"), ("torch", "numpy", "c"))
    run([make_case(*pair) for pair in pairs], file, rounds=1, together=together)
    assert sorted(sorted(asked) for asked in workers.asked) == groups


def test_the_seed_gives_the_order_which_is_another_in_each_round(workers):
    orders = []
    for seed in (7, 7, 8):
        workers.asked = []
        with closing(SessionFile()) as file:
            run(cases_of(8), file, rounds=2, seed=seed)
        orders.append([tuple(asked) for asked in workers.asked])
    assert orders[0] == orders[1] != orders[2]
    assert len({*orders[0], tuple(f"import{index}" for index in range(8))}) == 3


def test_a_dead_worker_is_replaced_and_the_others_are_measured(workers, file):
    workers.dies = {"import2"}
    run(cases_of(6), file, rounds=1)
    assert [asked for asked in workers.asked if asked == ["import2"]]  # once more, alone
    assert all(statuses(file, case) == [(0, "ok")] for case in (0, 1, 3, 4, 5))
    ((_, answer),) = file.answers(2)
    assert (answer["reason"], answer["output"]) == ("killed by SIGSEGV, import2", "last words")


def test_a_path_that_ended_three_processes_of_a_survey_gets_no_other_array(workers, file):
    workers.dies, workers.most_open = {"import0"}, 3
    arrays = [make_case(name="import0", shape=(size,), surveyed=True) for size in range(1, 6)]
    run([*arrays, make_case(name="import1", surveyed=True)], file)
    found = [statuses(file, case)[0][1] for case in range(6)]
    assert found == ["crashed"] * 3 + ["skipped"] * 2 + ["ok"]


def test_what_ended_a_process_with_the_plain_dtype_is_not_tried_with_another_one(workers, file):
    workers.dies, workers.most_open = {"import0"}, 3
    arrays = [
        make_case(name=name, dtype=dtype, shape=SHAPE, layout="reversed", surveyed=True)
        for name in ("import0", "import1")
        for dtype in ("float32", "int64")
    ]
    run(arrays, file)
    found = [statuses(file, case)[0][1] for case in range(4)]
    assert found == ["crashed", "skipped", "ok", "ok"]


def imported_ahead(workers):
    return [one for one in workers.loaded if "do" not in one]  # and not those of arrays to make


@pytest.mark.parametrize(("processors", "ahead"), [(1, 2), (2, 4)])
def test_where_a_path_of_a_survey_ends_processes_the_next_ones_import_beside_it(
    workers, file, monkeypatch, processors, ahead
):
    monkeypatch.setattr(rounds, "processors", lambda: processors)
    workers.dies, workers.most_open = {"import0"}, 3
    run([make_case(name=f"import{index}", surveyed=True) for index in range(3)], file)
    assert [statuses(file, case)[0][1] for case in range(3)] == ["crashed", "ok", "ok"]
    assert len(imported_ahead(workers)) == ahead  # where it ended, and again for the next
    assert workers.open == 0


def test_what_was_loaded_for_a_pair_is_closed_with_the_next(workers, file, monkeypatch):
    monkeypatch.setattr(rounds, "processors", lambda: 2)
    workers.dies, workers.most_open = {"import0"}, 3
    pairs = [("torch", "numpy"), ("torch", "jax"), ("jax", "numpy")]
    cases = [
        make_case(*pair, name=f"import{index}", surveyed=True) for pair in pairs for index in (0, 1)
    ]
    run(cases, file)  # no more than three are ever open
    assert [statuses(file, case)[0][1] for case in range(6)] == ["crashed", "ok"] * 3


def test_a_survey_that_shares_workers_loads_none_for_one_pair(workers, file):
    workers.dies = {"import0"}
    run([make_case(name=f"import{i}", surveyed=True) for i in range(3)], file, together=True)
    assert imported_ahead(workers) == []


def test_two_workers_share_a_survey_and_settle_what_the_other_doubts(workers, file, monkeypatch):
    monkeypatch.setattr(rounds, "lanes", lambda _: 2)
    workers.most_open, workers.refuses = 2, {"import3", "import8"}
    workers.spoils = {"import12"}
    run([make_case(name=f"import{index}", surveyed=True) for index in range(20)], file)
    found = [statuses(file, case)[0][1] for case in range(20)]
    assert found == ["unsupported" if index in (3, 8) else "ok" for index in range(20)]
    assert [len(asked) >= 10 for asked in workers.asked] == [True, True]
    assert all("refusal" in file.answers(case)[0][1]["parts"] for case in (3, 8))


@pytest.mark.parametrize(
    ("after", "word"), [("import0", "broken"), ("import1", "unknown")], ids=["itself", "another"]
)
def test_a_refusal_breaks_a_path_only_if_it_does_so_without_other_conversions(
    workers, file, after, word
):
    workers.most_open, workers.jams = 2, {"import0": after}
    plain = {"shape": SHAPE, "layout": "aligned", "surveyed": True}
    other, *own = (make_case(name=name, **plain) for name in ("import1", "import0"))
    run([other, *own, make_case(name="import0", **plain, dtype="complex64")], file)
    ((_, answer),) = file.answers(2)
    found = answer["parts"]["refusal"]
    assert (answer["status"], found["verdict"]) == ("unsupported", word)
    assert ("reason" in found["evidence"]) == (word == "unknown")


def unconfirmed(workers, file):
    """The evidence of a refusal that broke its path in one process, and was not confirmed."""
    workers.most_open, workers.jams = 2, {"import0": workers.jams.get("import0", "import0")}
    plain = {"shape": SHAPE, "layout": "aligned", "surveyed": True}
    other, *own = (make_case(name=name, **plain) for name in ("import1", "import0"))
    run([other, *own, make_case(name="import0", **plain, dtype="complex64")], file)
    found = file.answers(2)[0][1]["parts"]["refusal"]
    assert found["verdict"] == "unknown"
    return found["evidence"]


@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        ("fatal", "SIGSEGV during lifetime"),
        ("refused_with", "refused a plain array at once"),
        ("failed_in", "lifetime raised"),
    ],
)
def test_a_process_that_did_not_come_to_the_refusal_does_not_acquit_it(workers, file, trouble, why):
    setattr(workers, trouble, {"lifetime"})
    assert why in unconfirmed(workers, file)["reason"]


@pytest.mark.parametrize(
    ("after", "does"), [("TypeError: no", "was refused"), ("other values", "gave other values")]
)
def test_what_became_of_a_plain_array_is_kept_if_no_other_process_shows_it(
    workers, file, after, does
):
    workers.jams, workers.jammed = {"import0": "import1"}, after
    found = unconfirmed(workers, file)
    assert found["after"] == after
    assert found["reason"].startswith(f"a plain array {does} later, but not in a process")


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("import0", "import0"), [[], ["TypeError: no"], ["TypeError: no"]]),
        (("import1", "import0", "import0"), [[], [], [], ["TypeError: no"]]),
    ],
    ids=["at once", "after others"],
)
def test_what_refusals_leave_is_proved_again_until_a_kept_answer_tells_it(
    workers, file, monkeypatch, names, told
):
    monkeypatch.setattr(rounds, "lanes", lambda _: 1)
    workers.leaks, workers.most_open = {"import0"}, 2
    cases = [
        make_case(name=name, dtype=dtype, surveyed=True)
        for name, dtype in zip(names, ("float32", "int8", "complex64"), strict=False)
    ]
    run(cases, file)
    assert [
        one["known"]["retained"] for one in workers.requests if one["import"] == "import0"
    ] == told
    kept = [
        answer["parts"]["refusal"]["verdict"]
        for case, name in enumerate(names)
        for _, answer in file.answers(case)
        if name == "import0"
    ]
    assert "retained" in kept


def test_what_a_compiler_refuses_of_two_exports_is_repeated_by_one_worker_for_both(
    workers, file, monkeypatch
):
    monkeypatch.setattr(rounds, "lanes", lambda _: 2)
    workers.compilers, workers.most_open = {"import0"}, 2
    plain = make_case(name="import0", surveyed=True)
    other = replace(plain, path=replace(plain.path, export=make_way("other")))
    cases = [replace(one, dtype=dtype) for one in (plain, other) for dtype in DTYPES]
    run(cases, file)
    asked = [(one["export"], one["dtype"]) for one in workers.requests[2:5]]
    assert asked == [("dlpack", "int8"), ("other", "int16"), ("dlpack", "int32")]
    kept = [answer["parts"] for case in range(len(cases)) for _, answer in file.answers(case)]
    words = [parts["refusal"]["verdict"] for parts in kept if "refusal" in parts]
    assert sorted(words) == ["clean"] * 2 + ["unknown"] * (len(cases) - 4)


@pytest.mark.parametrize(
    ("first", "other", "told"),
    [
        ({}, {"name": "import0"}, True),
        ({}, {"name": "import1"}, False),
        ({}, {"name": "import0", "consumer": "jax"}, False),
    ],
    ids=["the same import", "another import", "another pair"],
)
def test_what_a_compiler_leaves_is_known_of_the_same_import_of_the_same_pair(
    workers, file, monkeypatch, first, other, told
):
    monkeypatch.setattr(rounds, "lanes", lambda _: 1)
    workers.compilers, workers.most_open = {"import0", "import1"}, 2
    cases = [
        make_case(**{"name": "import0", "dtype": "int8", "surveyed": True, **changes})
        for changes in (first, other)
    ]
    cases[1] = replace(cases[1], path=replace(cases[1].path, export=make_way("other")))
    run(cases, file, together=True)
    known = [bool(one["known"]["of_numpy"]) for one in workers.requests]
    assert known[:2] == [False, told]


def test_a_case_that_used_up_the_files_of_its_process_has_what_a_few_conversions_leave(
    workers, file
):
    workers.uses_up_files, workers.most_open = {"import0"}, 2
    run(cases_of(2), file, rounds=1)
    ((_, answer),) = file.answers(0)
    assert answer["status"] == "unsupported"
    assert answer["parts"]["lifetime"]["verdict"] == "retained"
    assert workers.open == 0


def test_what_a_doubted_refusal_left_is_kept_where_only_the_end_of_its_words_differs(
    workers, file, monkeypatch
):
    monkeypatch.setattr(rounds, "lanes", lambda _: 2)
    workers.leaks, workers.most_open, workers.counts_errors = {"import1"}, 2, True
    run(cases_of(10, surveyed=True), file)
    ((_, answer),) = file.answers(1)
    assert answer["parts"]["refusal"]["verdict"] == "retained"


def blamed(file, cases):
    """By case: whether its values are kept as wrong, and what is said of its company."""
    found = [answer for case in range(cases) for _, answer in file.answers(case)]
    return [
        (one["parts"].get("values", {}).get("verdict") == "wrong", "in_company" in one["parts"])
        for one in found
    ]


@pytest.mark.parametrize("lanes", [1, 2])
def test_wrong_values_that_only_another_path_causes_are_not_kept(workers, file, monkeypatch, lanes):
    monkeypatch.setattr(rounds, "lanes", lambda _: lanes)
    workers.most_open, workers.corrupts = 2, {"import0": "import1"}
    run(cases_of(16, surveyed=True), file)
    found = blamed(file, 16)
    assert not any(is_wrong for is_wrong, _ in found)
    assert [told for _, told in found].count(True) == (lanes == 1)  # else another process has it
    if lanes == 1:
        ((_, answer),) = file.answers(1)
        assert answer["parts"]["in_company"]["reason"] == "its values were wrong"
    assert workers.open == 0


def test_wrong_values_are_seen_by_two_processes_for_one_array_and_kept_for_all(
    workers, file, monkeypatch
):
    monkeypatch.setattr(rounds, "lanes", lambda _: 1)
    workers.most_open, workers.wrong = 2, {"import1"}
    dtypes = ("float32", "int8", "int16", "bool")
    cases = [make_case(name="import0", surveyed=True)]
    cases += [make_case(name="import1", dtype=dtype, surveyed=True) for dtype in dtypes]
    run(cases, file)
    assert blamed(file, 5) == [(False, False)] + [(True, False)] * 4
    assert [len(asked) for asked in workers.asked] == [5, 1]


VIEW = {"ownership": verdict("view", {})}
NARROWED = {"values": verdict("wrong", {"changed": {"dtype": ["int64", "int32"]}})}
WRONG = {"values": verdict("wrong", {"changed": {"values": {}}})}
SET = {"settings": verdict("changed", {})}


@pytest.mark.parametrize(
    ("parts", "changes", "asked"),
    [
        (WRONG, {}, 2),
        (VIEW, {"promise": "copy"}, 2),
        (VIEW, {"promise": "view"}, 1),
        (VIEW, {}, 1),
        (SET, {}, 2),
        (NARROWED, {"narrows": {"int64": "int32"}, "dtype": "int64"}, 1),
        (NARROWED, {"dtype": "int64"}, 2),
        (WRONG, {"surveyed": False}, 1),
    ],
)
def test_what_a_rule_would_blame_is_seen_by_a_second_process(
    workers, file, monkeypatch, parts, changes, asked
):
    monkeypatch.setattr(rounds, "lanes", lambda _: 1)
    workers.gives, workers.most_open = {"import1": parts}, 2
    other = {"surveyed": changes.get("surveyed", True)}
    case = make_case(name="import1", dtype=changes.get("dtype", "float32"), **other)
    way = replace(case.path.import_, promise=changes.get("promise"))
    consumer = replace(case.consumer, narrows=changes.get("narrows", {}))
    case = replace(case, path=replace(case.path, import_=way), consumer=consumer)
    first = replace(make_case(name="import0", **other), consumer=consumer)
    run([first, case], file, rounds=1)
    assert workers.order().count("import1") == asked


def test_what_one_path_is_blamed_for_confirms_no_other_and_nothing_else(workers, file, monkeypatch):
    monkeypatch.setattr(rounds, "lanes", lambda _: 1)
    workers.most_open = 2
    workers.gives = {"import1": WRONG, "import2": WRONG, "import3": VIEW}
    cases = cases_of(4, surveyed=True)
    way = replace(cases[3].path.import_, promise="copy")
    cases[3] = replace(cases[3], path=replace(cases[3].path, import_=way))
    run(cases, file)
    assert sorted(workers.order()[4:]) == ["import1", "import2", "import3"]


def test_earlier_arrays_of_its_own_path_excuse_no_blame(workers, file, monkeypatch):
    monkeypatch.setattr(rounds, "lanes", lambda _: 1)
    workers.most_open, workers.corrupts = 2, {"import0": "import0"}
    dtypes = ("float32", "int8", "int16")
    run([make_case(name="import0", dtype=one, surveyed=True) for one in dtypes], file)
    assert [wrong for wrong, _ in blamed(file, 3)] == [False, True, True]


def test_what_was_blamed_is_kept_where_the_path_ends_processes_later(workers, file, monkeypatch):
    monkeypatch.setattr(rounds, "lanes", lambda _: 1)
    workers.most_open, workers.wrong, workers.dies_of = 4, {"import1"}, {"int8", "int16", "bool"}
    dtypes = ("float32", "int8", "int16", "bool")
    cases = [make_case(name="import0", surveyed=True)]
    cases += [make_case(name="import1", dtype=one, surveyed=True) for one in dtypes]
    run(cases, file)
    assert blamed(file, 5)[1] == (True, False)


def test_what_was_blamed_is_kept_if_the_user_stops_before_another_process_saw_it(
    workers, file, monkeypatch
):
    monkeypatch.setattr(rounds, "lanes", lambda _: 1)
    workers.most_open, workers.wrong, workers.stopped_at = 2, {"import1"}, "import2"
    with pytest.raises(KeyboardInterrupt):
        run(cases_of(3, surveyed=True), file)
    ((_, answer),) = file.answers(1)
    assert (answer["status"], answer["parts"]["values"]["verdict"]) == ("interrupted", "wrong")
    assert answer["reason"].endswith("its values were wrong")


def test_files_that_a_few_conversions_do_not_leave_open_are_no_leak(workers, file):
    workers.uses_up_files, workers.most_open, workers.releases_files = {"import0"}, 2, True
    run(cases_of(1), file, rounds=1)
    ((_, answer),) = file.answers(0)
    assert "lifetime" not in answer["parts"]


def test_a_path_after_which_processes_die_is_tried_with_no_more_arrays(workers, file):
    workers.poisons, workers.most_open = {"import0"}, 2
    dtypes = ("float32", "int8", "int16", "bool", "uint8")
    cases = [make_case(name="import0", dtype=dtype, surveyed=True) for dtype in dtypes]
    run([*cases, make_case(name="import1", surveyed=True)], file)
    found = [[status for _, status in statuses(file, case)] for case in range(6)]
    assert found == [["ok"]] * 3 + [["skipped"]] * 2 + [["ok"]]


def survey_of(dtypes):
    return [
        make_case(name=f"import{index}", dtype=dtype, surveyed=True)
        for index in range(8)
        for dtype in dtypes
    ]


@pytest.mark.parametrize("lanes", [1, 2])
def test_no_path_is_asked_for_arrays_that_a_new_process_cannot_make(
    workers, file, monkeypatch, lanes
):
    monkeypatch.setattr(rounds, "lanes", lambda _: lanes)
    workers.most_open, workers.unmade = 2, {"bfloat16", "float8_e5m2"}
    run(survey_of(("float32", "bfloat16", "float8_e5m2")), file)
    found = [[status for _, status in statuses(file, case)] for case in range(24)]
    assert found == [["ok"], ["unsupported"], ["unsupported"]] * 8
    ((_, answer),) = file.answers(23)
    assert (answer["reason"], answer["parts"]) == ("no such dtype", {"refused_at": "create"})
    assert {request["dtype"] for request in workers.requests} == {"float32"}
    assert len(workers.asked) == lanes


@pytest.mark.parametrize("lanes", [1, 2])
def test_an_array_that_conversions_keep_from_being_made_is_no_refusal(
    workers, file, monkeypatch, lanes
):
    monkeypatch.setattr(rounds, "lanes", lambda _: lanes)
    workers.most_open, workers.unmade_later = 2, {"bfloat16"}
    run(survey_of(("float32", "bfloat16")), file)
    found = [[status for _, status in statuses(file, case)] for case in range(16)]
    assert found[::2] == [["ok"]] * 8
    assert sorted(found[1::2]) == [["ok"]] * 3 + [["skipped"]] * 5


def test_an_array_of_which_no_new_process_told_is_refused_where_it_is_asked_for(workers, file):
    workers.most_open, workers.dies_of_arrays, workers.unmade = 2, True, {"bfloat16"}
    run(survey_of(("float32", "bfloat16")), file)
    found = [[status for _, status in statuses(file, case)] for case in range(16)]
    assert found == [["ok"], ["unsupported"]] * 8


def test_an_array_off_the_plain_layout_and_dtype_is_converted_once(workers, file):
    plain, other = (
        make_case(shape=SHAPE, dtype=dtype, layout="strided", surveyed=True)
        for dtype in ("float32", "int8")
    )
    run([plain, other], file)
    again = {request["dtype"]: request["again"] for request in workers.requests}
    assert again == {"float32": True, "int8": False}


def test_a_survey_of_several_pairs_together_settles_the_doubts_of_all(workers, file):
    workers.most_open, workers.refuses = 2, {"import1", "import3"}
    pairs = ["torch"] * 2 + ["jax"] * 2
    cases = [make_case(pair, name=f"import{i}", surveyed=True) for i, pair in enumerate(pairs)]
    run(cases, file, together=True)
    found = [[status for _, status in statuses(file, case)] for case in range(4)]
    assert found == [["ok"], ["unsupported"], ["ok"], ["unsupported"]]


@pytest.mark.parametrize("together", [False, True])
def test_a_case_that_broke_a_worker_of_several_is_tried_again_alone_and_says_so(
    workers, file, together
):
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
def test_a_timed_case_that_ends_a_process_without_others_is_not_tried_again(
    workers, file, name, asked
):
    setattr(workers, name, {"import0"})
    run(cases_of(1), file, rounds=3)
    assert workers.order().count("import0") == asked


def test_an_import_that_hangs_among_others_is_not_waited_for_again(workers, file):
    workers.hangs_at_import = {"import1"}
    run(cases_of(3), file, rounds=1, together=True)
    assert workers.order().count("import1") == 1


def test_a_case_has_the_whole_limit_only_if_its_process_serves_no_other(workers, file):
    run(cases_of(2), file, rounds=1, together=True, limit_s=50.0)
    among_others = set(workers.limits)
    workers.limits.clear()
    with closing(SessionFile()) as other:
        run(cases_of(1), other, rounds=1, together=True, limit_s=50.0)
    assert max(among_others) < 20.0
    assert min(workers.limits) >= 50.0


def test_what_broke_beside_others_is_kept_if_its_second_try_is_stopped(workers, file):
    workers.dies_in_company = workers.stopped_again = {"import0", "import1"}
    with pytest.raises(KeyboardInterrupt):
        run(cases_of(2), file, together=True)
    answers = [answer for case in (0, 1) for _, answer in file.answers(case)]
    [stopped] = [answer for answer in answers if answer["status"] == "interrupted"]
    assert stopped["parts"]["in_company"]["status"] == "crashed"


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
    assert watcher.steps == watcher.total == 9


@pytest.mark.parametrize(("budget_s", "rounds_done"), [(30.0, 2), (0.0, 1), (None, 5)])
def test_a_budget_stops_further_rounds_but_not_the_first(workers, file, budget_s, rounds_done):
    workers.cost_s = 10.0
    ran = run(cases_of(2), file, rounds=5, budget_s=budget_s)
    assert ran.rounds_done == rounds_done
    assert [len(file.answers(case)) for case in (0, 1)] == [rounds_done] * 2


@pytest.mark.parametrize("trouble", ["leaves_open", "changes_settings"])
@pytest.mark.parametrize("diagnose", [False, True])
def test_a_worker_that_is_not_as_it_was_serves_no_other_case(workers, file, trouble, diagnose):
    setattr(workers, trouble, {"import0"})
    run(cases_of(4), file, rounds=2, diagnose=diagnose)
    assert not any("import0" in asked[:-1] for asked in workers.asked)
    assert all(statuses(file, case)[1] == (1, "ok") for case in range(4))
    assert len(file.answers(3)) == 2 + diagnose
    assert workers.open == 0


def test_a_path_that_changes_a_setting_in_each_round_is_surveyed(workers, file):
    workers.changes_settings = {"import0"}
    cases = [make_case(name="import0"), make_case(name="import0", surveyed=True)]
    run(cases, file, rounds=3)
    assert statuses(file, 1) == [(0, "ok")]


def stop_in(instrument, workers, file, **settings):
    workers.stopped = {instrument}
    with pytest.raises(KeyboardInterrupt):
        run(cases_of(1), file, rounds=1, **settings)
    workers.stopped = set()


def test_a_round_that_was_stopped_is_kept_and_measured_again(workers, file):
    stop_in("ready_time", workers, file)
    ((round_, answer),) = file.answers(0)
    assert (round_, answer["status"]) == (0, "interrupted")
    assert answer["reason"].endswith(" ready_time")
    assert set(answer["parts"]) == {"settings", "first_call", "ownership", "host_time"}
    run(cases_of(1), file, rounds=1)
    assert statuses(file, 0) == [(0, "interrupted"), (0, "ok")]


def test_a_diagnosis_that_was_stopped_is_kept_and_only_its_rest_is_asked_for(workers, file):
    workers.fatal = {"ordering"}
    stop_in("peak_memory", workers, file, diagnose=True)
    round_, answer = file.answers(0)[-1]
    assert (round_, answer["status"]) == (1, "interrupted")
    assert answer["reason"].endswith(" peak_memory")
    assert tuple(answer["parts"]) == DIAGNOSIS[:2]
    workers.requests.clear()
    run(cases_of(1), file, rounds=1, diagnose=True)
    assert [asked for _, _, asked in diagnoses(workers)] == [DIAGNOSIS[2:]]
    assert set(DIAGNOSIS[:2]) <= set(file.answers(0)[-1][1]["parts"])


def diagnoses(workers):
    """What was asked for after the rounds: import, shape and instruments."""
    return [
        (request["import"], request["shape"], tuple(request["instruments"]))
        for request in workers.requests
        if set(request["instruments"]) <= set(DIAGNOSIS)
    ]


def test_every_path_is_diagnosed_once_after_all_rounds(workers, file):
    watcher = Watched()
    run(cases_of(2), file, watcher, rounds=2, diagnose=True)
    assert sorted(diagnoses(workers)) == [
        (f"import{index}", (4, 4), DIAGNOSIS) for index in range(2)
    ]
    assert [round_ for round_, _ in file.answers(0)] == [0, 1, 2]
    assert watcher.steps == watcher.total == 6


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


def test_without_a_diagnosis_the_alignment_of_each_path_is_looked_at_once(workers, file):
    cases = [
        make_case(shape=(2,)), make_case(shape=(3,)), make_case(name="other"),
        make_case(layout="F"), make_case(device="cuda"),
    ]  # fmt: skip
    run(cases, file, rounds=2, diagnose=False, alignment=True)
    assert sorted(diagnoses(workers)) == [
        ("from_dlpack", (2,), ALIGNMENT), ("other", (4, 4), ALIGNMENT),
    ]  # fmt: skip


@pytest.mark.parametrize(("can_trace", "asked"), [(True, 1), (False, 0)])
def test_no_worker_is_asked_for_a_trace_where_cupti_is_missing(workers, file, can_trace, asked):
    ran = runner([make_case(device="cuda")], file, rounds=1, diagnose=True)
    if not can_trace:
        ran.leave_out_traces()
    ran.run()
    assert [tuple(one["instruments"]) for one in workers.requests].count(TRACE) == asked
    round_, answer = file.answers(0)[-1]
    assert round_ == 2
    assert can_trace or answer["parts"]["trace"]["evidence"] == {"reason": NO_CUPTI}


@pytest.mark.parametrize("instrument", DIAGNOSIS)
def test_an_instrument_that_ends_its_worker_costs_itself_alone(workers, file, instrument):
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


def test_a_worker_that_dies_after_its_last_case_costs_no_diagnosis(workers, file):
    workers.poisons = {"import0"}
    run(cases_of(1), file, rounds=1, diagnose=True)
    assert diagnoses(workers)[-1] == ("import0", (4, 4), DIAGNOSIS)
    assert file.answers(0)[-1][1]["failures"] == []


def test_single_rounds_measure_the_cases_that_are_asked_for(workers, file):
    ran = runner(cases_of(3), file)
    ran.round(0, {0, 2})
    ran.round(1, {2})
    found = [statuses(file, case) for case in range(3)]
    assert found == [[(0, "ok")], [], [(0, "ok"), (1, "ok")]]
    assert ran.rounds_done == 2


@pytest.mark.parametrize("dies", [False, True])
def test_a_worker_that_imports_ahead_measures_unless_it_died(workers, file, dies):
    workers.dies_of_imports = dies
    ran = runner(cases_of(2), file, together=True)
    ran.load(0, [0, 1])
    ran.wait()
    ran.round(0, {0, 1})
    assert len(workers.loaded) == 2
    assert [len(asked) for asked in workers.asked] == ([0, 2] if dies else [2])
    assert workers.open == 0


@pytest.mark.parametrize(("processors", "loaded"), [(1, []), (2, [2, 2])])
def test_two_workers_import_at_once_before_either_takes_times(
    workers, file, monkeypatch, processors, loaded
):
    monkeypatch.setattr(rounds, "processors", lambda: processors)
    run([make_case(name="a"), make_case(name="b")], file, rounds=2)
    assert [len(asked) for asked in workers.asked] == [2, 2]
    assert workers.imported == loaded
    assert workers.open == 0


def test_large_arrays_devices_and_setups_of_the_user_do_not_begin_at_once(workers):
    own = make_case(name="a")
    own = replace(own, producer=replace(own.producer, source="code:x = [1]"))
    on_device = make_case(name="a", device="cuda")
    for case in (make_case(name="a", shape=(1 << 28,)), on_device, own):
        with closing(SessionFile()) as file:
            run([case], file, rounds=2)
    assert workers.imported == []


def test_a_worker_that_ended_while_it_waited_is_no_crash_of_a_conversion(workers, file):
    ran = runner(cases_of(2), file, together=True)
    ran.load(0, [0, 1])
    ran.wait()
    ran._pool._loaded[0][1].close()
    ran.round(0, {0, 1})
    assert [statuses(file, case) for case in range(2)] == [[(0, "ok")], [(0, "ok")]]
