"""Check frameworks, confirm each violation by its own script, and print tables in Markdown.

    python docs/results/checks/conformance.py FOLDER numpy torch tvm-ffi=/path/to/python

The JSON and the scripts stay in FOLDER. A framework may have an interpreter of its own.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

PROBES = Path(__file__).with_name("conformance_probes.py")
COMMAND = (sys.executable, "-m", "dlprof", "conformance")
MARKS = ("AssertionError", "# violated if it raises")
LIMIT_S = 180
WRONG = ("crashed", "violated")


def checked(folder, name, python):
    path = folder / f"{name}.json"
    options = ["--python", python, "--probe", str(PROBES)]
    done = subprocess.run(
        [*COMMAND, name, *options, "--json", str(path)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(f"{name}: {done.stderr.strip()}\n")
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    for check in found["checks"]:
        if check["verdict"] in WRONG:
            script = folder / f"{name}.{check['name']}.py"
            text = subprocess.run(
                [*COMMAND, name, *options, "--repro", check["name"]],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            script.write_text(text, encoding="utf-8")
            check["script"] = confirmed(python, script)
    return found


def confirmed(python, script):
    """What a script says. A signal and no end in time are violations as well."""
    try:
        done = subprocess.run(
            [python, str(script)],
            cwd=script.parent,
            capture_output=True,
            check=False,
            timeout=LIMIT_S,
            env={k: v for k, v in os.environ.items() if k != "PYTHONOPTIMIZE"},
        )
    except subprocess.TimeoutExpired:
        return "confirmed"
    if done.returncode == 0:
        return "not confirmed"
    said = done.stderr.decode(errors="replace")
    is_told = done.returncode < 0 or any(mark in said for mark in MARKS)
    return "confirmed" if is_told else "cannot tell"


def counted(found):
    for role in ("consumer", "producer"):
        verdicts = Counter(one["verdict"] for one in found["checks"] if one["role"] == role)
        words = ("holds", "refused", "violated", "crashed", "unknown", "not applicable")
        cells = " | ".join(str(verdicts[word]) for word in words)
        print(f"| {found['framework']} {found['version']} | {role} | {cells} |")


def violations(every):
    print(
        "\n| framework | role | check | what was seen | source | script |\n|---|---|---|---|---|---|"
    )
    for name, one in wrong(every, ("must",)):
        seen = " ".join(one["seen"].split()[:20]).replace("|", "\\|")
        print(
            f"| {name} | {one['role']} | `{one['name']}` | `{seen}` |"
            f" {one['source']} | {one['script']} |"
        )
    print("\n| framework | violates a should or a may | scripts |\n|---|---|---|")
    for found in every:
        others = [one for _, one in wrong([found], ("should", "may"))]
        names = ", ".join(f"`{one['name']}`" for one in others) or "-"
        scripts = Counter(one["script"] for one in others)
        said = ", ".join(f"{count} {answer}" for answer, count in scripts.items()) or "-"
        print(f"| {found['framework']} | {names} | {said} |")


def wrong(every, severities):
    for found in every:
        for one in found["checks"]:
            if one["verdict"] in WRONG and one["severity"] in severities:
                yield found["framework"], one


def main(folder, *named):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    every = []
    for word in named:
        name, _, python = word.partition("=")
        found = checked(folder, name, python or sys.executable)
        every += [found] if found else []
    print("| framework | as | hold | refused | violated | crashed | unknown | do not apply |")
    print("|---|---|---|---|---|---|---|---|")
    for found in every:
        counted(found)
    violations(every)


if __name__ == "__main__":
    main(*sys.argv[1:])
