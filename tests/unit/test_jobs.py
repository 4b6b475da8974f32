"""Jobs: plans that make sense or are refused, and runs that lose nothing, on a scripted engine."""

import json
import os
import socket
from uuid import uuid4

import pytest
from many_builders import day, result

from dlprof.errors import UsageError
from dlprof.jobs import node, run
from dlprof.jobs.environments import Unmade
from dlprof.jobs.folder import folder_at
from dlprof.jobs.plan import read
from dlprof.jobs.store import Store

SCENARIO = 'title = "t"\nquestion = "q"\npairs = ["numpy->numpy"]\n'
PLAN = """
store = "results"
scenarios = ["survey numpy numpy", "s.toml"]
[environments.old]
requirements = ["numpy==1.26.4"]
[environments.new]
requirements = ["numpy==2.1.0"]
"""
PAIR = '[environments.both]\nbase = "old"\nhead = "new"\n'
SESSION = day(1, result()).model_dump_json(by_alias=True)
DONE = {"status": "done", "exit_code": 0, "files": {"": SESSION}}
LOST = {"status": "lost", "why": "the node is gone"}


@pytest.fixture
def plan(tmp_path):
    def written(text=PLAN, **files):
        for name, content in {"s": SCENARIO, **files}.items():
            (tmp_path / f"{name}.toml").write_text(content)
        (tmp_path / "plan.toml").write_text(text)
        return read(tmp_path / "plan.toml")

    return written


class Engine:
    """Answers from a script: the next of a job's answers each time that it is run."""

    poll_s = 0.0

    def __init__(self, answers=()):
        self.answers = dict(answers)
        self.ran = []

    def submit(self, tasks):
        self.ran += [task.id for task in tasks]
        self.texts = [task.text for task in tasks]
        return [task.id for task in tasks]

    def poll(self, handle):
        return "ended"

    def fetch(self, handle):
        found = self.answers.get(handle, [DONE])
        answer = found.pop(0) if len(found) > 1 else found[0]
        return answer if isinstance(answer, str) else json.dumps(answer)


def file_of(job):
    return f"{job.id}.json"


@pytest.fixture
def worked(monkeypatch):
    """Run a plan with an engine in a store; no installer is asked."""
    store = Store(folder_at(f"memory://{uuid4()}/store"))

    def run_it(plan, engine, resolved=lambda written, name: {**written, "pins": ["numpy==1"]}):
        monkeypatch.setattr(run, "resolved", resolved)
        work = run.Run(plan, store, records=store.records(plan.jobs), engines={"local": engine})
        run.run(work)
        return work

    return run_it


def test_the_jobs_are_the_product_without_what_is_excluded(plan):
    found = plan(PLAN + '[machines.a]\n[machines.b]\n[[exclude]]\nenvironment = "o*"\nmachine="b"')
    names = [(job.environment, job.scenario.verb, job.machine) for job in found.jobs]
    assert names == [
        *(("old", verb, "a") for verb in ("survey", "sweep")),
        *(("new", verb, "a") for verb in ("survey", "sweep")),
        *(("new", verb, "b") for verb in ("survey", "sweep")),
    ]


def test_the_name_of_a_job_is_the_digest_of_its_contents(plan):
    first = {job.scenario.text + job.environment: job.id for job in plan().jobs}
    again = plan(PLAN + PAIR, s=SCENARIO.replace('"q"', '"p"'))
    second = {job.scenario.text + job.environment: job.id for job in again.jobs}
    assert len(set(first.values())) == 4
    assert {key for key in first if first[key] != second[key]} == {"s.tomlold", "s.tomlnew"}


def test_a_plan_takes_what_it_includes_and_stands_over_it(plan):
    text = 'include = ["base.toml"]\n[environments.new]\nrequirements = ["numpy==2.2.0"]\n'
    found = plan(text, base=PLAN)
    requirements = [one.requirements for one in found.written.environments.values()]
    assert requirements == [["numpy==1.26.4"], ["numpy==2.2.0"]]


