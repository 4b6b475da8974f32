"""``dlprof jobs`` with real parts: installers, an object store, Ray, submitit, and signals."""

import base64
import contextlib
import hashlib
import http.server
import importlib.util
import json
import shutil
import signal
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from command_line import PROBE_FILES, alive, dlprof, ended, process, running, wait_until

from dlprof.errors import StoreError
from dlprof.jobs import environments
from dlprof.jobs.folder import folder_at
from dlprof.measuring.measure import load

VERSIONS = PROBE_FILES.parent / "recorded" / "versions"
SCENARIO = 'run fake fake --probe fake.py --no-survey --shape 16 --path "*view*"'


@pytest.fixture
def folder(tmp_path):
    """A folder with a probe, and what keeps dlprof out of the user's own folders."""
    shutil.copy(PROBE_FILES / "fake.py", tmp_path)
    return tmp_path


def written(folder, machine="", scenarios=(f"{SCENARIO} --quick",), more=""):
    plan = folder / "plan.toml"
    plan.write_text(
        f"store = 'results'\nscenarios = {json.dumps(scenarios)}\n{more}\n"
        f"[environments.here]\npython = {json.dumps(sys.executable)}\n{machine}\n"
    )
    return plan


def own_folders(folder):
    return {"XDG_STATE_HOME": folder / "state", "XDG_CACHE_HOME": folder / "cache"}


def jobs(folder, *words):
    return dlprof("jobs", *words, **own_folders(folder))


def sessions_in(folder):
    return [one for one in folder.glob("*.json") if not one.name.endswith(".job.json")]


def test_a_plan_is_run_once_and_its_sessions_are_fetched(folder):
    plan = written(folder, scenarios=[f"{SCENARIO} --quick --seed {n}" for n in (1, 2)])
    first = jobs(folder, "run", plan)
    assert first.code == 0, first.err
    assert "2 done, 0 failed" in first.out
    assert jobs(folder, "run", plan).err == ""
    assert jobs(folder, "list", plan).out.count("  done  ") == 2
    jobs(folder, "fetch", plan, "--to", folder / "copies")
    found = [load(file) for file in sessions_in(folder / "copies")]
    assert [one.results[0].status for one in found] == ["ok", "ok"]
    assert not list((folder / "state" / "dlprof" / "jobs").iterdir())


def test_a_stopped_job_leaves_no_process_and_is_taken_up_again(folder):
    plan = written(folder, scenarios=[SCENARIO + " --rounds 5"])
    with running("jobs", "run", plan, **own_folders(folder)) as started:
        begun = folder / "state" / "dlprof" / "jobs"
        wait_until(
            lambda: any(one.read_bytes().count(b"\n") > 2 for one in begun.glob("*/session.json")),
            "something is measured",
        )
        started.send_signal(signal.SIGINT)
        stopped = ended(started)
        assert stopped.code == 130
        assert f"dlprof jobs run {plan}" in stopped.err
        assert not alive(started.pid)
    assert "stopped" in jobs(folder, "status", plan).out
    assert jobs(folder, "run", plan).code == 0
    (session,) = sessions_in(folder / "results")
    found = load(session)
    assert found.complete
    assert len(found.results[0].host_time.processes) == 5


def test_what_a_gate_of_two_environments_finds_is_the_exit_code(folder):
    shutil.copy(PROBE_FILES / "spun.py", folder)
    broken = folder / "broken"
    broken.write_text(f'#!/bin/sh\nDLPROF_TEST_BREAK=crash exec {sys.executable} "$@"\n')
    broken.chmod(0o755)
    more = (
        f"[environments.other]\npython = '{broken}'\n"
        "[environments.same]\nbase = 'here'\nhead = 'here'\n"
        "[environments.worse]\nbase = 'here'\nhead = 'other'\n"
        "[[exclude]]\nenvironment = 'worse'\n"
    )
    (folder / "spun.toml").write_text(
        'title = "t"\nquestion = "q"\npairs = ["spun->spun"]\nshapes = ["64"]\n'
        'probes = ["fake.py", "spun.py"]\ndiagnose = false\n'
    )
    plan = written(folder, scenarios=["gate spun.toml --fail-on error"], more=more)
    equal = jobs(folder, "run", plan)
    assert (equal.code, "1 done" in equal.out) == (0, True), equal.out + equal.err
    plan.write_text(plan.read_text().replace("[[exclude]]\nenvironment = 'worse'\n", ""))
    found = jobs(folder, "run", plan)
    assert (found.code, "2 done" in found.out) == (1, True), found.out + found.err
    told = jobs(folder, "status", plan).out
    assert "found  worse  gate spun.toml" in told
    assert "now crashes" in told
    sessions = sorted(sessions_in(folder / "results"))
    assert len(sessions) == 4
    codes = [dlprof("compare", *sessions[at : at + 2], "--fail-on", "error").code for at in (0, 2)]
    assert sorted(codes) == [0, 1]


