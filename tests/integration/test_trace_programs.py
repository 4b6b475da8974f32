"""A traced program does what it does without dlprof, and its trace tells what it did."""

import json
import subprocess
import sys

import pytest
from command_line import dlprof, environment

CONVERTS = "import numpy\nnumpy.frombuffer(b'1234', 'uint8')\n"
"""One conversion: a view of bytes."""


@pytest.fixture
def run(tmp_path):
    """Run a script as it is, and under ``dlprof trace``; the trace, and both ends."""

    def both(text, *words, options=(), name="app.py"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        program = ["-m", name.removesuffix(".py")] if "-m" in options else [name]
        command = [sys.executable, "-m", "dlprof", "trace", "-o", "trace.json"]
        rest = [one for one in options if one != "-m"]
        plain, traced = (
            subprocess.run(
                [*start, *program, *words],
                capture_output=True,
                text=True,
                cwd=tmp_path,
                env=environment(),
                timeout=200,
                check=False,
            )
            for start in ([sys.executable], [*command, *rest])
        )
        content = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
        return content, plain, traced

    return both


def calls(trace):
    return sum(row["calls"] for row in trace["rows"])


def check_same(plain, traced):
    """The same exit code and output; the report follows on stderr."""
    assert traced.returncode == plain.returncode
    assert traced.stdout == plain.stdout
    program, _, _ = traced.stderr.partition("\ndlprof trace   ")
    assert program == plain.stderr


@pytest.mark.parametrize(
    "end",
    [
        "",
        "sys.exit(7)",
        "sys.exit('a message')",
        "raise ValueError('not caught')",
        "def f(): numpy.frombuffer(3)\nf()",
        "import signal; signal.raise_signal(signal.SIGINT)",
        "import signal; signal.raise_signal(signal.SIGTERM)",
        "os._exit(3)",
        "warnings.warn('a warning')",
        "sys.excepthook = lambda *e: print('own hook', e[0]); 1 / 0",
    ],
)
def test_a_program_ends_as_it_does_without_dlprof(run, end):
    text = (
        "import atexit, os, sys, warnings\n"
        "print(sys.argv, __name__, __file__, sys.path[0])\n"
        "atexit.register(print, 'at exit')\n"
    )
    trace, plain, traced = run(f"{text}{CONVERTS}{end}\n", "--flag", "-m", "x")
    check_same(plain, traced)
    if "SIGTERM" not in end:
        assert calls(trace) == 1
        assert trace["exit_code"] == plain.returncode


def test_a_module_runs_as_python_runs_it(run):
    text = f"import sys\nprint(sys.argv, __name__, __spec__.name, sys.path[0])\n{CONVERTS}"
    trace, plain, traced = run(text, "-x", options=("-m",))
    check_same(plain, traced)
    assert calls(trace) == 1


def test_forked_processes_are_counted_once(run):
    text = f"""\
import os
{CONVERTS}
for _ in range(2):
    child = os.fork()
    if child == 0:
        for _ in range(3):
            numpy.frombuffer(b"1234", "uint8")
        os._exit(0)
    os.waitpid(child, 0)
"""
    trace, plain, traced = run(text)
    check_same(plain, traced)
    assert calls(trace) == 1 + 2 * 3
    assert len(trace["processes"]) == 3


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_processes_of_multiprocessing_are_traced(run, method):
    text = f"""\
import multiprocessing
{CONVERTS}
def work(n):
    return len(numpy.frombuffer(bytes(n), "uint8"))
if __name__ == "__main__":
    with multiprocessing.get_context({method!r}).Pool(2) as pool:
        print(sum(pool.map(work, range(1, 9), chunksize=1)))
        pool.close()
        pool.join()
"""
    trace, plain, traced = run(text)
    check_same(plain, traced)
    assert sum(row["calls"] for row in trace["rows"] if row["function"] == "work") == 8


def test_programs_that_a_process_starts_are_traced(run):
    text = f"""\
import os, subprocess, sys
{CONVERTS}
def start(*words, **options):
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, **options)
    print(words[:-1], done.stdout, done.stderr, done.returncode)
if len(sys.argv) > 1:
    sys.exit(f"{{__name__}} {{sys.argv[1:]}} {{sys.flags.optimize}}")
start("-u", __file__, "as a script")
start("-O", "-m", "app", "as a module")
start(__file__, "elsewhere", env={{**os.environ, "PYTHONPATH": "/nowhere"}})
start("-c", "print(1)")
"""
    trace, plain, traced = run(text)
    check_same(plain, traced)
    assert calls(trace) == 3


def test_spawned_workers_of_a_loader_are_traced(run):
    text = """\
import numpy, torch
from torch.utils.data import DataLoader
class Rows:
    def __len__(self):
        return 8
    def __getitem__(self, n):
        return torch.from_numpy(numpy.full(4, n, "float32"))
if __name__ == "__main__":
    loader = DataLoader(Rows(), batch_size=2, num_workers=2, multiprocessing_context="spawn")
    print(sum(len(batch) for batch in loader))
"""
    trace, plain, traced = run(text)
    check_same(plain, traced)
    (row,) = (row for row in trace["rows"] if "__getitem__" in row["function"])
    assert (row["calls"], row["result"]) == (8, "view")


def test_what_is_not_allowed_fails(run):
    text = """\
import numpy
numpy.array(memoryview(b"1234"))
from array import array
x = array("f", [1.0])
numpy.frombuffer(x, "float32")
class Foreign:
    __array_interface__ = numpy.ones(2).__array_interface__
numpy.array(Foreign())  # dlprof: allow copy
numpy.array(Foreign())
"""
    trace, _, traced = run(text, options=("--fail-on", "copy"))
    assert traced.returncode == 1
    assert traced.stderr.rstrip().endswith("dlprof: --fail-on copy: app.py:9")
    assert [row["line"] for row in trace["rows"] if row["allowed"] == ["copy"]] == [8]
    trace, _, traced = run(
        text.replace("Foreign())\n", "Foreign())  # dlprof: allow copy\n"),
        options=("--fail-on", "copy,wait"),
    )
    assert traced.returncode == 0


def test_the_project_may_allow_a_function(run, tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.dlprof.trace]\nallow = ["app.py::load copy"]\n', encoding="utf-8"
    )
    text = """\
import numpy
class Foreign:
    __array_interface__ = numpy.ones(2).__array_interface__
def load():
    numpy.array(Foreign())
load()
"""
    _, _, traced = run(text, options=("--fail-on", "copy"))
    assert traced.returncode == 0