LARGE = "\n".join(
    [
        'store = "x"',
        f"scenarios = {[f'run numpy numpy --seed {n}' for n in range(1000)]}",
        *(f'[environments.e{n}]\nrequirements = ["numpy"]' for n in range(100)),
        *(f"[machines.m{n}]" for n in range(100)),
    ]
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PLAN.replace("s.toml", "nowhere.toml"), "nowhere.toml"),
        (PLAN.replace("survey numpy", "surbey numpy"), "a scenario file"),
        (PLAN.replace("survey numpy", "survey -o x numpy"), "a job sets -o itself"),
        (PLAN + 'include = ["plan.toml"]', "Extra inputs"),
        ('include = ["a.toml"]', "include itself"),
        (LARGE, "10,000,000 jobs"),
        (PLAN.replace("[env", 'variables = ["NOT SET"]\n[env', 1), "expected NAME"),
        (PLAN + 'index_url = "https://me:secret@host/simple"', "a login"),
        (PLAN + 'index_url = "https://host/simple?token=secret"', "a login"),
        (PLAN + 'find_links = ["http:me:secret@host/x"]', "a login"),
        (PLAN + 'find_links = ["--extra-index-url=https://me:secret@host"]', "a login"),
        (PLAN + 'find_links = ["a\\nb"]', "has one line"),
        (PLAN.replace('"results"', '"a\\nb"'), "has one line"),
        (PLAN.replace('"s.toml"', '"gate s.toml"'), "base and"),
        (PLAN + '[environments.both]\nbase = "old"\nhead = "none"', "no environment 'none'"),
        (PLAN + "[[exclude]]\n", "left of 4"),
        (PLAN + '[machines.x]\nexecutor = "cloud"', "machines.x.executor"),
        *((f'{PLAN}[environments.own]\npython = "{one}"', one) for one in ("2.7", "3", "311")),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused_in_one_sentence(plan, text, said):
    with pytest.raises(UsageError) as no:
        plan(text, a='include = ["b.toml"]', b='include = ["a.toml"]')
    assert said in str(no.value)
    assert "secret" not in str(no.value)
    assert "\n" not in str(no.value)


def test_a_gate_is_one_job_that_measures_both_sides_in_one_process(plan, tmp_path):
    found = plan(PLAN.replace("s.toml", "gate s.toml") + PAIR + "[machines.a]\n[machines.b]\n")
    gates = [job for job in found.jobs if job.scenario.verb == "gate"]
    assert [(job.environment, job.machine) for job in gates] == [("both", "a"), ("both", "b")]
    assert all(found.environments(job) == ("old", "new") for job in gates)
    assert all(job.environment != "both" for job in found.jobs if job not in gates)
    words = node._words(gates[0].scenario.words, tmp_path, ["/old/python", "/new/python"])
    sides = ["--base-python", "/old/python", "--head-python", "/new/python"]
    assert words[:6] == ["gate", "s.toml", *sides]


def test_what_is_done_is_not_run_again_and_what_failed_is(plan, worked):
    found = plan()
    first = found.jobs[0].id
    failed = {"status": "failed", "exit_code": 2, "why": "no", "lines": ["a", "b"]}
    work = worked(found, Engine({first: [failed]}))
    assert work.counts == {"done": 3, "failed": 1}
    assert work.records[first].lines == ["a", "b"]
    engine = Engine()
    assert worked(found, engine).counts == {"done": 4}
    assert engine.ran == [first]


def test_a_lost_job_is_run_again_three_times(plan, worked):
    found = plan()
    never, later = found.jobs[0].id, found.jobs[1].id
    engine = Engine({never: [LOST], later: [LOST, LOST, DONE]})
    work = worked(found, engine)
    assert [engine.ran.count(job.id) for job in found.jobs] == [4, 3, 1, 1]
    assert work.records[never].status == "failed"
    assert work.records[never].why.endswith("4 times: the node is gone")


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "[]",
        "{",
        json.dumps({**DONE, "files": {}}),
        json.dumps({**DONE, "files": {"": SESSION[:-20]}}),
        json.dumps({**DONE, "files": {"": '{"schema": "dlprof.session/9"}'}}),
        json.dumps({**DONE, "status": "splendid"}),
        json.dumps({**DONE, "seconds": {"a": 1}}),
    ],
)
def test_an_answer_that_is_torn_or_foreign_is_none(plan, worked, answer):
    found = plan()
    first = found.jobs[0].id
    work = worked(found, Engine({first: [answer, DONE]}))
    assert work.counts == {"done": 4}
    assert work.records[first].tries == 2
    assert sorted(dict(work.store.sessions(found.jobs))) == sorted(map(file_of, found.jobs))


