"""``dlprof jobs`` with real parts: uv, Ray, submitit, and signals."""

import base64
import hashlib
import json
import shutil
import signal
import subprocess
import sys
import zipfile

import pytest
from command_line import PROBE_FILES, dlprof, ended, process, running, wait_until

from dlprof.errors import UsageError
from dlprof.jobs.plan import JobEnvironment, Unmade, interpreter, read
from dlprof.runner.session_file import load

SCENARIO = 'run fake fake --probe fake.py --no-survey --shape 16 --path "*view*"'
QUICK = f"{SCENARIO} --quick"


@pytest.fixture
def folder(tmp_path):
    shutil.copy(PROBE_FILES / "fake.py", tmp_path)
    return tmp_path


def written(folder, *scenarios, more=""):
    plan = folder / "plan.toml"
    plan.write_text(
        f"store = 'results'\nscenarios = {json.dumps(scenarios or (QUICK,))}\n"
        f"[environments.here]\npython = {json.dumps(sys.executable)}\n{more}\n"
    )
    return plan


def sessions_in(folder):
    return [load(one) for one in sorted((folder / "results").glob("*.json"))]


def test_a_plan_is_run_once(folder):
    plan = written(folder, f"{QUICK} --sample-ms 1", f"{QUICK} --sample-ms 2")
    first = dlprof("jobs", "run", plan)
    assert first.code == 0, first.err
    assert "2 of 2 jobs done" in first.out
    assert [one.results[0].status for one in sessions_in(folder)] == ["ok", "ok"]
    again = dlprof("jobs", "run", plan)
    assert (again.code, again.err) == (0, "")
    assert dlprof("jobs", "status", plan).out.count("done  ") == 2


def test_a_failed_job_is_told_and_run_again(folder):
    plan = written(folder, QUICK, QUICK.replace("fake.py", "broken.py"))
    first = dlprof("jobs", "run", plan)
    assert (first.code, "1 of 2 jobs done" in first.out) == (3, True), first.err
    assert "broken.py" in first.out
    shutil.copy(folder / "fake.py", folder / "broken.py")
    assert dlprof("jobs", "run", plan).code == 0


def test_a_stopped_job_is_run_again(folder):
    plan = written(folder, f"{SCENARIO} --rounds 30")
    with running("jobs", "run", plan) as started:
        wait_until(lambda: list((folder / "results").glob("*.log")), "the job is running")
        started.send_signal(signal.SIGINT)
        assert ended(started).code == 130
    assert "0 of 1 job done" in dlprof("jobs", "status", plan).out
    plan.write_text(plan.read_text().replace("--rounds 30", "--rounds 2"))
    assert dlprof("jobs", "run", plan).code == 0


def test_what_a_job_finds_is_the_exit_code(folder):
    shutil.copy(PROBE_FILES / "sharer.py", folder)
    plan = written(folder, "run sharer sharer --probe sharer.py --quick --fail-on error")
    for _ in range(2):  # the second run measures nothing
        found = dlprof("jobs", "run", plan)
        assert (found.code, "1 of 1 job done" in found.out) == (1, True), found.err


def test_an_environment_that_cannot_be_made_costs_only_its_jobs(folder):
    more = (
        "[environments.no]\nrequirements = ['nothing-is-called-so']\nuv_options = ['--offline']\n"
    )
    found = dlprof("jobs", "run", written(folder, more=more))
    assert (found.code, "1 of 2 jobs done" in found.out) == (3, True), found.err
    assert "no environment: " in found.out


@pytest.mark.parametrize("suffix", [".json", ".log"])
def test_a_link_in_the_store_is_not_followed(folder, suffix):
    plan, target = written(folder), folder / "precious"
    target.write_text("kept")
    place = read(plan)[1][0].session.with_suffix(suffix)
    place.parent.mkdir()
    place.symlink_to(target)
    found = dlprof("jobs", "run", plan)
    assert (found.code, target.read_text()) == (2, "kept")
    assert f"{place.name} is not a regular file: remove it" in found.sentence()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("store = 's'", "environments"),
        ("store = 's'\nscenarios = ['delete x']\n[environments.a]\npython = 'p'", "delete x"),
        ("store = 's'\nscenarios = ['run a b']\n[environments.a]", "requirements or a python"),
        ("store = ", "TOML"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(tmp_path, text, said):
    plan = tmp_path / "plan.toml"
    plan.write_text(text)
    with pytest.raises(UsageError, match=said):
        read(plan)


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


def test_uv_makes_an_environment_once(packages, tmp_path):
    options = ["--offline", "--no-index", f"--find-links={packages}"]

    def version(requirement):
        wanted = JobEnvironment(requirements=[requirement], uv_options=options)
        python = interpreter(wanted, tmp_path / "environments", tmp_path)
        code = "import tiny; print(tiny.version)"
        return python, subprocess.check_output([python, "-c", code], text=True)

    old = version("tiny<2")
    assert old[1] == "1.0\n"
    assert version("tiny")[1] == "2.0\n"
    shutil.rmtree(packages)
    assert version("tiny<2") == old
    with pytest.raises(Unmade):
        version("tiny<3")


@pytest.mark.nightly
def test_ray_runs_jobs(folder):
    pytest.importorskip("ray")
    more = "[engine]\nname = 'ray'\noptions = {num_cpus = 1}\n"
    found = process("jobs", "run", written(folder, more=more))
    assert "1 of 1 job done" in found.out, found.out + found.err


def test_submitit_runs_jobs(folder):
    pytest.importorskip("submitit")
    more = "[engine]\nname = 'slurm'\noptions = {cluster = 'local', timeout_min = 5}\n"
    broken = "run fake fake --probe broken.py --quick"
    found = process("jobs", "run", written(folder, QUICK, broken, more=more))
    assert (found.code, "1 of 2 jobs done" in found.out) == (3, True), found.out + found.err
