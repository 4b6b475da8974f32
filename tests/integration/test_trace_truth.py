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

from dlprof.tracer.rows import NO_LINE

PROGRAMS = Path(__file__).parents[1] / "programs"
PATH, PROCESSES = PROGRAMS / "traced.py", PROGRAMS / "traced_processes.py"
EXPECTED = re.compile(r"#: (.*)$")


def found_by_line(trace, file=str(PATH)):
    found = {}
    for row in trace["rows"]:
        if row["file"] == file:
            line = found.setdefault(row["line"], Counter())
            line[row["conversion"], row["result"]] += row["calls"]
    return found


def expected_by_line(text):
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        comment = EXPECTED.search(line)
        if comment and not line.startswith('"""'):
            for one in comment[1].split("; "):
                calls, conversion, result = one.split(" ")
                found.setdefault(number, Counter())[conversion, result] += int(calls)
    return found


def lines_of_programs(text):
    """Of each program, which is a function of the file."""
    functions = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
    return {node.name: range(node.lineno, node.end_lineno + 1) for node in functions}


TEXT = PATH.read_text(encoding="utf-8")
LINES = lines_of_programs(TEXT)
TEXT_OF_PROCESSES = PROCESSES.read_text(encoding="utf-8")
LINES_OF_PROCESSES = lines_of_programs(TEXT_OF_PROCESSES)


def traced(folder, *words):
    target = folder / "trace.json"
    done = subprocess.run(
        [sys.executable, "-m", "dlprof", "trace", "-o", str(target), *map(str, words)],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(target.read_text(encoding="utf-8")), done.stdout


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """The trace of all programs of one process."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("trace")
    found, out = traced(folder, PATH)
    assert out == f"ran {len(LINES)} programs\n"
    return found


@pytest.mark.parametrize("name", LINES)
def test_the_lines_of_a_program(trace, name):
    found = found_by_line(trace)
    expected, lines = expected_by_line(TEXT), LINES[name]
    assert {at: found[at] for at in found if at in lines} == {
        at: expected[at] for at in expected if at in lines
    }


@pytest.mark.parametrize("name", LINES_OF_PROCESSES)
def test_the_lines_of_a_program_of_several_processes_or_that_ends_early(tmp_path, name):
    if "torch" in name:
        pytest.importorskip("torch")
    found, _ = traced(tmp_path, PROCESSES, name)
    expected, lines = expected_by_line(TEXT_OF_PROCESSES), LINES_OF_PROCESSES[name]
    assert found_by_line(found, str(PROCESSES)) == {
        at: expected[at] for at in expected if at in lines
    }


def test_the_lines_of_executed_text(trace):
    views = "torch.from_numpy(x)", "view"
    assert found_by_line(trace, "<string>") == {
        1: {views: 1, ("x.numpy()", "view"): 1},
        2: {views: 1},
    }


def test_calls_that_a_pool_of_threads_makes_itself_are_of_no_line(trace):
    assert found_by_line(trace, NO_LINE) == {0: {("torch.from_numpy(x)", "view"): 5}}
