"""The verdicts of sessions as one table without times, to compare two versions of dlprof.

    python benchmarks/verdicts.py SESSION... > verdicts.tsv
    diff before.tsv after.tsv

One row per case: what was converted, its status, the verdict of each instrument, the rules that
found something. ``-`` stands for an instrument that was not asked or could not answer.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

INSTRUMENTS = (
    "ownership",
    "values",
    "ordering",
    "fresh_source",
    "alignment",
    "lifetime",
    "early_write",
)
"""Those that answer with a verdict."""


def main() -> None:
    print("pair", "code", "case", "status", *INSTRUMENTS, "rules", sep="\t")
    for row in sorted(row for name in sys.argv[1:] for row in rows(Path(name))):
        print(*row, sep="\t")


def rows(path: Path) -> list[tuple[str, ...]]:
    """The rows of a session file."""
    session = json.loads(path.read_text(encoding="utf-8"))
    rules = defaultdict(set)
    for finding in session["findings"] or ():
        for index in finding["results"]:
            rules[index].add(finding["rule"])
    found = []
    for index, result in enumerate(session["results"]):
        case = result["case"]
        shape = "x".join(map(str, case["shape"])) or "scalar"
        verdicts = [(result.get(name) or {}).get("verdict") or "-" for name in INSTRUMENTS]
        found.append(
            (
                f"{case['producer']} → {case['consumer']}",
                case["code"].replace("\n", "; "),
                f"{case['dtype']} {shape} {case['layout']} {case['device']}",
                result["status"],
                *verdicts,
                " ".join(sorted(rules[index])) or "-",
            )
        )
    return found


if __name__ == "__main__":
    main()
