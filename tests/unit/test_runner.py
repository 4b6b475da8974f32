"""The rounds: shuffled, survived, and stopped by the budget; with workers that are no processes."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from builders import make_answer, make_case, make_record

from dlprof.plan.instruments import ALIGNMENT, EVERY_ROUND, FIRST_ROUND
from dlprof.plan.settings import Settings, sample_ns_for
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner import rounds, standby
from dlprof.runner.interpreter import Outcome
from dlprof.runner.rounds import Runner
from dlprof.runner.standby import Interpreter
from dlprof.session.journal import Journal
from dlprof.session.merge import merge
from dlprof.session.model import Company

pytestmark = pytest.mark.unit


@dataclass
class Workers:
    """Stands for all workers of a run. ``asked`` lists what each worker was asked, by import name.

    ``dies`` are the imports that end their worker; ``dies_in_company`` those that end a worker
    that served another case before; ``poisons`` those after which a worker dies before it begins
    with the next case; ``refuses`` those that are unsupported. ``fatal`` are the instruments that
    end their worker, ``stopped`` those during which the user stops the run. ``stopped_again`` are
    the imports that he stops when they are tried once more.
    ``leaves_open`` are the imports that leave many file descriptors open.
    """

    stopped: set = field(default_factory=set)
    stopped_again: set = field(default_factory=set)
    leaves_open: set = field(default_factory=set)
    hangs_at_import: set = field(default_factory=set)
    limits: list = field(default_factory=list)
    dies: set = field(default_factory=set)
    dies_in_company: set = field(default_factory=set)
    poisons: set = field(default_factory=set)
    refuses: set = field(default_factory=set)
    fatal: set = field(default_factory=set)
    asked: list = field(default_factory=list)
    requests: list = field(default_factory=list)
    loaded: list = field(default_factory=list)
    dies_of_imports: bool = False
    begun: list = field(default_factory=list)
    settled: int = 0
    open: int = 0
    cost_s: float = 0.0
    clock_s: float = 0.0

    def __call__(self, python, variables):
        self.asked.append([])
        return FakeWorker(self, self.asked[-1])

    def order(self):
        return [name for asked in self.asked for name in asked]


class FakeWorker:
    def __init__(self, workers, asked):
        self.workers = workers
        self.asked = asked
        self.dead = False
        workers.open += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.workers.open -= not self.dead
        self.dead = True

    def send(self, request):
        self.workers.loaded += request["cases"]

    def begin(self, request):
        self.workers.begun.append(request)

    def settle(self, limit_s):
        self.workers.settled += 1

    def wait(self, limit_s):
        if self.workers.dies_of_imports:
            self.close()
        return Outcome("ok", None, alive=not self.dead)

    def heard(self):
        return self.partial

    def ask(self, request, limit_s, on_stage=None):
        assert not self.dead, "a dead worker was asked"
        assert self.workers.open == 1, "workers disturb each other"
        name = request["import"]
        self.workers.limits.append(limit_s)
        if name in self.workers.hangs_at_import:
            self.asked.append(name)
            self.close()
            return Outcome("timeout", "no answer", stage="import", alive=False)
        if self.workers.poisons & set(self.asked):
            self.close()
            return Outcome("crashed", "killed by SIGSEGV during start", alive=False, stage="start")
        company = bool(self.asked)
        self.asked.append(name)
        self.workers.requests.append(request)
        self.workers.clock_s += self.workers.cost_s
        on_stage("host_time")
        if name in self.workers.dies or (company and name in self.workers.dies_in_company):
            self.close()
            reason = f"killed by SIGSEGV, {name}"
            return Outcome("crashed", reason, stage="host_time", alive=False, output="last words")
        self.partial = Outcome("crashed", None, stage="first call")
        if name in self.workers.stopped_again and self.workers.order().count(name) > 1:
            raise KeyboardInterrupt
        for instrument in request["instruments"]:
            self.partial.stage = instrument
            if instrument in self.workers.stopped:
                raise KeyboardInterrupt
            self.partial.parts[instrument] = {"verdict": "unknown", "evidence": {"of": name}}
            if instrument in self.workers.fatal:
                self.close()
                reason = f"killed by SIGSEGV during {instrument}"
                return Outcome(
                    "crashed", reason, stage=instrument, alive=False, output="last words"
                )
        if name in self.workers.refuses:
            return Outcome("unsupported", "TypeError: no")
        left = {"left_open": 500} if name in self.workers.leaves_open else {}
        return Outcome("ok", None, parts=make_answer()["parts"] | left)


class Watched:
    """Writes down what a watcher is told."""

    def __init__(self):
        self.total = None
        self.steps = 0
        self.stages = []

    def start(self, total):
        self.total = total

    def case(self, case, round_, stage):
        self.stages.append((case.path.import_.name, round_, stage))

    def step(self):
        self.steps += 1


@pytest.fixture
def workers(monkeypatch):
    workers = Workers()
    monkeypatch.setattr(standby, "Worker", workers)
    monkeypatch.setattr(rounds, "time", SimpleNamespace(monotonic=lambda: workers.clock_s))
    return workers


@pytest.fixture
def journal():
    journal = Journal()
    yield journal
    journal.close()


def cases_of(count, **changes):
    return [make_case(name=f"import{index}", **changes) for index in range(count)]


def run(cases, journal, watcher=None, on_answer=lambda: None, **settings):
    settings = {"diagnose": False, "alignment": False} | settings
    interpreters = Interpreter("python", {})
    ran = Runner(
        interpreters, cases, Settings(**settings), journal, watcher or Watched(), on_answer
    )
    ran.run()
    return ran


def statuses(journal, case):
    return [(round_, answer["status"]) for round_, answer in journal.answers(case)]


def test_every_round_measures_every_case_once(workers, journal):
    run(cases_of(5), journal, rounds=3)
    for case in range(5):
        assert statuses(journal, case) == [(0, "ok"), (1, "ok"), (2, "ok")]


def test_every_round_has_fresh_workers(workers, journal):
    run(cases_of(4), journal, rounds=3)
    assert [len(asked) for asked in workers.asked] == [4, 4, 4]


def test_every_pair_has_workers_of_its_own(workers, journal):
    cases = [
        make_case("torch", "numpy", "a"),
        make_case("numpy", "torch", "b"),
        make_case("torch", "numpy", "c"),
    ]
    run(cases, journal, rounds=1)
    assert sorted(sorted(asked) for asked in workers.asked) == [["a", "c"], ["b"]]


def test_all_pairs_share_a_worker_where_that_is_asked_for(workers, journal):
    cases = [make_case("torch", "numpy", "a"), make_case("numpy", "torch", "b")]
    run(cases, journal, rounds=1, together=True)
    assert [sorted(asked) for asked in workers.asked] == [["a", "b"]]


def test_the_same_seed_gives_the_same_order(workers, journal):
    run(cases_of(8), journal, rounds=2, seed=7)
    first, workers.asked = workers.order(), []
    second_journal = Journal()
    run(cases_of(8), second_journal, rounds=2, seed=7)
    second_journal.close()
    assert workers.order() == first


def test_the_cases_are_shuffled_anew_in_each_round(workers, journal):
    run(cases_of(8), journal, rounds=3, seed=7)
    orders = {tuple(asked) for asked in workers.asked}
    assert len(orders) == 3
    assert tuple(f"import{index}" for index in range(8)) not in orders


def test_each_round_begins_with_another_case(workers, journal):
    run(cases_of(4), journal, rounds=4, seed=7)
    assert sorted(asked[0] for asked in workers.asked) == [f"import{index}" for index in range(4)]


def first_call(before):
    return make_answer(parts={"first_call": {"ns": 1, "cases_before": before}})


def known_first(journal, case, before):
    journal.add(case, 0, first_call(before))


def test_a_case_that_was_first_in_no_process_gets_one_of_its_own(workers, journal):
    known_first(journal, 0, 0)
    known_first(journal, 1, 3)
    run(cases_of(2), journal, rounds=1, first_calls=True)
    assert workers.asked == [["import1"]]
    assert workers.requests[0]["instruments"] == ("first_call",)


def test_no_process_is_spent_on_first_calls_unless_asked_for(workers, journal):
    known_first(journal, 0, 3)
    run(cases_of(1), journal, rounds=1)
    assert workers.asked == []


def test_a_case_that_was_refused_gets_no_process_for_its_first_call(workers, journal):
    workers.refuses = {"import0"}
    run(cases_of(1), journal, rounds=1, first_calls=True)
    assert len(workers.asked) == 1


def test_the_times_of_a_case_outlast_the_death_of_its_first_call(workers, journal):
    known_first(journal, 0, 3)
    workers.dies = {"import0"}
    run(cases_of(1), journal, rounds=1, first_calls=True)
    answers = [answer for _, answer in journal.answers(0)]
    assert [answer["status"] for answer in answers] == ["ok", "ok"]
    assert answers[1]["failures"][0]["instrument"] == "first call in a process of its own"


def test_progress_counts_first_calls(workers, journal):
    watcher = Watched()
    known_first(journal, 0, 3)
    run(cases_of(1), journal, watcher, rounds=1, first_calls=True)
    assert watcher.steps == watcher.total


def test_another_seed_gives_another_order(workers, journal):
    run(cases_of(8), journal, rounds=1, seed=1)
    second_journal = Journal()
    run(cases_of(8), second_journal, rounds=1, seed=2)
    second_journal.close()
    assert workers.asked[0] != workers.asked[1]


def test_a_dead_worker_is_replaced_and_the_others_are_measured(workers, journal):
    workers.dies = {"import2"}
    run(cases_of(6), journal, rounds=1)
    assert len(workers.asked) == 2
    assert sorted(workers.order()) == sorted(f"import{index}" for index in range(6))
    assert [statuses(journal, case)[0][1] for case in range(6)] == [
        "ok",
        "ok",
        "crashed",
        "ok",
        "ok",
        "ok",
    ]


def test_a_crash_is_kept_with_its_reason_and_last_output(workers, journal):
    workers.dies = {"import0"}
    run(cases_of(1), journal)
    ((_, answer),) = journal.answers(0)
    assert answer["reason"] == "killed by SIGSEGV, import0"
    assert answer["output"] == "last words"


def test_no_worker_is_started_for_nothing_after_the_last_case_died(workers, journal):
    workers.dies = {"import0"}
    run(cases_of(1), journal, rounds=1)
    assert len(workers.asked) == 1


def test_a_case_that_broke_a_shared_worker_is_tried_once_more_alone(workers, journal):
    workers.dies_in_company = {f"import{index}" for index in range(3)}
    run(cases_of(3), journal, rounds=1, together=True)
    for case in range(3):
        assert statuses(journal, case) == [(0, "ok")]
    alone = [asked for asked in workers.asked if len(asked) == 1]
    assert alone


def test_a_case_that_works_alone_says_what_happened_in_company(workers, journal):
    workers.dies_in_company = {"import0", "import1"}
    run(cases_of(2), journal, rounds=1, together=True)
    retried = workers.order()[1]
    ((_, answer),) = journal.answers(int(retried[-1]))
    assert answer["failures"] == [
        {
            "instrument": "after other conversions in the same process",
            "reason": f"killed by SIGSEGV, {retried}",
        }
    ]


def test_of_a_case_that_works_alone_the_session_says_in_which_rounds_it_broke(workers, journal):
    workers.dies_in_company = {"import0", "import1"}
    run(cases_of(2), journal, rounds=1, together=True)
    retried = int(workers.order()[1][-1])
    company = merge(make_record(), journal.answers(retried), 1).in_company
    reason = f"killed by SIGSEGV, import{retried}"
    assert company == Company(status="crashed", reason=reason, rounds=[0])


def test_an_import_that_hangs_among_others_is_not_waited_for_again(workers, journal):
    workers.hangs_at_import = {"import1"}
    run(cases_of(3), journal, rounds=1, together=True)
    assert workers.order().count("import1") == 1


def test_a_case_that_is_alone_in_a_shared_process_has_all_of_its_time(workers, journal):
    run(cases_of(2), journal, rounds=1, together=True)
    among_others = set(workers.limits)
    workers.limits.clear()
    with closing(Journal()) as other:
        run(cases_of(1), other, rounds=1, together=True, limit_s=50.0)
    assert max(among_others) < 20.0
    assert min(workers.limits) >= 50.0


def test_a_case_that_breaks_alone_too_is_a_crash(workers, journal):
    workers.dies = {"import1"}
    run(cases_of(3), journal, rounds=1, together=True)
    assert statuses(journal, 1) == [(0, "crashed")]
    assert workers.order().count("import1") == 2
    assert statuses(journal, 0) == statuses(journal, 2) == [(0, "ok")]


def test_what_a_case_said_beside_others_is_kept_where_its_second_try_is_stopped(workers, journal):
    workers.dies_in_company = workers.stopped_again = {"import0", "import1"}
    with pytest.raises(KeyboardInterrupt):
        run(cases_of(2), journal, together=True)
    answers = [answer for case in (0, 1) for _, answer in journal.answers(case)]
    [stopped] = [answer for answer in answers if answer["status"] == "interrupted"]
    assert stopped["parts"]["in_company"]["status"] == "crashed"


def test_a_case_of_a_single_pair_is_not_tried_again(workers, journal):
    workers.dies = {"import1"}
    run(cases_of(3), journal, rounds=1)
    assert workers.order().count("import1") == 1


@pytest.mark.parametrize("together", [False, True])
def test_a_case_that_had_not_begun_when_its_worker_died_is_measured_in_the_next(
    workers, journal, together
):
    workers.poisons = {f"import{index}" for index in range(4)}
    run(cases_of(4), journal, rounds=1, together=together)
    assert all(statuses(journal, case) == [(0, "ok")] for case in range(4))
    assert [len(asked) for asked in workers.asked] == [1, 1, 1, 1]


@pytest.mark.parametrize("trouble", ["dies", "refuses"])
def test_a_case_that_did_not_work_is_not_repeated_in_further_rounds(workers, journal, trouble):
    setattr(workers, trouble, {"import1"})
    run(cases_of(3), journal, rounds=3)
    assert workers.order().count("import1") == 1
    assert workers.order().count("import0") == 3


def test_what_the_journal_knows_already_is_not_measured_again(workers, journal):
    journal.add(0, 0, make_answer())
    journal.add(0, 1, make_answer())
    run(cases_of(2), journal, rounds=3)
    assert workers.order().count("import0") == 1
    assert workers.order().count("import1") == 3


def test_no_worker_is_started_where_nothing_is_to_be_measured(workers, journal):
    for round_ in range(3):
        journal.add(0, round_, make_answer())
    run(cases_of(1), journal, rounds=3)
    assert workers.asked == []


def test_a_refusal_does_not_end_its_worker(workers, journal):
    workers.refuses = {"import0", "import1"}
    run(cases_of(3), journal, rounds=1)
    assert len(workers.asked) == 1


def test_a_budget_that_is_used_up_stops_further_rounds(workers, journal):
    workers.cost_s = 10.0
    assert run(cases_of(2), journal, rounds=5, budget_s=30.0).rounds_done == 2
    assert statuses(journal, 0) == [(0, "ok"), (1, "ok")]


def test_the_first_round_is_finished_whatever_the_budget(workers, journal):
    workers.cost_s = 10.0
    assert run(cases_of(3), journal, rounds=5, budget_s=0.0).rounds_done == 1
    assert all(statuses(journal, case) == [(0, "ok")] for case in range(3))


def test_without_a_budget_all_rounds_are_run(workers, journal):
    workers.cost_s = 1e6
    assert run(cases_of(1), journal, rounds=4).rounds_done == 4


def test_the_watcher_is_told_every_step_also_of_what_is_not_repeated(workers, journal):
    workers.refuses = {"import1"}
    watcher = Watched()
    run(cases_of(3), journal, watcher, rounds=3)
    assert watcher.steps == watcher.total == 9


def test_the_watcher_is_told_the_case_the_round_and_the_stage(workers, journal):
    watcher = Watched()
    run(cases_of(1), journal, watcher, rounds=2)
    assert watcher.stages == [
        ("import0", 0, "host_time"), ("import0", 1, "host_time"),
    ]  # fmt: skip


def test_somebody_is_told_of_every_answer(workers, journal):
    told = []
    run(
        cases_of(2),
        journal,
        on_answer=lambda: told.append(len(journal.answers(0)) + len(journal.answers(1))),
        rounds=2,
    )
    assert told == [1, 2, 3, 4]


def test_a_stop_ends_the_worker_and_keeps_the_answers(workers, journal):
    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(cases_of(3), journal, on_answer=stop, rounds=1)
    assert workers.open == 0
    assert sum(len(journal.answers(case)) for case in range(3)) == 1


@pytest.mark.parametrize("diagnose", [False, True])
def test_a_worker_whose_files_are_left_open_serves_no_other_case(workers, journal, diagnose):
    workers.leaves_open = {"import0"}
    run(cases_of(4), journal, rounds=2, diagnose=diagnose)
    assert not any("import0" in asked[:-1] for asked in workers.asked)
    assert all(statuses(journal, case)[1] == (1, "ok") for case in range(4))
    assert len(journal.answers(3)) == 2 + diagnose
    assert workers.open == 0


def stop_in(instrument, workers, journal, **settings):
    workers.stopped = {instrument}
    with pytest.raises(KeyboardInterrupt):
        run(cases_of(1), journal, rounds=1, **settings)
    workers.stopped = set()


def test_what_had_come_of_a_round_is_kept_where_it_is_stopped(workers, journal):
    stop_in("ready_time", workers, journal)
    ((round_, answer),) = journal.answers(0)
    assert (round_, answer["status"]) == (0, "interrupted")
    assert answer["reason"] == "round 1 was interrupted during ready_time"
    assert set(answer["parts"]) == {"first_call", "ownership", "host_time"}


def test_a_round_that_was_stopped_is_measured_again(workers, journal):
    stop_in("ready_time", workers, journal)
    run(cases_of(1), journal, rounds=1)
    assert statuses(journal, 0) == [(0, "interrupted"), (0, "ok")]


def test_nothing_is_kept_of_a_round_that_was_stopped_before_anything_came(workers, journal):
    stop_in("first_call", workers, journal)
    assert journal.answers(0) == []


def test_what_had_come_of_a_diagnosis_is_kept_where_it_is_stopped(workers, journal):
    stop_in("lifetime", workers, journal, diagnose=True)
    round_, answer = journal.answers(0)[-1]
    assert (round_, answer["status"]) == (1, "interrupted")
    assert answer["reason"] == "the diagnosis was interrupted during lifetime"
    assert tuple(answer["parts"]) == DIAGNOSIS[:-1]


def test_of_a_diagnosis_that_was_stopped_only_the_rest_is_asked_for(workers, journal):
    stop_in("peak_memory", workers, journal, diagnose=True)
    workers.requests.clear()
    run(cases_of(1), journal, rounds=1, diagnose=True)
    assert [asked for _, _, asked in diagnoses(workers)] == [
        ("peak_memory", "early_write", "lifetime")
    ]


def test_what_a_stopped_diagnosis_had_found_is_in_the_finished_one(workers, journal):
    workers.fatal = {"ordering"}
    stop_in("lifetime", workers, journal, diagnose=True)
    run(cases_of(1), journal, rounds=1, diagnose=True)
    _, answer = journal.answers(0)[-1]
    assert answer["status"] == "ok"
    assert set(DIAGNOSIS[:-1]) <= set(answer["parts"])


def test_a_worker_is_asked_for_the_case_in_plain_words(workers, journal):
    run([make_case(shape=(2, 3), layout="F")], journal, rounds=1, sample_ns=5)
    (request,) = workers.requests
    assert {
        "do": "case",
        "producer": ("builtin", "torch"),
        "consumer": ("builtin", "numpy"),
        "export": "dlpack",
        "import": "from_dlpack",
        "shape": (2, 3),
        "dtype": "float32",
        "layout": "F",
        "device": "cpu",
        "budget_ns": 5,
    }.items() <= request.items()


def test_what_does_not_change_is_measured_in_the_first_round_only(workers, journal):
    run(cases_of(1), journal, rounds=2)
    first, second = (set(request["instruments"]) for request in workers.requests)
    assert (first, second) == (set(FIRST_ROUND), set(EVERY_ROUND))
    assert {"values", "handshake"} == (first - second) - {"fresh_source", "recipe"}


def diagnoses(workers):
    """What was asked for after the rounds: import, shape and instruments."""
    return [
        (request["import"], request["shape"], tuple(request["instruments"]))
        for request in workers.requests
        if set(request["instruments"]) <= set(DIAGNOSIS)
    ]


def test_every_path_is_diagnosed_once_after_all_rounds(workers, journal):
    run(cases_of(2), journal, rounds=2, diagnose=True)
    assert sorted(diagnoses(workers)) == [
        (f"import{index}", (4, 4), DIAGNOSIS) for index in range(2)
    ]
    assert [round_ for round_, _ in journal.answers(0)] == [0, 1, 2]


def test_a_path_is_diagnosed_with_its_first_shape_only(workers, journal):
    run([make_case(shape=(2,)), make_case(shape=(3,))], journal, rounds=1, diagnose=True)
    assert diagnoses(workers) == [("from_dlpack", (2,), DIAGNOSIS)]


def test_a_path_is_diagnosed_with_the_first_shape_that_has_elements(workers, journal):
    run([make_case(shape=(0,)), make_case(shape=(3,))], journal, rounds=1, diagnose=True)
    assert diagnoses(workers) == [("from_dlpack", (3,), DIAGNOSIS)]


def test_a_path_is_diagnosed_with_the_first_shape_that_was_not_refused(workers, journal):
    journal.add(0, 0, make_answer("unsupported", "no"))
    run([make_case(shape=(2,)), make_case(shape=(3,))], journal, rounds=1, diagnose=True)
    assert diagnoses(workers) == [("from_dlpack", (3,), DIAGNOSIS)]


@pytest.mark.parametrize("axis", [{"dtype": "int8"}, {"layout": "F"}, {"device": "cuda"}])
def test_a_path_is_diagnosed_for_every_dtype_layout_and_device(workers, journal, axis):
    run([make_case(), make_case(**axis)], journal, rounds=1, diagnose=True)
    assert len(diagnoses(workers)) == 2


def test_nothing_is_diagnosed_where_that_is_not_asked_for(workers, journal):
    run(cases_of(2), journal, rounds=1, diagnose=False)
    assert diagnoses(workers) == []


def test_without_a_diagnosis_the_alignment_of_each_path_is_looked_at_once(workers, journal):
    cases = [make_case(shape=(2,)), make_case(shape=(3,)), make_case(name="other")]
    run(cases, journal, rounds=2, diagnose=False, alignment=True)
    assert sorted(diagnoses(workers)) == [
        ("from_dlpack", (2,), ALIGNMENT), ("other", (4, 4), ALIGNMENT),
    ]  # fmt: skip


@pytest.mark.parametrize("axis", [{"layout": "F"}, {"device": "cuda"}])
def test_what_has_no_alignment_is_not_asked_for_it(workers, journal, axis):
    run([make_case(**axis)], journal, rounds=1, diagnose=False, alignment=True)
    assert diagnoses(workers) == []


def test_what_did_not_work_is_not_diagnosed(workers, journal):
    workers.refuses = {"import0"}
    run(cases_of(2), journal, rounds=1, diagnose=True)
    assert [name for name, _, _ in diagnoses(workers)] == ["import1"]


@pytest.mark.parametrize("instrument", DIAGNOSIS)
def test_an_instrument_that_ends_its_worker_costs_itself_alone(workers, journal, instrument):
    workers.fatal = {instrument}
    run(cases_of(1), journal, rounds=1, diagnose=True)
    answer = journal.answers(0)[-1][1]
    assert answer["status"] == "ok"
    assert answer["parts"][instrument] == {
        "verdict": "unknown",
        "evidence": {"reason": f"killed by SIGSEGV during {instrument}", "worker": "crashed"},
    }
    rest = DIAGNOSIS[DIAGNOSIS.index(instrument) + 1 :]
    assert [asked for _, _, asked in diagnoses(workers)] == [DIAGNOSIS, *([rest] if rest else [])]
    assert workers.open == 0


def test_a_trace_that_ends_its_worker_costs_no_other_trace(workers, journal):
    workers.fatal = {"trace"}
    run(cases_of(2, device="cuda"), journal, diagnose=True)
    for case in (0, 1):
        parts = [answer["parts"] for _, answer in journal.answers(case)]
        lost = [part["trace"]["evidence"]["worker"] for part in parts if "trace" in part]
        assert lost == ["crashed"]


def test_the_watcher_is_told_the_diagnosis_too(workers, journal):
    watcher = Watched()
    run(cases_of(2), journal, watcher, rounds=2, diagnose=True)
    assert watcher.steps == watcher.total == 6


@pytest.mark.parametrize(
    ("sample_ns", "paths", "each_ns"),
    [
        (60_000_000, 1, 60_000_000),
        (60_000_000, 12, 60_000_000),
        (60_000_000, 24, 30_000_000),
        (60_000_000, 500, 20_000_000),
        (20_000_000, 500, 20_000_000),
        (5, 500, 5),
    ],
)
def test_a_pair_of_many_paths_gets_less_time_for_each(sample_ns, paths, each_ns):
    cases = [make_case(name=f"import{number}") for number in range(paths)]
    assert sample_ns_for(Settings(sample_ns=sample_ns), cases) == each_ns


def test_more_shapes_are_not_more_paths():
    cases = [make_case(shape=(size,)) for size in range(100)]
    assert sample_ns_for(Settings(sample_ns=60_000_000), cases) == 60_000_000


def test_single_rounds_measure_the_cases_that_are_asked_for(workers, journal):
    ran = Runner(
        Interpreter("python", {}),
        cases_of(3),
        Settings(diagnose=False, alignment=False),
        journal,
        Watched(),
    )
    ran.round(0, {0, 2})
    ran.round(1, {2})
    assert [statuses(journal, case) for case in range(3)] == [
        [(0, "ok")], [], [(0, "ok"), (1, "ok")],
    ]  # fmt: skip
    assert ran.rounds_done == 2


def test_a_worker_that_imports_meanwhile_is_the_one_that_measures(workers, journal):
    ran = Runner(
        Interpreter("python", {}), cases_of(2), Settings(diagnose=False, alignment=False, together=True),
        journal, Watched(),
    )  # fmt: skip
    ran.load(0, {0, 1})
    ran.wait()
    ran.round(0, {0, 1})
    assert len(workers.asked) == 1
    assert len(workers.loaded) == 2
    assert workers.open == 0


def test_a_worker_that_dies_of_its_imports_is_replaced(workers, journal):
    workers.dies_of_imports = True
    ran = Runner(
        Interpreter("python", {}),
        cases_of(1),
        Settings(diagnose=False, alignment=False),
        journal,
        Watched(),
    )
    ran.load(0, {0})
    ran.wait()
    ran.round(0, {0})
    assert statuses(journal, 0) == [(0, "ok")]
    assert len(workers.asked) == 2


def test_a_worker_that_was_loaded_and_not_used_is_ended(workers, journal):
    ran = Runner(
        Interpreter("python", {}),
        cases_of(1),
        Settings(diagnose=False, alignment=False),
        journal,
        Watched(),
    )
    ran.load(0, {0})
    ran.close()
    assert workers.open == 0


def test_a_worker_that_dies_after_its_last_case_costs_no_diagnosis(workers, journal):
    workers.poisons = {"import0"}
    run(cases_of(1), journal, rounds=1, diagnose=True)
    assert diagnoses(workers)[-1] == ("import0", (4, 4), DIAGNOSIS)
    assert journal.answers(0)[-1][1]["failures"] == []