def test_the_report_is_printed_again_by_function_and_pair(run, tmp_path):
    run(f"def load():\n    numpy.frombuffer(b'12', 'uint8')\n{CONVERTS}load()\n")
    again = dlprof("report", tmp_path / "trace.json")
    assert "app.py:2 load" in again.said
    assert "app.py load" in dlprof("report", tmp_path / "trace.json", "--by", "function").said
    assert "bytes → numpy" in dlprof("report", tmp_path / "trace.json", "--by", "pair").said


def test_single_conversions_are_recorded_for_the_viewers_that_show_them(run, tmp_path):
    text = f"import threading\n{CONVERTS}def f(): numpy.frombuffer(b'12', 'uint8')\n"
    threads = "ts = [threading.Thread(target=f) for _ in range(3)]\n"
    options = ("--chrome", "c.json", "--speedscope", "s.json", "--html", "page.html")
    run(f"{text}{threads}[t.start() for t in ts]; [t.join() for t in ts]\n", options=options)
    events = json.loads((tmp_path / "c.json").read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == 4
    by_line, *_ = json.loads((tmp_path / "s.json").read_text())["profiles"]
    assert len(by_line["samples"]) == 2
    page = (tmp_path / "page.html").read_text()
    assert "def f(): numpy.frombuffer" in page
    again = dlprof("report", tmp_path / "trace.json", "--speedscope", "-")
    _, *threads = json.loads(again.said)["profiles"]
    assert sum(len(thread["events"]) for thread in threads) == 2 * 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("trace",), "missing argument"),
        (("trace", "nowhere.py"), "there is no file nowhere.py"),
        (("trace", "--fail-on", "read", "x.py"), "--fail-on read: expected copy"),
        (("run", "--from", "LAST"), "expected a trace and a row"),
    ],
)
def test_a_wrong_command_line_is_a_sentence(words, said):
    ended = dlprof(*words)
    assert ended.code == 2
    assert said in ended.err
