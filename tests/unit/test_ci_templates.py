"""The action and the GitLab job: the options they pass to dlprof, and no input becomes a script."""

import re
import sys

import pytest
import yaml
from pipelines import GITLAB_SHELLS, ROOT, WAYS, recorded, recorder, run_action, run_job

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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
    "sessions": "kept",
    "wide-limit": "10",
}
POSITIONAL = ("scenario", "base", "head")
ACTION_ALWAYS = ["--github", "--junit=dlprof-junit.xml"]
JOB_ALWAYS = ["--junit=dlprof-junit.xml", "--json=dlprof-comparison.json"]

every_runner = pytest.mark.parametrize("runner", ["action", *GITLAB_SHELLS])
every_way = pytest.mark.parametrize("way", WAYS)


def run(runner, inputs, folder, command=None):
    """Run the action, or the job in a shell, with ``command`` in place of dlprof."""
    command = str(command or recorder(folder))
    if runner == "action":
        return run_action({**inputs, "dlprof": command}, folder)
    return run_job({**inputs, "command": command}, folder, runner)


def expected(inputs):
    """Return the arguments that the inputs produce."""
    names = {"sessions": "output"}
    options = [
        f"--{names.get(name, name)}={text}"
        for name, text in inputs.items()
        if name not in POSITIONAL
    ]
    return sorted(options), [inputs[name] for name in POSITIONAL if name in inputs]


def asked(folder):
    """Return the options and files passed to dlprof, with each option once."""
    verb, *words = recorded(folder)
    assert verb == "gate"
    place = words.index("--")
    return sorted(words[:place]), words[place + 1 :]


@every_runner
@every_way
def test_a_gate_gets_the_options_that_its_inputs_name(tmp_path, way, runner):
    inputs = {**WAYS[way], **JUDGED}
    ran = run(runner, inputs, tmp_path)
    options, files = expected(inputs)
    always = ACTION_ALWAYS if runner == "action" else JOB_ALWAYS
    assert ran.code == 0, ran.err
    assert asked(tmp_path) == (sorted([*options, *always]), files)


@every_runner
@pytest.mark.parametrize("code", [1, 2, 3, 4])
def test_the_exit_code_is_passed_on(tmp_path, code, runner):
    ran = run(runner, WAYS["two sessions"], tmp_path, recorder(tmp_path, code))
    assert ran.code == code
    assert ran.output == (f"exit-code={code}\n" if runner == "action" else "")


@pytest.mark.parametrize("runner", ["action", "sh"])
@pytest.mark.parametrize(
    "inputs",
    [{}, {"base": "a"}, {"head": "b"}, {"scenario": "s", "base": "a", "head": "b"}],
    ids=["nothing", "base", "head", "both"],
)
def test_an_ambiguous_comparison_is_refused(tmp_path, inputs, runner):
    ran = run(runner, inputs, tmp_path)
    assert ran.code == 2
    told = (ran.out if runner == "action" else ran.err).removeprefix("::error title=dlprof::")
    assert told.startswith("Name either ")
    assert ran.output == ("exit-code=2\n" if runner == "action" else "")
    assert not (tmp_path / "words").exists()


@every_runner
@pytest.mark.parametrize("evil", EVIL, ids=range(len(EVIL)))
def test_no_input_becomes_part_of_a_script(tmp_path, evil, runner):
    inputs = dict.fromkeys(("base", "head", *JUDGED), evil)
    if runner == "action":
        inputs["junit"] = evil
    ran = run(runner, inputs, tmp_path)
    options, files = expected(inputs)
    found, named = asked(tmp_path)
    assert (set(options) <= set(found), named) == (True, files)
    assert ran.output == ("exit-code=0\n" if runner == "action" else "")
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("command", ["run", "survey", "trace", "conformance"])
def test_another_command_gets_its_arguments_and_the_interpreter_to_measure(tmp_path, command):
    given = {"command": command, "arguments": "torch  numpy --shape 4*", "head-python": "a b"}
    assert run("action", given, tmp_path).code == 0
    verb, *words = recorded(tmp_path)
    assert (verb, words[-4:]) == (command, ["torch", "numpy", "--shape", "4*"])
    assert "--python=a b" in words
    assert any(word == "--github" or word.startswith("--markdown=") for word in words)


@pytest.mark.parametrize("evil", [*EVIL, ""], ids=range(len(EVIL) + 1))
def test_a_command_that_the_action_does_not_have_is_refused(tmp_path, evil):
    ran = run("action", {"command": evil}, tmp_path)
    assert (ran.code, ran.output) == (2, "exit-code=2\n")
    assert ran.out.startswith("::error title=dlprof::")
    assert len(ran.out.splitlines()) == 1
    assert not (tmp_path / "words").exists()


@pytest.fixture
def interpreter(tmp_path):
    """A command in place of Python that records its arguments and creates a venv."""
    recorder(tmp_path)
    file = tmp_path / "my python"
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


def test_the_action_installs_itself_into_an_environment_of_its_own_once(tmp_path, interpreter):
    for _ in range(2):
        assert run_action({**WAYS["two sessions"], "python": interpreter}, tmp_path).code == 0
    venv, pip = calls(tmp_path)
    assert venv == f"-I -m venv {tmp_path}/temp/dlprof"
    assert re.fullmatch(r"-I -m pip install --quiet /.+", pip)
    assert recorded(tmp_path)[0] == "gate"


def test_the_job_installs_the_requested_package(tmp_path, interpreter):
    inputs = {**WAYS["two sessions"], "python": interpreter, "requirement": "./a b"}
    assert run_job(inputs, tmp_path).code == 0
    venv, pip = calls(tmp_path)
    assert venv == f"-I -m venv {tmp_path}/.dlprof-venv"
    assert pip == "-I -m pip install --quiet ./a b"
    assert recorded(tmp_path)[0] == "gate"


def test_the_recipe_for_conda_has_the_version_and_the_requirements_of_the_package():
    package = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recipe = yaml.safe_load((ROOT / "ci" / "conda-recipe.yaml").read_text(encoding="utf-8"))
    wanted = {line.partition(";")[0].strip() for line in package["dependencies"]}
    wanted |= {f"python{package['requires-python']}", "__linux"}
    assert recipe["context"]["version"] == package["version"]
    assert {line.replace(" ", "") for line in recipe["requirements"]["run"]} == wanted
