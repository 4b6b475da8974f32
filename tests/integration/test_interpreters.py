"""``--python`` measures any interpreter, and nothing of this one leaks into it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import FAKE, RUN_FAKE, by_import, content, dlprof

from dlprof.errors import UsageError
from dlprof.runner import worker_client
from dlprof.runner.catalog import inspect_interpreter
from dlprof.runner.worker_client import MAIN

TELLING = """
import json, os, sys
from dlprof.probes.base import Probe

with open(os.environ["DLPROF_TEST_TELL"], "w") as file:
    json.dump({"path": sys.path, "prefix": sys.prefix, "modules": sorted(sys.modules)}, file)

class Telling(Probe):
    name = "telling"
    module = "json"
    distributions = ()
"""


def told(tmp_path: Path, *words: object, **changes: object) -> dict:
    """Return the view of a probe file inside a worker."""
    probe, answer = tmp_path / "telling.py", tmp_path / "told.json"
    probe.write_text(TELLING)
    run = dlprof("list", "--probe", probe, *words, DLPROF_TEST_TELL=answer, **changes)
    assert run.code == 0, run.err
    return json.loads(answer.read_text())


def own_path(python: str) -> list[str]:
    """Return the ``sys.path`` of an interpreter, without its script's folder."""
    command = [python, "-I", "-c", "import json, sys; print(json.dumps(sys.path))"]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def test_a_python_without_dlprof_or_numpy_is_measured(tmp_path, bare):
    path = tmp_path / "session.json"
    run = dlprof(*RUN_FAKE, "--python", bare, "-o", path)
    assert run.code == 0, run.err
    session = content(path)
    assert session["environment"]["executable"] == bare
    assert session["environment"]["packages"] == {}
    view = by_import(session)["view"]
    assert (view["status"], view["ownership"]["verdict"]) == ("ok", "view")


def test_a_matrix_without_any_framework_says_so(bare):
    run = dlprof("matrix", "--python", bare)
    assert run.code == 4
    assert "no framework is installed" in run.sentence()


def test_nothing_of_this_environment_is_on_the_path_of_another(tmp_path, bare):
    seen = told(tmp_path, "--python", bare, PYTHONPATH=tmp_path)
    assert seen["path"] == own_path(bare)
    assert "numpy" not in seen["modules"]


# Programs that are no Python


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("#!/bin/sh\nexit 0\n", "exit code 0"),
        ("#!/bin/sh\necho no option -X\nexit 2\n", "no option -X"),
        ("#!/bin/sh\nkill -SEGV $$\n", "SIGSEGV"),
        ("#!/bin/sh\nexec sleep 3600\n", r"0\.5 s"),
        ("#!/bin/sh\nexec yes\n", "worker"),
        ("#!/nowhere/interpreter\n", "cannot start"),
        ("just text\n", "cannot start"),
    ],
)
def test_a_program_that_is_no_python_is_refused_in_one_sentence(
    tmp_path, monkeypatch, text, reason
):
    if "exec" in text:
        monkeypatch.setattr(worker_client, "IMPORT_LIMIT_S", 0.5)
    python = tmp_path / "python"
    python.write_text(text)
    python.chmod(0o755)
    with pytest.raises(UsageError, match=reason) as refused:
        inspect_interpreter(str(python))
    assert "\n" not in str(refused.value)
    assert str(python) in str(refused.value)


def test_a_python_that_is_too_old_says_so():
    pretend = (
        "import runpy, sys; sys.version_info = (3, 8, 20); sys.version = '3.8.20 (main)'; "
        f"sys.argv = [{str(MAIN)!r}, '8', '9']; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", pretend], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert all(version in done.stderr for version in ("3.8.20", "3.10"))
    assert done.stderr.count("\n") == 1


# Variables that must be set before an import


@pytest.mark.parametrize("user", [None, "from the user"])
def test_a_probes_variables_are_set_before_its_framework_is_imported(tmp_path, user):
    path, probe = tmp_path / "session.json", tmp_path / "probe.py"
    text = Path(FAKE).read_text().partition("class Missing")[0]
    check = "import ctypes, os; raise ImportError(os.environ.get('DLPROF_FAKE'))"
    probe.write_text(text.replace('"import ctypes, os, sys"', repr(check)))
    words = ("run", "fake", "fake", "--probe", probe, *RUN_FAKE[5:], "-o", path)
    assert dlprof(*words, DLPROF_FAKE=user).code == 4
    session = content(path)
    seen = session["results"][0]["reason"].rpartition("ImportError: ")[2]
    assert seen == session["environment"]["variables"]["DLPROF_FAKE"] == (user or "from the probe")
