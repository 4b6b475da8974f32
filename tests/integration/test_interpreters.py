"""``--python`` measures any interpreter as it is, and nothing of this one leaks into it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from command_line import COMMAND, FAKE, PROBE_FILES, QUICK, by_import, content, dlprof

from dlprof.errors import UsageError
from dlprof.runner import inspection
from dlprof.runner.inspection import inspect_interpreter
from dlprof.runner.worker_client import MAIN, child_environment

pytestmark = pytest.mark.integration

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


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> str:
    """A Python with nothing installed: no dlprof, no NumPy, no pip."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    return str(folder / "bin" / "python")


def told(tmp_path: Path, *words: object, **changes: str) -> dict:
    """What a probe file sees inside a worker."""
    probe, answer = tmp_path / "telling.py", tmp_path / "told.json"
    probe.write_text(TELLING)
    run = dlprof(
        "probes", "--probe", probe, *words, state=tmp_path, DLPROF_TEST_TELL=str(answer), **changes
    )
    assert run.code == 0, run.err
    return json.loads(answer.read_text())


def own_path(python: str) -> list[str]:
    """The ``sys.path`` of an interpreter, without the place of its script."""
    command = [python, "-I", "-c", "import json, sys; print(json.dumps(sys.path))"]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def test_a_python_without_dlprof_or_numpy_is_measured(tmp_path, bare):
    path = tmp_path / "session.json"
    run = dlprof(
        "run", "fake", "fake", "--probe", FAKE, *QUICK, "--python", bare, "-o", path, state=tmp_path
    )
    assert run.code == 0, run.err
    session = content(path)
    assert session["environment"]["executable"] == bare
    assert session["environment"]["packages"] == {}
    view = by_import(session)["view"]
    assert (view["status"], view["ownership"]["verdict"]) == ("ok", "view")


def test_a_framework_missing_there_is_reported_with_that_interpreter(tmp_path, bare):
    run = dlprof("run", "numpy", "numpy", "--python", bare, state=tmp_path)
    assert run.code == 4
    assert run.sentence() == f"dlprof: numpy is not installed: {bare} -m pip install numpy"


def test_a_matrix_without_any_framework_says_so(tmp_path, bare):
    run = dlprof("matrix", "--python", bare, state=tmp_path)
    assert run.code == 4
    assert run.sentence() == "dlprof: no framework is installed that can be measured here"


def test_nothing_of_this_environment_is_on_the_path_of_another(tmp_path, bare):
    seen = told(tmp_path, "--python", bare, PYTHONPATH=str(tmp_path))
    assert seen["path"] == own_path(bare)
    assert "numpy" not in seen["modules"]


def test_pythonpath_holds_for_the_same_interpreter(tmp_path):
    assert str(tmp_path) in told(tmp_path, PYTHONPATH=str(tmp_path))["path"]


def test_the_folder_of_the_worker_is_on_no_path(tmp_path):
    assert str(MAIN.parent) not in told(tmp_path)["path"]


def test_a_safe_path_loses_nothing(tmp_path):
    seen = told(tmp_path, PYTHONPATH=str(tmp_path), PYTHONSAFEPATH="1")
    assert str(tmp_path) in seen["path"]


@pytest.mark.parametrize("name", ["PYTHONPATH", "PYTHONHOME"])
def test_variables_that_lead_to_this_python_are_dropped_for_another(monkeypatch, name):
    monkeypatch.setenv(name, "/somewhere")
    assert name not in child_environment("/other/python", {})
    assert child_environment(sys.executable, {})[name] == "/somewhere"


# What is no Python


def write_script(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("#!/bin/sh\nexit 0\n", "cannot run dlprof's worker: the process ended with exit code 0"),
        ("#!/bin/sh\nexit 3\n", "cannot run dlprof's worker: the process ended with exit code 3"),
        (
            "#!/bin/sh\necho no such option -X\nexit 2\n",
            "cannot run dlprof's worker: no such option -X",
        ),
        ("#!/bin/sh\nkill -SEGV $$\n", "cannot run dlprof's worker: killed by SIGSEGV"),
        ("#!/nowhere/interpreter\n", "cannot start the interpreter"),
        ("just text\n", "cannot start the interpreter"),
    ],
)
def test_a_program_that_is_no_python_is_told_in_one_sentence(tmp_path, text, reason):
    python = write_script(tmp_path / "python", text)
    with pytest.raises(UsageError, match=reason) as refused:
        inspect_interpreter(python)
    assert "\n" not in str(refused.value)
    assert python in str(refused.value)


def test_a_program_that_never_answers_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(inspection, "START_LIMIT_S", 0.5)
    python = write_script(tmp_path / "python", "#!/bin/sh\nexec sleep 3600\n")
    with pytest.raises(UsageError, match=r"cannot run dlprof's worker: no answer within 0\.5 s"):
        inspect_interpreter(python)


