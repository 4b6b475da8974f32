"""The action and the GitLab job: what they ask dlprof for, and that no input becomes a script."""

import re

import pytest
from pipelines import (
    ACTION,
    GITLAB_SHELLS,
    JOB,
    WAYS,
    recorded,
    recorder,
    run_action,
    run_job,
)

STEPS = ACTION["runs"]["steps"]
GATE = STEPS[-1]
EVIL = (
    '"; touch pwned; "',
    "$(touch pwned)",
    "`touch pwned`",
    "a b  c",
    "*",
    "--help",
    "'",
    "\\",
    "x\ny=z",
    "${HOME}",
)
JUDGED = {
    "fail-on": "ready:5%,200ns",
    "budget": "300",
    "unsure": "pass",
    "noise": "n.json",
    "sessions": "kept",
    "wide-limit": "10",
    "any-python": "true",
}

every_way = pytest.mark.parametrize("way", WAYS)
every_shell = pytest.mark.parametrize("shell", GITLAB_SHELLS)


def expected(inputs):
    """The words that a way's inputs come to. A baseline has one interpreter beside it."""
    other = {"head-python": "python"} if "baseline" in inputs else {}
    names = {name: {"sessions": "output", **other}.get(name, name) for name in inputs}
    given = {name: text for name, text in inputs.items() if name not in (*POSITIONAL, "any-python")}
    options = [f"--{names[name]}={text}" for name, text in given.items()]
    options += ["--any-python"] * (inputs.get("any-python") == "true")
    return options, [inputs[name] for name in POSITIONAL if name in inputs]


POSITIONAL = ("scenario", "base", "head")


@every_way
def test_the_action_asks_for_what_its_inputs_say(tmp_path, way):
    inputs = {**WAYS[way], **JUDGED}
    ran = run_action({**inputs, "dlprof": str(recorder(tmp_path))}, tmp_path)
    options, files = expected(inputs)
    words = recorded(tmp_path)
    place = words.index("--")
    assert (ran.code, ran.output) == (0, "exit-code=0\n")
    assert words[:2] == ["gate", "--github"]
    assert set(words[2:place]) == {*options, "--junit=dlprof-junit.xml"}
    assert words[place + 1 :] == files


@every_shell
@every_way
def test_the_job_asks_for_what_its_variables_say(tmp_path, way, shell):
    inputs = {**WAYS[way], **JUDGED}
    ran = run_job({**inputs, "command": str(recorder(tmp_path))}, tmp_path, shell)
    options, files = expected(inputs)
    words = recorded(tmp_path)
    place = words.index("--")
    reports = JOB["artifacts"]["reports"]
    assert ran.code == 0, ran.err
    assert set(words[1:place]) == {
        *options,
        f"--junit={reports['junit']}",
        "--json=dlprof-comparison.json",
    }
    assert words[place + 1 :] == files


@every_way
def test_what_is_not_given_is_not_asked_for(tmp_path, way):
    inputs = {**WAYS[way], "junit": "", "dlprof": str(recorder(tmp_path))}
    assert run_action(inputs, tmp_path).code == 0
    options, files = expected(WAYS[way])
    assert recorded(tmp_path) == [
        "gate",
        "--github",
        *sorted(options, key=place_in_the_script),
        "--",
        *files,
    ]


@pytest.mark.parametrize("run", [run_action, run_job])
def test_two_versions_of_python_are_compared_only_where_that_is_true(tmp_path, run):
    command = {"dlprof" if run is run_action else "command": str(recorder(tmp_path))}
    run({**next(iter(WAYS.values())), **command, "any-python": "false"}, tmp_path)
    assert "--any-python" not in recorded(tmp_path)


def place_in_the_script(option):
    order = ("--base-python", "--head-python", "--python", "--baseline")
    return order.index(option.partition("=")[0])


@pytest.mark.parametrize("code", [1, 2, 3, 4])
def test_the_exit_code_is_handed_on(tmp_path, code):
    command = str(recorder(tmp_path, code))
    ran = run_action({**WAYS["two sessions"], "dlprof": command}, tmp_path)
    assert (ran.code, ran.output) == (code, f"exit-code={code}\n")
    assert run_job({**WAYS["two sessions"], "command": command}, tmp_path).code == code


