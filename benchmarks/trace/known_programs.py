"""The programs whose conversions are known, as a table: ``tests/programs/traced*.py``.

A comment on a line of theirs has calls, conversion and result, and
``pytest tests/integration/test_trace_truth.py`` compares it with a trace.

    python benchmarks/trace/known_programs.py
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "tests" / "programs"
EXPECTED = re.compile(r"#: (.*)$", re.MULTILINE)


def main() -> None:
    for name in ("traced.py", "traced_processes.py"):
        text = (FOLDER / name).read_text(encoding="utf-8")
        programs = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
        print(f"\n`tests/programs/{name}` has {len(programs)} programs:\n")
        print("| program | lines that convert: calls, conversion, result |\n|---|---|")
        for program in programs:
            lines = text.splitlines()[program.lineno - 1 : program.end_lineno]
            found = EXPECTED.findall("\n".join(lines))
            rows = (row.split(" ") for comment in found for row in comment.split("; "))
            told = (f"{calls} `{conversion}` {result}" for calls, conversion, result in rows)
            print(f"| `{program.name}` | {'; '.join(told) or 'none'} |")


if __name__ == "__main__":
    main()