def test_a_program_that_never_stops_talking_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(inspection, "START_LIMIT_S", 0.5)
    python = write_script(tmp_path / "python", "#!/bin/sh\nexec yes\n")
    with pytest.raises(UsageError, match=r"cannot run dlprof's worker: "):
        inspect_interpreter(python)


@pytest.mark.parametrize(
    "words", [("run", "numpy", "numpy"), ("probes",), ("matrix",)], ids=" ".join
)
def test_a_program_that_is_no_python_ends_every_verb_alike(tmp_path, words):
    run = dlprof(*words, "--python", "/bin/true", state=tmp_path)
    assert run.code == 2
    assert (
        run.sentence()
        == "dlprof: /bin/true cannot run dlprof's worker: the process ended with exit code 0"
    )


def test_a_file_that_may_not_be_run_is_told_in_one_sentence(tmp_path):
    (tmp_path / "python").write_text("#!/bin/sh\n")
    run = dlprof("probes", "--python", tmp_path / "python", state=tmp_path)
    assert run.code == 2
    assert run.sentence().endswith("Permission denied")


def test_a_folder_is_no_interpreter(tmp_path):
    run = dlprof("probes", "--python", tmp_path, state=tmp_path)
    assert run.code == 2
    sentence = f"dlprof: the interpreter {tmp_path} is a folder, not a regular file"
    assert run.sentence() == sentence


def test_a_python_that_is_too_old_says_so():
    pretend = (
        "import runpy, sys; sys.version_info = (3, 8, 20); sys.version = '3.8.20 (main)'; "
        f"sys.argv = [{str(MAIN)!r}, '8', '9']; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", pretend], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "Python 3.8.20 is too old: dlprof measures 3.10 and newer\n"


def test_python_2_can_read_the_start_of_a_worker_and_so_say_that_it_is_too_old():
    newer = (ast.AnnAssign, ast.JoinedStr, ast.NamedExpr, ast.AsyncFunctionDef, ast.Nonlocal)
    for node in ast.walk(ast.parse(MAIN.read_text(encoding="ascii"))):
        assert not isinstance(node, newer)
        assert getattr(node, "returns", None) is None
        assert getattr(node, "annotation", None) is None
        assert not (isinstance(node, ast.arguments) and node.kwonlyargs)
        assert not (isinstance(node, ast.ImportFrom) and node.module == "__future__")


# Variables that must be set before an import


def test_a_probes_variables_are_set_before_its_framework_is_imported(tmp_path):
    assert variables_seen(tmp_path) == ("from the probe", "from the probe")


def test_a_variable_that_the_user_has_set_is_left_alone(tmp_path):
    assert variables_seen(tmp_path, DLPROF_FAKE="from the user") == (
        "from the user",
        "from the user",
    )


def variables_seen(tmp_path: Path, **changes: str) -> tuple[str, str]:
    """What the setup text finds in the environment, and what the session says of it."""
    path, probe = tmp_path / "session.json", tmp_path / "probe.py"
    text = Path(FAKE).read_text().partition("class Missing")[0]
    check = "import ctypes, os; raise ImportError(os.environ.get('DLPROF_FAKE'))"
    probe.write_text(text.replace('"import ctypes, os, sys"', repr(check)))
    run = dlprof(
        "run", "fake", "fake", "--probe", probe, *QUICK, "-o", path, state=tmp_path, **changes
    )
    assert run.code == 4
    session = content(path)
    reason = session["results"][0]["reason"].removeprefix("ImportError: ")
    return reason, session["environment"]["variables"]["DLPROF_FAKE"]


@pytest.mark.parametrize(
    ("framework", "name", "value"),
    [
        ("tensorflow", "TF_FORCE_GPU_ALLOW_GROWTH", "true"),
        ("jax", "XLA_PYTHON_CLIENT_PREALLOCATE", "false"),
    ],
)
def test_frameworks_that_take_all_gpu_memory_are_told_not_to(framework, name, value):
    assert inspect_interpreter(sys.executable).named(framework).variables[name] == value


def test_the_command_and_the_module_are_the_same_program(tmp_path):
    script = Path(sys.executable).with_name("dlprof")
    if not script.exists():
        pytest.skip("dlprof is not installed as a command here")
    by_script = dlprof("--version", state=tmp_path, command=(str(script),))
    assert by_script == dlprof("--version", state=tmp_path, command=COMMAND)


def test_an_interpreter_named_from_here_is_found_from_anywhere(tmp_path, bare):
    beside = Path(bare).parent
    run = dlprof("probes", "--python", "./python", state=tmp_path, cwd=beside)
    assert run.code == 0
    assert str(PROBE_FILES) not in run.out