def records_in(folder):
    return [json.loads(one.read_text()) for one in (folder / "results").glob("*.job.json")]


def seeds_at_work(folder):
    return [one["scenario"][-1] for one in records_in(folder) if one["status"] == "running"]


def test_jobs_that_are_cancelled_end_and_those_that_wait_never_start(folder):
    plan = written(folder, scenarios=[f"{SCENARIO} --rounds 90 --seed {n}" for n in (1, 2, 3)])
    with running("jobs", "run", plan, **own_folders(folder)) as started:
        wait_until(lambda: seeds_at_work(folder) == ["1"], "the first job is running")
        found = jobs(folder, "cancel", plan, "--job", "*seed [12]")
        assert found.out.startswith("2 jobs cancelled\n"), found.err
        wait_until(lambda: seeds_at_work(folder) == ["3"], "the third job is running")
        jobs(folder, "cancel", plan)
        assert ended(started).code == 4
    told = {one["scenario"][-1]: (one["status"], "host" in one) for one in records_in(folder)}
    assert told == {
        seed: ("cancelled", was_started)
        for seed, was_started in (("1", True), ("2", False), ("3", True))
    }
    assert not list((folder / "results").glob("*.cancel"))


@pytest.fixture
def packages(tmp_path):
    """A folder with two versions of a package."""
    for version in ("1.0", "2.0"):
        info = f"tiny-{version}.dist-info"
        files = {
            "tiny.py": f"version = '{version}'\n",
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tiny\nVersion: {version}\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        lines = [f"{name},sha256={_sum(text)},{len(text)}" for name, text in files.items()]
        files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,"])
        (tmp_path / "packages").mkdir(exist_ok=True)
        place = tmp_path / "packages" / f"tiny-{version}-py3-none-any.whl"
        with zipfile.ZipFile(place, "w") as wheel:
            for name, text in files.items():
                wheel.writestr(name, text)
    return tmp_path / "packages"


def _sum(text):
    digest = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_an_environment_is_made_once_and_removed_when_the_disk_is_needed(
    packages, installer, monkeypatch, tmp_path
):
    if installer == "uv" and not environments._uv():
        pytest.skip("uv is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    commands = []
    output = environments.output
    monkeypatch.setattr(
        environments,
        "output",
        lambda words, text="": commands.append(words) or output(words, text),
    )
    asked = {"installer": installer, "find_links": [str(packages)]}
    one, two = (
        environments.resolved({**asked, "requirements": [text]}, "e") for text in ("tiny<2", "tiny")
    )
    assert [found["pins"] for found in (one, two)] == [["tiny==1.0"], ["tiny==2.0"]]
    with environments.made(one, 1e12) as python:
        assert output([python, "-c", "import tiny; print(tiny.version)"]) == "1.0\n"
        count = len(commands)
        with environments.made(one, 1e12) as same, environments.made(two, 1) as other:
            assert same == python
            assert len(commands) == count + 2  # those that make the other
            assert output([python, "-c", "print(1)"]) == "1\n"  # it is in use
    with environments.made(two, 1) as other:
        assert output([other, "-c", "import tiny; print(tiny.version)"]) == "2.0\n"
    (left,) = (tmp_path / "cache" / "dlprof" / "environments").glob("*/ready.json")
    assert str(left.parent) in other


class Locked(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(401)
        self.send_header("WWW-Authenticate", "Basic realm=packages")
        self.end_headers()

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_an_index_that_wants_a_password_is_told_before_anything_is_submitted(
    folder, installer, monkeypatch
):
    if installer == "uv" and not environments._uv():
        pytest.skip("uv is not installed")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Locked) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        more = (
            f"[environments.closed]\nrequirements = ['tiny']\ninstaller = '{installer}'\n"
            f"index_url = 'http://127.0.0.1:{server.server_port}/simple'"
        )
        found = jobs(folder, "run", written(folder, more=more))
        server.shutdown()
    assert (found.code, found.out) == (2, "")
    assert "closed needs a password" in found.sentence()
    assert not (folder / "results").exists()


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        ("run fake fake --quik", "No such option: --quik"),
        ("run --help", "--help"),
        ("survey numpy", "Missing argument"),
    ],
)
def test_a_scenario_with_wrong_words_is_refused(folder, scenario, said):
    found = jobs(folder, "run", written(folder, scenarios=[scenario]))
    assert found.code == 2
    assert said in found.sentence()


