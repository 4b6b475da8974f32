"""Compare the outcomes of a test suite with and without ``dlprof trace``.

    python benchmarks/trace/run_tests.py [options and files of pytest]

It prints the number of each outcome, the tests that differ, and the trace.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

KINDS = ("failure", "error", "skipped")


def outcomes(path: Path) -> dict[tuple[str, str], str]:
    cases = ElementTree.parse(path).iter("testcase")
    return {
        (case.get("classname", ""), case.get("name", "")): next(
            (kind for kind in KINDS if case.find(kind) is not None), "passed"
        )
        for case in cases
    }


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    os.environ["XDG_STATE_HOME"] = str(folder)
    trace = folder / "trace.json"
    starts = {"plain": (), "traced": ("-m", "dlprof", "trace", "-o", str(trace))}
    found = {}
    for name, start in starts.items():
        junit = folder / f"{name}.xml"
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={junit}"]
        subprocess.run(
            [sys.executable, *start, *words, *sys.argv[1:]], capture_output=True, check=False
        )
        found[name] = outcomes(junit)
    plain, traced = found["plain"], found["traced"]
    print(len(plain), "tests:", dict(Counter(plain.values())))
    for case in sorted({*plain, *traced}):
        if plain.get(case) != traced.get(case):
            print("DIFFERS", *case, plain.get(case), traced.get(case))
    rows = json.loads(trace.read_text(encoding="utf-8"))["rows"]
    print(f"{len(rows)} lines, {sum(row['calls'] for row in rows):,} conversions")


if __name__ == "__main__":
    main()
