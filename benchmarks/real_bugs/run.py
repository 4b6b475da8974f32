"""Count the bugs reported by users that dlprof finds by default.

Makes an environment for each version in ``bugs.toml``, runs the bug's script in it, and then
``dlprof run PRODUCER CONSUMER --python ENVIRONMENT``, nothing else. A bug is found if a finding of
the right kind names it in the version with the bug, and none does in the version without it.

    python benchmarks/real_bugs/run.py --cache ~/.cache/dlprof-real-bugs

The environments take about 16 GB, most of it for the CUDA packages of two versions of torch. With
``--device simulated`` it runs the bugs that need a CUDA device; their environments take about 40
GB. ``--python NAME=PATH`` names an interpreter that has the packages already.

``--confirm`` also runs the reproducer of each finding of severity error in the versions without the
bug. It shows false findings: their script says that the problem is gone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomllib

from dlprof.errors import NoReproducer
from dlprof.measuring.judged import load
from dlprof.runner.session import pair_text
from dlprof.runner.session_file import document
from dlprof.simulated.environment import DEVICES, on_simulated_device
from dlprof.ticket import ticket as tickets
from dlprof.ticket.reproducer import reproducer

HERE = Path(__file__).parent
TIME_LIMIT_S = 900
SAYS = {0: "absent", 1: "there", 2: "cannot tell"}
FAILED = 3


@dataclass(frozen=True)
class Seen:
    """Results of one bug in one environment: from its script and from dlprof."""

    script: str
    named_by: str
    """The rules that name the bug, or an empty text."""
    note: str
    session: Path | None
    python: Path


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cache", type=Path, required=True, help="folder of the environments")
    parser.add_argument("--only", help="a part of the id of the bugs to run")
    parser.add_argument("--dlprof", default=Path(sys.executable).with_name("dlprof"), type=Path)
    parser.add_argument("--reuse", action="store_true", help="judge the kept sessions again")
    parser.add_argument(
        "--interpreter", action="append", default=[], metavar="3.13=PATH", help="where a Python is"
    )
    parser.add_argument("--device", choices=["cpu", "simulated"], default="cpu")
    parser.add_argument(
        "--python", action="append", default=[], metavar="NAME=PATH", help="an environment to use"
    )
    parser.add_argument(
        "--confirm", action="store_true", help="run the scripts of errors without the bug as well"
    )
    given = parser.parse_args()
    given.python = dict(i.split("=", 1) for i in given.python)
    given.cache, given.fresh = given.cache.expanduser().absolute(), set()
    table = tomllib.loads((HERE / "bugs.toml").read_text())
    bugs = [
        bug
        for bug in table["bugs"]
        if bug.get("device", "cpu") == given.device and (not given.only or given.only in bug["id"])
    ]
    print("| bug | must be found | with the bug | without it | note |")
    print("|---|---|---|---|---|")
    passed, without = 0, dict[Path, tuple[str, Path]]()
    for bug in bugs:
        bad, good = (
            look(bug, bug[side], table["environments"][bug[side]], given) if side in bug else None
            for side in ("bad", "good")
        )
        passed += bool(bad and bad.named_by) and not (good and good.named_by)
        print(row(bug, bad, good), flush=True)
        if good and good.session:
            without[good.session] = bug["good"], good.python
    print(f"\n{passed} of {len(bugs)} found, and silent on the version without the bug.")
    confirmed = not given.confirm or confirm(without, given.device == "simulated")
    return 0 if passed == len(bugs) and confirmed else 1


def confirm(sessions: dict[Path, tuple[str, Path]], simulated: bool) -> bool:
    """Whether the script of each finding of severity error says that the problem is there."""
    print("\n| version without the bug | pair | error | its script says |")
    print("|---|---|---|---|")
    verdicts = []
    for path, (name, python) in sessions.items():
        session = load(path)
        for finding in session.findings:
            if finding.severity != "error":
                continue
            try:
                text = reproducer(session, finding).text
                ran = tickets.run(text, str(python), simulated=int(simulated))
                said = f"{ran.verdict}, exit code {ran.code}"
                verdicts.append(ran.verdict)
            except NoReproducer as why:
                said = f"no script: {why}"
                verdicts.append(said)
            pair = pair_text(session.results[finding.results[0]].case.pair)
            print(f"| {name} | {pair} | {finding.rule}: {finding.headline} | {said} |", flush=True)
    there = verdicts.count("there")
    print(f"\n{there} of {len(verdicts)} errors in versions without the bug are confirmed.")
    return there == len(verdicts)


def look(bug: dict[str, Any], name: str, wanted: dict[str, Any], given: argparse.Namespace) -> Seen:
    if name in given.python:
        python = Path(given.python[name])
    else:
        python = environment(
            given.cache / name, wanted, dict(i.split("=", 1) for i in given.interpreter)
        )
    variables = dict(os.environ)
    if given.device == "simulated":
        variables = on_simulated_device({**variables, DEVICES: "1"}, str(python))
    command = [python, HERE / bug["script"]]
    script = subprocess.run(command, capture_output=True, check=False, env=variables)
    ended = script.returncode
    if ended == 1 and b"Traceback" in script.stderr:
        ended = FAILED
    told, path = dlprof_run(bug, name, python, given)
    if path is None:
        return Seen(said_by(ended), "", told, None, python)
    session = json.loads(document(load(path)))
    named = {finding["rule"] for finding in session["findings"] if names(finding, bug, session)}
    cases = [result["case"]["code"] for result in session["results"]]
    tried = any(re.search(bug["code"], code) for code in cases)
    return Seen(
        said_by(ended),
        " ".join(sorted(named)),
        "" if tried else f"no path of the pair has the code {bug['expression']}",
        path,
        python,
    )


def names(finding: dict[str, Any], bug: dict[str, Any], session: dict[str, Any]) -> bool:
    """Whether a finding names the bug: its rule, its code, and its words."""
    cases = [session["results"][number]["case"] for number in finding["results"]]
    texts = [finding[key] for key in ("summary", "headline", "advice") if finding.get(key)]
    texts += [case[key] for case in cases for key in ("layout", "dtype")]
    return (
        finding["rule"] in bug["rules"]
        and any(re.search(bug["code"], case["code"]) for case in cases)
        and any(re.search(bug.get("words", ""), text) for text in texts)
    )


def said_by(status: int) -> str:
    """Translate a script's exit status. A bug may kill the process."""
    return "there" if status < 0 else SAYS.get(status, "failed")