@pytest.mark.nightly
def test_ray_runs_jobs_at_the_usual_priority(folder):
    pytest.importorskip("ray")
    plan = written(folder, '[machines.nodes]\nexecutor = "ray"')
    found = process("jobs", "run", plan, **own_folders(folder))
    assert "1 done" in found.out, found.out + found.err
    (record,) = records_in(folder)
    assert (record["executor"], record.get("nice", 0)) == ("ray", 0)


def test_slurms_jobs_run_through_submitit(folder):
    pytest.importorskip("submitit")
    machine = '[machines.nodes]\nexecutor = "slurm"\ncluster = "local"'
    broken = "run fake fake --probe broken.py --quick"
    (folder / "broken.py").write_text("raise SystemExit(1)")
    plan = written(folder, machine, [f"{SCENARIO} --quick", broken])
    found = process("jobs", "run", plan, **own_folders(folder))
    assert found.code == 3
    assert "1 done, 1 failed" in found.out
    assert len(sessions_in(folder / "results")) == 1


def test_an_engine_that_is_not_installed_is_one_sentence(folder, monkeypatch):
    hidden = folder / "hidden"
    hidden.mkdir()
    (hidden / "ray.py").write_text("raise ImportError\n")
    plan = written(folder, '[machines.nodes]\nexecutor = "ray"')
    found = process("jobs", "run", plan, PYTHONPATH=hidden, XDG_STATE_HOME=folder / "state")
    assert found.code == 2
    assert "pip install 'dlprof[ray]'" in found.sentence()


@pytest.fixture
def bucket(monkeypatch):
    """The address of an object store that is not there yet."""
    for name in ("moto", "s3fs"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    import s3fs
    from moto.server import ThreadedMotoServer

    s3fs.S3FileSystem.clear_instance_cache()  # of another server
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    yield f"s3://{uuid4()}/store"
    server.stop()


def test_two_writers_of_an_object_store_lose_nothing_and_readers_see_whole_files(bucket):
    first = folder_at(bucket)
    with pytest.raises(StoreError):
        first.replace("a.json", b"x")  # a wrong name makes no bucket
    first.system.mkdir(first.root.partition("/")[0])
    folders = [first, folder_at(bucket)]
    texts = [bytes([48 + n]) * 300_000 for n in range(2)]

    def write(n):
        for number in range(10):
            folders[n].create(f"{number}-{n}.json", texts[n])
            folders[n].replace("shared.json", texts[n])

    def read(_):
        seen = set()
        for _ in range(30):
            with contextlib.suppress(StoreError):  # it is not there yet
                seen.add(first.read("shared.json"))
        return seen

    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(write, n) for n in range(2)]
        seen = pool.submit(read, 0).result()
        for writer in writers:
            writer.result()
    assert seen <= set(texts)
    assert len(first.names()) == 21
    found = dict(first.read_all(first.names()))
    assert len(found) == 21
    assert all(content in texts for content in found.values())


def test_jobs_and_reports_of_their_sessions_know_an_object_store(bucket, folder):
    place = folder_at(bucket)
    place.system.mkdir(place.root.partition("/")[0])
    plan = written(folder)
    plan.write_text(plan.read_text().replace("'results'", f"'{bucket}'"))
    done = jobs(folder, "run", plan)
    assert done.code == 0, done.err
    assert jobs(folder, "list", plan).out.count("  done  ") == 1
    for file in VERSIONS.iterdir():
        place.replace(file.name, file.read_bytes())
    place.replace("foreign.json", b"[]")
    compared = dlprof("compare", bucket)
    assert compared.code == 0, compared.err
    assert "onnxruntime 1.32.0" in compared.said
    assert compared.err.count("left out") == 1
    assert f"{bucket}/foreign.json" in compared.err
    nothing = dlprof("compare", f"{bucket}/nothing")
    assert nothing.code == 2
    assert f"{bucket}/nothing has no session" in nothing.sentence()
