"""A traced program does what it does without dlprof, and its trace tells what it did."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import dlprof, environment, running

CONVERTS = "import numpy\nnumpy.frombuffer(b'1234', 'uint8')\n"
"""One conversion: a view of bytes."""


@pytest.fixture
def trace(tmp_path):
    """Run a script under ``dlprof trace``: the trace, and how it ended."""

    def traced(text, *words, options=()):
        (tmp_path / "app.py").write_text(text, encoding="utf-8")
        rest = [one for one in options if one != "-m"]
        command = ("-m", "dlprof", "trace", "-o", "trace.json", *rest)
        done = python(tmp_path, *command, *program(options), *words)
        return json.loads((tmp_path / "trace.json").read_text(encoding="utf-8")), done

    return traced


@pytest.fixture
def run(tmp_path, trace):
    """Run a script under ``dlprof trace``, and as it is; the trace, and both ends."""

    def both(text, *words, options=()):
        found, traced = trace(text, *words, options=options)
        return found, python(tmp_path, *program(options), *words), traced

    return both


def program(options):
    return ("-m", "app") if "-m" in options else ("app.py",)


def python(folder, *words):
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(),
        timeout=200,
        check=False,
    )


def calls(found):
    return sum(row["calls"] for row in found["rows"])


def check_same(plain, traced):
    """The same exit code and output; the report follows on stderr."""
    assert traced.returncode == plain.returncode
    assert traced.stdout == plain.stdout
    program, _, _ = traced.stderr.partition("\ndlprof trace   ")
    assert program == plain.stderr


@pytest.mark.parametrize(
    "end",
    [
        "raise ValueError('not caught')",
        "def f(): numpy.frombuffer(3)\nf()",
        "import signal; signal.raise_signal(signal.SIGTERM)",
        "os._exit(3)",
        "warnings.warn('of the caller', stacklevel=2)",
        "os.execv('/nowhere', ['/nowhere'])",
        "sys.excepthook = lambda *e: print(e[0], traceback.extract_tb(e[2]).format()); 1 / 0",
    ],
)
def test_a_program_ends_as_it_does_without_dlprof(run, end):
    text = (
        "import atexit, os, subprocess, sys, traceback, warnings\n"
        "print(sys.argv, __name__, __file__, sys.path[0], sorted(os.environ.items()))\n"
        "number: int = 1\n"
        "print(sys.modules[__name__].__annotations__, __builtins__, sorted(globals()))\n"
        "atexit.register(print, 'at exit')\n"
    )
    found, plain, traced = run(f"{text}{CONVERTS}{end}\n", "--flag", "-m", "x")
    check_same(plain, traced)
    if "SIGTERM" not in end:
        assert calls(found) == 1
        assert found["exit_code"] == plain.returncode


def test_a_module_runs_as_python_runs_it(run):
    text = f"""\
import sys
number: int = 1
print(sys.argv, __name__, __spec__.name, sys.path[0], __builtins__)
print(sys.modules[__name__].__annotations__)
{CONVERTS}
"""
    found, plain, traced = run(text, "-x", options=("-m",))
    check_same(plain, traced)
    assert calls(found) == 1


def test_functions_that_torch_and_the_program_look_up_in_tables_are_found(run):
    text = """\
import torch
with torch.device("meta"):
    print(torch.tensor([1.0]).device, torch.as_tensor([1.0]).device)
@torch.jit.script
def f(x: torch.Tensor):
    return x + torch.tensor([1.0])
print(f(torch.ones(2)), {torch.tensor: 1}[torch.tensor])
class Logged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print(func == torch.from_numpy, {torch.add: "add"}.get(func))
        return super().__torch_function__(func, types, args, kwargs or {})
torch.add(torch.ones(3).as_subclass(Logged), 1)
"""
    _, plain, traced = run(text)
    check_same(plain, traced)


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_processes_of_multiprocessing_are_traced(run, method):
    text = f"""\
import multiprocessing
{CONVERTS}
def work(n):
    return len(numpy.frombuffer(bytes(n), "uint8"))
if __name__ == "__main__":
    with multiprocessing.get_context({method!r}).Pool(1) as pool:
        print(sum(pool.map(work, range(1, 9), chunksize=1)))
"""
    found, plain, traced = run(text)
    check_same(plain, traced)
    assert sum(row["calls"] for row in found["rows"] if row["function"] == "work") == 8
    assert all(process["ended"] for process in found["processes"])


def test_a_process_that_ends_shortly_after_the_program_is_counted(trace):
    text = "import os, time\nif os.fork() == 0:\n    time.sleep(1)\n"
    body = "".join(f"    {line}\n" for line in CONVERTS.splitlines())
    found, _ = trace(text + body)
    assert calls(found) == 1
    assert all(process["ended"] for process in found["processes"])


def test_nothing_passed_if_a_killed_process_may_have_lost_counts(trace):
    text = f"""\
