"""Run the five scenarios again, and write a page for each beside this file.

Each page has the command, the versions, what was printed (shortened), the answer, and what was not
measured. Run it on a quiet machine: the pages say how busy it was.

    python docs/results/scenarios.py [NAME...] [--quick] [--sessions FOLDER]

``--sessions`` keeps the sessions in a folder, and makes the page of one that is there already
without measuring it again. ``--quick`` measures with one process and short samples, and says so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NAMES = ("torch-numba-loop", "ingest", "ingest-8gb", "round-trip", "tour")
HEAD, TAIL = 600, 300
"""Lines of the output that are shown of its beginning and of its end."""
MOST_REASONS = 8
LONGEST_REASON = 160


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="one process, short samples")
    parser.add_argument("--sessions", type=Path, metavar="FOLDER", help="where sessions are kept")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dlprof-") as folder:
        for name in given.names or NAMES:
            session = (given.sessions or Path(folder)) / f"{name}.json"
            if not session.is_file():
                measure(sweep_command(name, given.quick), session)
            (HERE / f"{name}.md").write_text(page(name, session), encoding="utf-8")
            print(f"written: {HERE / name}.md", file=sys.stderr)
    return 0


def sweep_command(name: str, quick: bool) -> list[str]:
    return ["dlprof", "sweep", f"scenarios/{name}.toml", *(["--quick"] if quick else [])]


def measure(command: Sequence[str], session: Path) -> None:
    """Run the sweep. An expectation that is not met is an answer too."""
    session.parent.mkdir(parents=True, exist_ok=True)
    print(*command, file=sys.stderr)
    # Into a file of its own first: a run that is stopped leaves half a session.
    with tempfile.TemporaryDirectory(dir=session.parent) as folder:
        half = Path(folder) / session.name
        done = dlprof(*command[1:], "-o", str(half.resolve()))
        if done.returncode not in (0, 1, 3):
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")
        half.replace(session)


def dlprof(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "90", "NO_COLOR": "1"}
    path = (str(ROOT), environment.get("PYTHONPATH", ""))
    environment["PYTHONPATH"] = os.pathsep.join(part for part in path if part)
    return subprocess.run(
        [sys.executable, "-m", "dlprof", *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )


def page(name: str, session: Path) -> str:
    """The page of a session, from the session and from what dlprof prints of it."""
    printed = dlprof("report", str(session.resolve())).stdout.strip()
    body, _, answer = printed.rpartition("\n\n")
    content = json.loads(session.read_text(encoding="utf-8"))
    told = content["request"]["scenario"]
    given = {key for key, _, origin in told["origins"] if origin == "command line"}
    command = sweep_command(name, "sample_ms" in given)
    links = ", ".join(f"<{link}>" for link in told["sources"])
    lines = [
        f"# {told['title']}",
        "",
        f"{told['question']} ({links})" if links else told["question"],
        "",
        *(f"> {line}" for line in answer.splitlines()),
        "",
        "Written by `python docs/results/scenarios.py`.",
        "",
        *circumstances(content),
        "",
        "## What was printed",
        "",
        "```console",
        f"$ {' '.join(command)}",
        "```",
        "",
        "```text",
        *shortened(body.splitlines()),
        "```",
        "",
        "## What was not measured",
        "",
        *unmeasured(content),
    ]
    return "\n".join(lines) + "\n"


def circumstances(content: dict[str, Any]) -> Iterator[str]:
    environment = content["environment"]
    packages = ", ".join(f"{name} {version}" for name, version in environment["packages"].items())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    yield f"- Date: {content['created'][:10]}"
    yield f"- Machine: {environment.get('cpu')}, {os.cpu_count()} cores, {memory:.0f} GiB of memory"
    yield f"- Versions: Python {environment['python']}, {packages}"
    processes = f"{content['rounds']} fresh process{'' if content['rounds'] == 1 else 'es'}"
    yield f"- {processes} per case; the run took {content['wall_s'] / 60:.1f} minutes."
    busy = content.get("foreign_cores")
    if busy is not None:
        yield f"- Other programs kept {busy:.1f} cores busy meanwhile."


def shortened(lines: Sequence[str]) -> list[str]:
    if len(lines) <= HEAD + TAIL:
        return list(lines)
    left = len(lines) - HEAD - TAIL
    return [*lines[:HEAD], f"[… {left} lines left out here …]", *lines[-TAIL:]]


def unmeasured(content: dict[str, Any]) -> Iterator[str]:
    """What was left out, what was refused and why, and that there was no GPU if there was none."""
    yield from (f"- {line}" for line in content["left_out"])
    reasons: dict[str, list[str]] = {}
    for result in content["results"]:
        if result["status"] != "ok":
            first = (result["reason"] or "no reason was given").strip().splitlines()[0]
            reason = f"{result['status']}: {first[:LONGEST_REASON]}"
            reasons.setdefault(reason, []).append(result["case"]["code"])
    for reason, codes in list(reasons.items())[:MOST_REASONS]:
        names = list(dict.fromkeys(codes))
        more = f" and {len(names) - 2} more" if len(names) > 2 else ""
        yield f"- {', '.join(f'`{name}`' for name in names[:2])}{more}: {reason}"
    if len(reasons) > MOST_REASONS:
        yield f"- {len(reasons) - MOST_REASONS} more reasons stand in the session file."
    if not any(result["case"]["device"] == "cuda" for result in content["results"]):
        yield f"- Nothing was measured on a GPU ({content['device_choice']})."


if __name__ == "__main__":
    sys.exit(main())