def test_an_environment_that_cannot_be_made_costs_its_jobs_only(plan, worked):
    def resolved(written, name):
        if name == "old":
            raise Unmade(["no such version"])
        return {**written, "pins": ["numpy==2.1.0"]}

    engine = Engine()
    work = worked(plan(), engine, resolved)
    assert work.counts == {"failed": 2, "done": 2}
    assert len(engine.ran) == 2
    assert work.records[work.plan.jobs[0].id].lines == ["no such version"]


def test_only_the_variables_that_a_plan_names_travel(plan, worked, monkeypatch):
    monkeypatch.setenv("TOKEN", "secret-of-the-user")
    monkeypatch.setenv("NAMED", "told")
    engine = Engine()
    work = worked(plan(PLAN.replace("[env", 'variables = ["NAMED", "A=1"]\n[env', 1)), engine)
    tasks = [json.loads(text) for text in engine.texts]
    assert all(task["variables"] == {"NAMED": "told", "A": "1"} for task in tasks)
    assert "secret-of-the-user" not in "".join(engine.texts)
    names = work.store.folder.names()
    assert all(b"told" not in work.store.folder.read(name) for name in names)


def test_a_measured_process_does_not_see_what_an_engine_sets():
    found = {"OMP_NUM_THREADS": "1", "RAY_JOB_ID": "1", "SLURM_JOB_ID": "1", "TOKEN": "x"}
    kept = {"CUDA_VISIBLE_DEVICES": "1", "PATH": "/bin", "LC_ALL": "C"}
    assert node._environment({**found, **kept}) == kept


@pytest.mark.parametrize(
    "by",
    [("elsewhere", 1), (socket.gethostname(), os.getppid())],
    ids=["elsewhere", "a number that is used again"],
)
def test_a_job_of_a_dlprof_that_died_is_run_again(plan, worked, by):
    found = plan()
    work = worked(found, Engine())
    first = work.records[found.jobs[0].id]
    work.store.folder.system.rm(f"{work.store.folder.root}/{file_of(found.jobs[0])}")
    work.store.note(first.model_copy(update={"status": "running", "by": by}))
    assert worked(found, Engine()).records[first.job].status == "done"


def test_two_do_not_run_jobs_on_one_machine(plan, worked):
    found = plan()
    work = worked(found, Engine())
    with run.exclusive(work), pytest.raises(UsageError, match="another dlprof"):
        worked(found, Engine())


def test_a_torn_session_is_measured_again_and_replaced(plan, worked):
    found = plan()
    work = worked(found, Engine())
    place = f"{work.store.folder.root}/{file_of(found.jobs[0])}"
    whole = work.store.folder.system.cat_file(place)
    work.store.folder.system.pipe_file(place, whole[:20])
    assert work.store.records(found.jobs)[found.jobs[0].id].status == "lost"
    assert file_of(found.jobs[0]) not in dict(work.store.sessions(found.jobs))
    worked(found, Engine())
    assert work.store.folder.system.cat_file(place) == whole


def test_a_session_of_something_else_is_not_counted_and_not_replaced(plan, worked):
    found = plan()
    first, second = map(file_of, found.jobs[:2])
    work = worked(found, Engine())
    folder = work.store.folder
    other = folder.read(second)
    folder.replace(first, other)
    assert [one.status for one in work.store.records(found.jobs).values()].count("done") == 3
    assert first not in dict(work.store.sessions(found.jobs))
    with pytest.raises(UsageError, match=f"{first} is not its session"):
        worked(found, Engine())
    assert not work.store.put(first, b"{}")
    assert folder.read(first) == other


def test_paths_of_an_environment_begin_at_the_plan(plan, tmp_path):
    text = PLAN.replace("[environments.new]", '[environments.new]\nfind_links = ["wheels"]')
    found = plan(text + '[environments.own]\npython = "./py"\n')
    assert found.environment("new")["find_links"] == [str(tmp_path / "wheels")]
    assert found.environment("own")["python"] == str(tmp_path / "py")


@pytest.mark.parametrize(("complete", "status"), [(True, "done"), (False, "failed")])
def test_a_session_of_refusals_is_kept_if_the_run_came_to_its_end(
    monkeypatch, tmp_path, complete, status
):
    def ran(_words, _here, _variables, folder):
        (folder / "session.json").write_text(json.dumps({"end": {"complete": complete}}))
        return {"exit_code": 4, "lines": []}

    monkeypatch.setattr(node, "_run", ran)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    task = {"id": "a", "words": ["run"], "files": {}, "folder": ".", "variables": {}}
    assert node._measured(task, ["python"])["status"] == status