@pytest.mark.parametrize(
    "inputs",
    [{}, {"base": "a"}, {"head": "b"}, {"scenario": "s", "base": "a", "head": "b"}],
    ids=["nothing", "base", "head", "both"],
)
def test_what_to_compare_must_be_clear(tmp_path, inputs):
    command = str(recorder(tmp_path))
    ran = run_action({**inputs, "dlprof": command}, tmp_path)
    assert (ran.code, ran.output) == (2, "exit-code=2\n")
    assert ran.out.startswith("::error title=dlprof::Name either a scenario, or ")
    job = run_job({**inputs, "command": command}, tmp_path)
    assert job.code == 2
    assert job.err.startswith("Name either DLPROF_SCENARIO, or ")
    assert not (tmp_path / "words").exists()


@pytest.mark.parametrize("evil", EVIL, ids=range(len(EVIL)))
@pytest.mark.parametrize("name", ["base", "fail-on", "junit"])
def test_no_input_becomes_part_of_the_action_s_script(tmp_path, evil, name):
    inputs = {**WAYS["two sessions"], "dlprof": str(recorder(tmp_path)), name: evil}
    ran = run_action(inputs, tmp_path)
    words = recorded(tmp_path)
    assert (evil if name == "base" else f"--{name}={evil}") in words
    assert ran.output == "exit-code=0\n"
    assert not (tmp_path / "pwned").exists()


@every_shell
@pytest.mark.parametrize("evil", EVIL, ids=range(len(EVIL)))
def test_no_variable_becomes_part_of_the_job_s_script(tmp_path, evil, shell):
    inputs = {"base": evil, "head": evil, "fail-on": evil, "command": str(recorder(tmp_path))}
    assert run_job(inputs, tmp_path, shell).code == 0
    words = recorded(tmp_path)
    assert words[-2:] == [evil, evil]
    assert f"--fail-on={evil}" in words
    assert not (tmp_path / "pwned").exists()


def test_outputs_come_from_steps_that_are_there():
    for output in ACTION["outputs"].values():
        step, name = re.fullmatch(
            r"\$\{\{ steps\.(\w+)\.outputs\.([\w-]+) \}\}", output["value"]
        ).groups()
        assert step in {found.get("id") for found in STEPS}
        assert f"{name}=" in GATE["run"]


def interpreter(folder, name="my python"):
    """A command in the place of Python that writes down how it is called, and makes a venv."""
    file = folder / name
    file.write_text(
        '#!/bin/sh\necho "$@" >> calls\n'
        '[ "$3" != venv ] || { mkdir -p "$4/bin"; cp "$0" "$4/bin/python"; '
        'cp recorder "$4/bin/dlprof"; }\n',
        encoding="utf-8",
    )
    file.chmod(0o755)
    return str(file)


def calls(folder):
    return (folder / "calls").read_text(encoding="utf-8").splitlines()


def test_the_action_installs_itself_into_an_environment_of_its_own_once(tmp_path):
    recorder(tmp_path)
    inputs = {**WAYS["two sessions"], "python": interpreter(tmp_path)}
    for _ in range(2):
        assert run_action(inputs, tmp_path).code == 0
    venv, pip = calls(tmp_path)
    assert venv == f"-I -m venv {tmp_path}/temp/dlprof"
    assert re.fullmatch(r"-I -m pip install --quiet /.+", pip)
    assert recorded(tmp_path)[0] == "gate"


def test_the_job_installs_what_it_is_told_to(tmp_path):
    recorder(tmp_path)
    inputs = {**WAYS["two sessions"], "python": interpreter(tmp_path), "requirement": "./a b"}
    assert run_job(inputs, tmp_path).code == 0
    venv, pip = calls(tmp_path)
    assert venv == f"-I -m venv {tmp_path}/.dlprof-venv"
    assert pip == "-I -m pip install --quiet ./a b"
    assert recorded(tmp_path)[0] == "gate"


def test_the_job_must_be_told_what_to_install(tmp_path):
    ran = run_job(WAYS["two sessions"], tmp_path)
    assert (ran.code, ran.err) == (2, "Say in DLPROF_REQUIREMENT what pip installs dlprof from.\n")