import os, signal
{CONVERTS}
child = os.fork()
if child == 0:
    numpy.frombuffer(b"1234", "uint8")
    os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(child, 0)
"""
    _, traced = trace(text, options=("--fail-on", "copy"))
    assert traced.returncode == 3
    assert "passed" not in traced.stderr
    assert "--fail-on copy: unknown, as 1 of 2 processes did not write all counts" in traced.stderr


def test_a_killed_process_keeps_the_arguments_of_its_jitted_functions(trace):
    pytest.importorskip("jax")
    text = """\
import jax, numpy, os, signal, time
double = jax.jit(lambda x: x * 2)
time.sleep(1.1)  # a process writes its counts once a second
double(numpy.ones(3))
os.kill(os.getpid(), signal.SIGKILL)
"""
    found, _ = trace(text)
    assert [entry[1:] for entry in found["arguments"]] == [[4, 1, 24]]


def test_a_call_in_which_a_process_was_killed_is_named(trace):
    text = """\
import numpy, os, signal
class Deadly:
    @property
    def __array_interface__(self):
        os.kill(os.getpid(), signal.SIGKILL)
numpy.frombuffer(b"1234", "uint8")
child = os.fork()
if child == 0:
    numpy.array(Deadly())
os.waitpid(child, 0)
"""
    _, traced = trace(text)
    words = " ".join(traced.stderr.split())
    assert words.count("did not return from") == 1
    assert "did not return from numpy.array(x) in app.py:9." in words


@pytest.mark.parametrize(
    "trouble",
    [
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))",
        "import json; json.dumps = None",
        "import os; os.replace = None",
    ],
)
def test_nothing_passed_if_a_process_could_not_write_its_counts(trace, trouble):
    found, traced = trace(f"{CONVERTS}{trouble}", options=("--fail-on", "copy"))
    assert not found["processes"][0]["ended"]
    assert traced.returncode == 3
    assert "1 of 1 processes did not write all counts" in traced.stderr


@pytest.mark.parametrize(
    "change", ["sys.argv = None", "time.time = None", "time.perf_counter = int"]
)
def test_a_program_may_change_what_the_tracer_uses(run, change):
    text = f"import sys, time\n{CONVERTS}{change}\n{CONVERTS}"
    found, plain, traced = run(text)
    check_same(plain, traced)
    assert calls(found) == 2
    assert all(row["total_ns"] < 10**9 for row in found["rows"])


def test_a_program_runs_in_an_interpreter_without_dlprof(tmp_path, bare):
    (tmp_path / "app.py").write_text(
        "import subprocess, sys\nprint(sys.prefix)\n"
        "x = memoryview(b'1234')\n"
        "try:\n    import pydantic\nexcept ImportError:\n    print('as it is')\n"
        "if len(sys.argv) == 1:\n    subprocess.run([sys.executable, 'app.py', 'child'])\n"
    )
    done = python(tmp_path, "-m", "dlprof", "trace", "-o", "t.json", "--python", bare, "app.py")
    assert done.returncode == 0, done.stderr
    prefix = str(Path(bare).parent.parent)
    assert done.stdout.split() == [prefix, "as", "it", "is"] * 2
    assert len(json.loads((tmp_path / "t.json").read_text())["processes"]) == 2


def test_an_interpreter_that_cannot_run_the_program_is_said(tmp_path):
    (tmp_path / "app.py").touch()
    done = python(tmp_path, "-m", "dlprof", "trace", "--python", "/etc/passwd", "app.py")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "cannot start the interpreter /etc/passwd: Permission denied" in done.stderr


def test_programs_that_a_process_starts_are_traced(run):
    text = f"""\
import os, subprocess, sys
{CONVERTS}
def start(*words, **options):
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, **options)
    print(words[:-1], done.stdout, done.stderr, done.returncode, done.args)
if len(sys.argv) > 1:
    sys.exit(f"{{__name__}} {{sys.argv[1:]}} {{sys.flags.optimize}}")
