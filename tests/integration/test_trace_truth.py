"""What a trace says of programs whose conversions are known, line by line."""

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from command_line import environment

PROGRAMS = Path(__file__).parents[1] / "programs"
EXPECTED = re.compile(r"#: (.*)$")
SELF = "traced.py"


def traced(path, folder, *arguments):
    """The trace of a program and what it printed."""
    target = folder / "trace.json"
    done = subprocess.run(
        [sys.executable, "-m", "dlprof", "trace", "-o", str(target), str(path), *arguments],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=280,
        check=False,
    )
    return json.loads(target.read_text(encoding="utf-8")) if target.exists() else {}, done


def rows_by_line(trace, path):
    found = {}
    for row in trace["rows"]:
        if row["file"] == str(path):
            line = found.setdefault(row["line"], Counter())
            line[row["conversion"], row["result"]] += row["calls"]
    return found


def expected_by_line(path):
    found = {}
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        comment = EXPECTED.search(text)
        if comment and not text.startswith('"""'):
            line = found.setdefault(number, Counter())
            for one in comment[1].split("; "):
                calls, conversion, result = one.split(" ")
                line[conversion, result] += int(calls)
    return found


def functions(path):
    """The programs of a file, by the span of their lines."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and any(
            isinstance(one, ast.Name) and one.id == "program" for one in node.decorator_list
        ):
            yield node.name, range(node.lineno, node.end_lineno + 1)


def cases(name):
    return dict(functions(PROGRAMS / name))


@pytest.fixture(scope="module")
def trace_of(tmp_path_factory):
    """The trace of a file of programs, run once."""
    known = {}

    def of(name):
        if name not in known:
            known[name] = traced(PROGRAMS / name, tmp_path_factory.mktemp("trace"))
        found, done = known[name]
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"ran {len(cases(name))} programs\n"
        return found

    return of


@pytest.mark.parametrize("name", cases(SELF))
def test_the_lines_of_a_program(trace_of, name):
    pytest.importorskip("torch")
    path, lines = PROGRAMS / SELF, cases(SELF)[name]
    found, expected = rows_by_line(trace_of(SELF), path), expected_by_line(path)
    assert {at: found[at] for at in found if at in lines} == {
        at: expected[at] for at in expected if at in lines
    }