def environment(folder: Path, wanted: dict[str, Any], interpreters: dict[str, str]) -> Path:
    """Return the interpreter of an environment. Make it unless it holds the wanted packages."""
    python, mark = folder / "bin" / "python", folder / "packages.json"
    if mark.exists() and json.loads(mark.read_text()) == wanted:
        return python
    version = wanted["python"]
    base = interpreters.get(version) or shutil.which(f"python{version}")
    if not base:
        raise SystemExit(f"Python {version} not found: give --interpreter {version}=PATH")
    print(f"making {folder}", file=sys.stderr)
    subprocess.run([base, "-m", "venv", "--clear", folder], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--no-cache-dir", *wanted["packages"]]
    subprocess.run(install, check=True, stdout=sys.stderr)
    mark.write_text(json.dumps(wanted))
    return python


def dlprof_run(
    bug: dict[str, Any], name: str, python: Path, given: argparse.Namespace
) -> tuple[str, Path | None]:
    """Run ``dlprof run``. Return its stderr and its session file, if there is one."""
    words = [*bug["pair"], *bug.get("options", [])]
    folder = given.cache / "sessions" / f"{name}-{'-'.join(words).replace(' ', '')}"
    said = folder / "stderr.txt"
    if not (given.reuse and said.exists()) and folder not in given.fresh:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        given.fresh.add(folder)  # two bugs may need the same run
        command = [given.dlprof, "run", *words, "--python", python]
        print(*command, file=sys.stderr, flush=True)
        with (folder / "stdout.txt").open("w") as stdout, said.open("w") as stderr:
            subprocess.run(
                command,
                stdout=stdout,
                stderr=stderr,
                env=os.environ | {"XDG_STATE_HOME": str(folder)},
                timeout=TIME_LIMIT_S,
                check=False,
            )
    sessions = list(folder.glob("dlprof/*.json"))
    lines = said.read_text().split("\n")
    told = " ".join(line.strip() for line in lines if line.strip())[-200:]
    return told, sessions[0] if sessions else None


def row(bug: dict[str, Any], bad: Seen | None, good: Seen | None) -> str:
    what = f"`{bug['expression']}`, {bug['where']}: {bug['finding']}"
    left = cell(bug, "bad", bad, "there", "found", "missed")
    right = cell(bug, "good", good, "absent", "false finding", "silent")
    note = bad.note if bad else ""
    return f"| [{bug['id']}]({bug['url']}) | {what} | {left} | {right} | {note} |"


def cell(
    bug: dict[str, Any], side: str, seen: Seen | None, script: str, named: str, unnamed: str
) -> str:
    if not seen:
        return "no such release"
    said = f"{named}, {seen.named_by}" if seen.named_by else unnamed
    said = said if seen.session else "not measured"
    wrong = "" if seen.script == script else f" (script: {seen.script})"
    return f"{bug[side]}: {said}{wrong}"


if __name__ == "__main__":
    sys.exit(main())