start("-u", __file__, "as a script")
start("-O", "-m", "app", "as a module")
start(__file__, "elsewhere", env={{**os.environ, "PYTHONPATH": "/nowhere"}})
start("-c", "print(1)")
"""
    found, plain, traced = run(text)
    check_same(plain, traced)
    assert calls(found) == 4


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_dlprof_alone_ends_the_program_and_the_trace_is_kept(tmp_path, number):
    text = f"{CONVERTS}print('ready', flush=True)\nimport time\ntime.sleep(200)\n"
    (tmp_path / "app.py").write_text(text, encoding="utf-8")
    with running("trace", "-o", tmp_path / "trace.json", tmp_path / "app.py") as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        _, err = process.communicate(timeout=200)
    assert process.returncode == -number, err
    assert b"killed by signal" in err
    assert calls(json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))) == 1


def test_jax_waits_where_work_is_queued_and_nowhere_else(trace):
    pytest.importorskip("jax")
    text = """\
import jax, jax.numpy as jnp, numpy as np
@jax.jit
def work(x):
    for _ in range(8):
        x = x @ x / 1000
    return x
x = jnp.ones((1000, 1000))
work(x).block_until_ready()
for _ in range(3):
    y = work(x).block_until_ready()
    np.asarray(y)
    jax.device_get({"loss": y})
for _ in range(3):
    np.asarray(work(x))
    jax.device_get({"loss": work(x)})
"""
    found, traced = trace(text, options=("--fail-on", "wait"))
    waits = {row["line"]: row["waits"] for row in found["rows"]}
    assert waits == {11: 0, 12: 0, 14: 3, 15: 3}
    assert traced.returncode == 1
    assert "--fail-on wait: app.py:1" in traced.stderr


def test_a_copy_on_the_host_that_jax_keeps_is_one_copy(trace):
    pytest.importorskip("jax")
    text = """\
import jax.numpy as jnp, numpy as np
y = jnp.ones(1000, "int4").block_until_ready()
for _ in range(4):
    np.asarray(y)
np.array(y)
"""
    found, _ = trace(text)
    counts = {row["line"]: (row["views"], row["copies"]) for row in found["rows"]}
    assert counts == {4: (3, 1), 5: (0, 1)}


def test_tensorflow_does_not_rewrite_the_tracer(trace):
    pytest.importorskip("tensorflow")
    text = """\
import numpy as np, tensorflow as tf
@tf.function
def f(x):
    return x * np.array([0.5])
print(f(tf.constant([2.0], tf.float64)).numpy())
"""
    _, traced = trace(text)
    assert (traced.returncode, traced.stdout) == (0, "[1.]\n")
    assert "AutoGraph" not in traced.stderr


def test_what_is_not_allowed_fails(trace):
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
    found, traced = trace(text, options=("--fail-on", "copy"))
    assert traced.returncode == 1
    assert "dlprof: --fail-on copy: app.py:9; " in traced.stderr
    assert [row["line"] for row in found["rows"] if row["allowed"] == ["copy"]] == [8]
    _, traced = trace(
        text.replace("Foreign())\n", "Foreign())  # dlprof: allow copy\n"),
        options=("--fail-on", "copy,wait"),
    )
    assert traced.returncode == 0
    assert traced.stderr.endswith("--fail-on copy,wait: passed\n")


def test_the_report_is_printed_again(trace, tmp_path):
    trace(f"def load():\n    numpy.frombuffer(b'12', 'uint8')\n{CONVERTS}load()\n")
    again = dlprof("report", tmp_path / "trace.json")
    assert "view app.py:2 load numpy.frombuffer(" in again.said


def test_single_conversions_are_exported_for_the_viewers_that_show_them(trace, tmp_path):
    text = f"import threading\n{CONVERTS}def f(): numpy.frombuffer(b'12', 'uint8')\n"
    threads = "ts = [threading.Thread(target=f) for _ in range(3)]\n"
    options = ("--chrome", "c.json", "--html", "page.html")
    trace(f"{text}{threads}[t.start() for t in ts]; [t.join() for t in ts]\n", options=options)
    events = json.loads((tmp_path / "c.json").read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == 4
    page = (tmp_path / "page.html").read_text().replace("<wbr>", "")
    assert "def f(): numpy.frombuffer" in page


ADVISED = """\
import numpy, torch
x = numpy.ones((64, 64), "float32")
for _ in range(9):
    torch.tensor(x)
"""


def test_advise_measures_the_line_to_change_first_in_processes_of_their_own(trace):
    pytest.importorskip("torch")
    found, done = trace(ADVISED, options=("--advise",))
    after = done.stderr.partition("app.py:4, torch.tensor(x), measured by itself:")[2]
    assert (done.returncode, found["rows"][0]["calls"]) == (0, 9)
    assert "this path             torch.tensor(x)" in after
    assert "fastest correct view" in after


def test_advise_says_if_no_line_can_be_measured(trace):
    _, done = trace(CONVERTS, options=("--advise",))
    assert "--advise: no line copies" in done.stderr
