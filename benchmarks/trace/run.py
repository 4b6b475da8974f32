"""Compare a program's output with and without ``dlprof trace``, and print the cost of tracing.

    python benchmarks/trace/run.py [-n TIMES] program.py [arguments]
    python benchmarks/trace/run.py [-n TIMES] --foreign FOLDER [PATH ...]

It prints whether stdout, stderr and the exit code are the same, the least time of the processors of
each side, and the table. Both sides run in turns, each in an empty folder.

``--foreign`` runs the programs of other projects that ``foreign.toml`` names. Put them into FOLDER
before, each as ``REPOSITORY/PATH``; it refuses a file that is not the one of the commit. With PATH
it runs only these. A program finds what is in ``FOLDER/data/NAME`` in its own folder, if it names
such data.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NOISE = re.compile(rb"^[IWE]\d{4} \d\d:|^\d{4}-\d\d-\d\d |^WARNING: All log messages before absl")
"""Log lines with a time in them: they differ from run to run."""
NUMBER = re.compile(rb"\s*-?\d[\d.]*(e[-+]?\d+)?|\x08+")
"""A number, or the backspaces that erase a line with numbers."""
REPORT = b"\ndlprof trace   "


@dataclass(frozen=True)
class End:
    """The exit of a program and its output."""

    code: int
    out: bytes
    err: bytes
    report: bytes
    cpu_s: float


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ran(command: list[str], environment: Mapping[str, str], data: Path | None) -> End:
    with tempfile.TemporaryDirectory() as folder:
        if data is not None:
            shutil.copytree(data, folder, dirs_exist_ok=True)
        began = cpu_s()
        done = subprocess.run(
            command,
            capture_output=True,
            check=False,
            cwd=folder,
            env={**os.environ, "MPLBACKEND": "Agg", **environment},
        )
    err, mark, table = done.stderr.rpartition(REPORT)
    if not mark:
        err, table = done.stderr, b""
    text = b"\n".join(x for x in err.splitlines() if not NOISE.match(x) and x.strip())
    return End(done.returncode, done.stdout, text, mark + table, cpu_s() - began)


def said(plain: list[bytes], traced: list[bytes]) -> str:
    """Whether the traced runs wrote the same as the others."""
    if {*plain} == {*traced} and len({*plain}) == 1:
        return "same"
    masked = {NUMBER.sub(b" 0", text) for text in (*plain, *traced)}
    if len({*plain}) > 1 and len(masked) == 1:
        return "same, but for numbers that differ without dlprof too"
    return "DIFFERS"


def first_difference(plain: bytes, traced: bytes) -> str:
    for one, other in zip(plain.splitlines(), traced.splitlines(), strict=False):
        if one != other:
            return f"- {one[:300]!r}\n+ {other[:300]!r}"
    return f"{len(plain.splitlines())} lines without dlprof, {len(traced.splitlines())} with it"


def compare(
    words: list[str], environment: Mapping[str, str], times: int, data: Path | None = None
) -> bool:
    """Print the results of a program's runs. Return whether nothing differs."""
    tracer = [sys.executable, "-m", "dlprof", "trace", "--full"]
    plain, traced = [], []
    for _ in range(max(times, 2)):  # two without dlprof show what changes without it
        plain.append(ran([sys.executable, *words], environment, data))
        traced.append(ran([*tracer, *words], environment, data))
    is_same = {end.code for end in plain} == {end.code for end in traced}
    print(f"exit code {plain[0].code}: {'same' if is_same else 'DIFFERS'}")
    for name in ("out", "err"):
        one, other = ([getattr(end, name) for end in side] for side in (plain, traced))
        found = said(one, other)
        print(f"std{name}: {found}")
        if found == "DIFFERS":
            is_same = False
            print(first_difference(one[-1], other[-1]))
    before, after = (min(end.cpu_s for end in side) for side in (plain, traced))
    share = 100 * (after / before - 1)
    print(f"processors {before:.2f} s plain, {after:.2f} s traced, {share:+.1f} %")
    print(traced[-1].report.decode(errors="replace"))
    if plain[0].code:
        print(plain[0].err.decode(errors="replace")[-2000:])
    return is_same and bool(traced[-1].report)


def blob(content: bytes) -> str:
    """Return git's hash of a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def foreign(folder: Path, only: list[str], times: int) -> bool:
    text = Path(__file__).with_name("foreign.toml").read_text(encoding="utf-8")
    is_same = True
    for one in tomllib.loads(text)["program"]:
        name = f"{one['repository']}/{one['path']}"
        if only and name not in only and one["path"] not in only:
            continue
        path = folder / name
        print(f"== {name}, commit {one['commit'][:12]}, {one['license']}: {one['kind']}")
        if not path.is_file() or blob(path.read_bytes()) != one["blob"]:
            print(f"{path}: not there, or not the file of the commit")
            is_same = False
            continue
        words = [*one.get("before", ()), str(path.resolve()), *one.get("arguments", ())]
        data = folder / "data" / one["data"] if "data" in one else None
        is_same &= compare(words, one.get("environment", {}), times, data)
    return is_same


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=3)
    parser.add_argument("--foreign", type=Path, metavar="FOLDER")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        if given.foreign:
            return not foreign(given.foreign, given.program, given.n)
        program, *words = given.program
        return not compare([str(Path(program).resolve()), *words], {}, given.n)


if __name__ == "__main__":
    sys.exit(main())
