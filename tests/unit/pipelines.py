"""Run the steps of ``action.yml`` and the scripts of ``ci/gitlab.yml`` in a shell, as runners do.

Only the runner is faked: its environment files and folders, and its ``${{ … }}`` expressions.
The scripts are read from the files unchanged.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
GITLAB = yaml.safe_load((ROOT / "ci" / "gitlab.yml").read_text(encoding="utf-8"))
JOB = GITLAB[".dlprof-gate"]

WAYS = {
    "two interpreters": {"scenario": "a b.toml", "base-python": "old/python", "head-python": "new"},
    "two sessions": {"base": "before.json", "head": "after.json"},
}
"""Ways to gate, by input of the action; the job calls them ``DLPROF_…``."""

GITHUB_SHELL = ("bash", "--noprofile", "--norc", "-eo", "pipefail")
"""The command that ``shell: bash`` stands for."""
GITLAB_SHELLS = {
    "bash": ("bash", "-c", "set -eo pipefail\n{}"),
    "sh": ("sh", "-c", "set -e\n{}"),
}


@dataclass(frozen=True)
class Ran:
    """A step or job that has run: its exit code, output and files."""

    code: int
    out: str
    err: str
    output: str = ""
    summary: str = ""


def recorder(folder: Path, code: int = 0) -> Path:
    """Replace dlprof by a command that records its arguments, separated by NUL."""
    file = folder / "recorder"
    file.write_text(
        f'#!/bin/sh\nprintf "%s\\0" "$@" > {shlex.quote(str(folder / "words"))}\nexit {code}\n',
        encoding="utf-8",
    )
    file.chmod(0o755)
    return file


def recorded(folder: Path) -> list[str]:
    return (folder / "words").read_text(encoding="utf-8").split("\0")[:-1]


def this_dlprof(folder: Path) -> Path:
    """Create a command that runs the dlprof of this checkout."""
    file = folder / "dlprof"
    words = shlex.join([sys.executable, "-m", "dlprof"])
    file.write_text(f'#!/bin/sh\nexport PYTHONPATH={ROOT}\nexec {words} "$@"\n', encoding="utf-8")
    file.chmod(0o755)
    return file


class _GitLab(yaml.SafeLoader):
    """A loader that resolves ``!reference [job, key]`` to the job's value for the key."""


_GitLab.add_constructor(
    "!reference",
    lambda loader, node: GITLAB[loader.construct_sequence(node)[0]][node.value[1].value],
)


def workflows() -> tuple[dict, dict]:
    """Return the GitHub workflow and the GitLab file in docs/ci.md."""
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    github, gitlab, *_ = re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    # yaml.load is safe with this loader: it creates no objects.
    return yaml.safe_load(github), yaml.load(gitlab, _GitLab)


def run_workflow(inputs: dict[str, str], folder: Path) -> Ran:
    """Run the steps of the workflow in docs/ci.md, with added inputs, until a step fails."""
    ran = Ran(0, "", "")
    for step in workflows()[0]["jobs"]["gate"]["steps"]:
        if "run" in step:
            ran = run_step(step, {}, folder)
        elif step["uses"] == "OWNER/dlprof@COMMIT":
            ran = run_action({**step["with"], **inputs}, folder)
        if ran.code:
            break
    return ran


def run_action(inputs: dict[str, str], folder: Path) -> Ran:
    """Run all steps of the action that apply, until a step fails."""
    unknown = set(inputs) - set(ACTION["inputs"])
    assert not unknown, unknown
    given = {name: found.get("default", "") for name, found in ACTION["inputs"].items()} | inputs
    ran = Ran(0, "", "")
    for step in ACTION["runs"]["steps"]:
        if applies(step.get("if"), given):
            ran = run_step(step, given, folder)
        if ran.code:
            break
    return ran


def run_step(step: dict, inputs: dict[str, str], folder: Path) -> Ran:
    files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.touch()
    script = folder / "step.sh"
    script.write_text(step["run"], encoding="utf-8")
    values = {name: expression(text, inputs) for name, text in step.get("env", {}).items()}
    runner = {"RUNNER_TEMP": folder / "temp", "GITHUB_ACTION_PATH": ROOT, **files}
    done = shell([*GITHUB_SHELL, str(script)], {**runner, **values}, folder)
    output, summary = (file.read_text(encoding="utf-8") for file in files.values())
    return Ran(done.returncode, done.stdout, done.stderr, output, summary)


def run_page_job(inputs: dict[str, str], folder: Path) -> Ran:
    """Return the job in docs/ci.md that extends the one in ci/gitlab.yml, with added inputs."""
    job = workflows()[1]["conversions"]
    before = [
        line for part in job["before_script"] for line in ([part] if type(part) is str else part)
    ]
    given = {name.removeprefix("DLPROF_").lower(): text for name, text in job["variables"].items()}
    return run_job({**given, **inputs}, folder, before=before)


def run_job(
    inputs: dict[str, str],
    folder: Path,
    shell_name: str = "bash",
    before: Sequence[str] = tuple(JOB["before_script"]),
) -> Ran:
    """Join before_script and script of the job into one script, as GitLab's runner does."""
    variables = {f"DLPROF_{name.replace('-', '_').upper()}": text for name, text in inputs.items()}
    unknown = set(variables) - set(JOB["variables"])
    assert not unknown, unknown
    *words, script = GITLAB_SHELLS[shell_name]
    lines = "\n".join([*before, *JOB["script"]])
    values = {**JOB["variables"], **variables, "CI_PROJECT_DIR": folder}
    done = shell([*words, script.format(lines)], values, folder)
    return Ran(done.returncode, done.stdout, done.stderr)


def shell(words: list[str], values: dict[str, object], folder: Path):
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder),
        **{name: str(value) for name, value in values.items()},
    }
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False
    )


def expression(text: str, inputs: dict[str, str]) -> str:
    """Expand ``${{ inputs.NAME }}`` in a value under ``env``."""
    return re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda found: inputs[found[1]], text)


def applies(condition: str | None, inputs: dict[str, str]) -> bool:
    """Evaluate ``if:`` in the only form that the action uses."""
    if condition is None:
        return True
    name, text = re.fullmatch(r"inputs\.([a-z-]+) == '([^']*)'", condition).groups()
    return inputs[name] == text
