"""``dlprof conformance``: a crash costs one check, and a script shows a deviation without dlprof."""

import json
import subprocess
import sys

import pytest
from command_line import PROBE_FILES, dlprof

from dlprof.conformance import CHECKS
from dlprof.runner import conformance as runner
from dlprof.runner.catalog import inspect_interpreter

PLAIN = ("conformance", "plain", "--probe", PROBE_FILES / "plain.py")


@pytest.fixture(scope="module")
def catalog():
    return inspect_interpreter(sys.executable, (str(PROBE_FILES / "plain.py"),))


def answer(script):
    """Return a script's verdict as ``dlprof conformance`` words it."""
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=100, check=False
    )
    if done.returncode < 0:
        return "crashed"
    if done.returncode == 0:
        return "holds"
    return "violated" if "\nViolated: " in done.stderr else "cannot tell"


@pytest.fixture
def repro(catalog, tmp_path):
    """The script of a check as a file."""

    def repro(name):
        path = tmp_path / f"{name}.py"
        path.write_text(runner.script(catalog, catalog.find("plain"), CHECKS[name], "cpu"))
        return path

    return repro


def wrong(done):
    checks = json.loads(done.out)["checks"]
    return {
        one["name"]: one["verdict"] for one in checks if one["verdict"] in ("crashed", "violated")
    }


def test_a_crash_costs_one_check_and_fails_where_that_is_asked(monkeypatch):
    monkeypatch.setenv("PLAIN_FAULT", "deleter-in-thread")
    done = dlprof(*PLAIN, "--json", "-", "--fail-on", "must")
    assert done.code == 1
    assert wrong(done) == {"deleter-in-thread": "crashed"}
    assert len(json.loads(done.out)["checks"]) == len(CHECKS)


def test_a_framework_that_follows_the_standards_violates_nothing(tmp_path):
    done = dlprof(*PLAIN, "--fail-on", "may", "-o", tmp_path / "verdicts.json")
    assert done.code == 0
    assert len(json.loads((tmp_path / "verdicts.json").read_text())["checks"]) == len(CHECKS)
    assert "plain violates no clause" in done.out.splitlines()[2]
    assert "violated" not in done.out


def test_the_next_commands_measure_the_same_interpreter_and_probes(monkeypatch):
    monkeypatch.setenv("PLAIN_FAULT", "deleter-in-thread")
    first = dlprof(*PLAIN, "--python", sys.executable, COLUMNS=1000)
    command = next(line for line in first.out.splitlines() if line.startswith("dlprof "))
    assert command.count(f"--python {sys.executable} --probe {PLAIN[-1]} --") == 2
    repro = command.partition(" · ")[2].split()[1:]
    assert "plain as producer" in dlprof(*repro).out


@pytest.mark.parametrize(
    ("name", "fault"),
    [("deleter-in-thread", "deleter-in-thread"), ("byte-offset", "crashes-at-drop")],
)
def test_a_script_ends_by_a_signal_where_the_framework_ends_the_process(
    name, fault, repro, monkeypatch
):
    monkeypatch.setenv("PLAIN_FAULT", fault)
    assert answer(repro(name)) == "crashed"


def test_a_clause_that_does_not_apply_has_no_script():
    done = dlprof(*PLAIN, "--repro", "immutable-flag")
    assert (done.code, done.out) == (4, "")
    assert "its arrays can be written" in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--repro", "byte-ofset"), 2, "did you mean 'byte-offset'?"),
        (("--fail-on", "error"), 2, "must, should, may"),
    ],
)
def test_a_wrong_name_is_answered_before_anything_runs(arguments, code, words):
    done = dlprof(*PLAIN, *arguments)
    assert (done.code, words in done.err) == (code, True)
