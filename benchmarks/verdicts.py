"""Print the verdicts of sessions as one table without times, to compare two versions of dlprof.

    python benchmarks/verdicts.py SESSION... > verdicts.tsv
    diff before.tsv after.tsv
    python benchmarks/verdicts.py --beside GPU SIMULATED

The last form compares a GPU with the simulated one, in Markdown: the result of each path, its
ordering with queued work, and whether the two agree.

One row per case: the conversion, its status, the verdict of each instrument, and the rules with a
finding. ``-`` stands for an instrument without an answer.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

from dlprof.measuring.judged import load
from dlprof.runner.session_file import document

INSTRUMENTS = (
    "ownership",
    "values",
    "ordering",
    "fresh_source",
    "alignment",
    "lifetime",
    "early_write",
)
"""Instruments that answer with a verdict."""


Seen = tuple[str, str, str]
"""Return status, ownership, and ordering."""


def main() -> None:
    if sys.argv[1] == "--beside":
        beside(*map(Path, sys.argv[2:]))
        return
    print("pair", "code", "case", "status", *INSTRUMENTS, "rules", sep="\t")
    for row in sorted(row for name in sys.argv[1:] for row in rows(Path(name))):
        print(*row, sep="\t")


def beside(gpu: Path, simulated: Path) -> None:
    """Return both verdicts on each path, and count the known ones that agree."""
    sides = [
        {row[:3]: (row[3], row[4], row[4 + INSTRUMENTS.index("ordering")]) for row in rows(path)}
        for path in (gpu, simulated)
    ]
    told = Counter[str]()
    print("| pair | expression | GPU | simulated | agree |")
    print("|---|---|---|---|---|")
    for key in sorted(sides[0].keys() & sides[1].keys()):
        words = [side[key] for side in sides]
        agree = agreement(*words)
        told[agree] += 1
        cells = (
            ", ".join(seen) if status == "ok" else {"unsupported": "refused"}.get(status, status)
            for status, *seen in words
        )
        print(f"| {key[0]} | `{key[1]}` |", *(f"{cell} |" for cell in cells), f"{agree} |")
    only = [len(side.keys() - other.keys()) for side, other in (sides, sides[::-1])]
    print(
        f"\n{told['yes']} agree, {told['no']} do not, {told['?']} are unknown on one side;", end=" "
    )
    print(f"{only[0]} are on the GPU only, and {only[1]} on the simulated one only.")


def agreement(one: Seen, other: Seen) -> str:
    """Return ``?`` if a side was not measured or its ordering is unknown."""
    if not {one[0], other[0]} <= {"ok", "unsupported"}:
        return "?"
    if one[0] != other[0]:
        return "no"
    if one[0] == "ok" and {one[2], other[2]} & {"unknown", "-"}:
        return "?"
    known = [pair for pair in zip(one, other, strict=True) if "unknown" not in pair]
    return "yes" if all(a == b for a, b in known) else "no"


def rows(path: Path) -> list[tuple[str, ...]]:
    """Return the rows of a session file."""
    session = json.loads(document(load(path)))
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
