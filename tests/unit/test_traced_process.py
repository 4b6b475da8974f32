"""A traced program gets each signal sent to dlprof once, and the variables of the user."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

RUN = """\
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGINT, signal.SIG_DFL)  # whatever these tests were started with
exec(sys.argv[2])
from dlprof.runner import trace
print("ended", trace._run([sys.executable, "-c", sys.argv[1]], os.environ))
"""
INTERRUPTED = """\
import signal
from dlprof.runner import trace as tracing
signal.signal(signal.SIGINT, signal.default_int_handler)
whole = tracing.completed
def interrupted(*fields):
    signal.raise_signal(signal.SIGINT)
    return whole(*fields)
tracing.completed = interrupted
print(tracing.trace(["app.py"]).exit_code)
"""
PROGRAM = """\
import os, signal, time
def tell(number, _):
    os.write(1, b"got %d\\n" % number)  # a print would not survive one inside another
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGWINCH):
    if signal.getsignal(number) is not signal.SIG_IGN:
        signal.signal(number, tell)
print("ready", flush=True)
while True:
    time.sleep(0.05)  # a signal just before pause() would wait for the next one
"""


@contextmanager
def started(program=PROGRAM, before="", **options):
    """Run the program in its own session once it is ready. The new process executes
    ``before`` itself: a fork of this process would inherit the threads of frameworks.
    """
    command = [sys.executable, "-c", RUN, program, before]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True, **options
    )
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def in_front_of(terminal):
    return {"stdin": terminal, "before": "fcntl.ioctl(0, termios.TIOCSCTTY, 0)"}


def test_a_signal_to_the_process_reaches_the_program_once():
    with started() as process:
        for _ in range(2):
            os.kill(process.pid, signal.SIGTERM)
            assert process.stdout.readline() == "got 15\n"


def test_ctrl_c_in_a_terminal_comes_once():
    terminal, behind = os.openpty()
    with started(**in_front_of(behind)) as process:
        os.write(terminal, b"\x03")
        assert process.stdout.readline() == "got 2\n"
        os.kill(process.pid, signal.SIGTERM)
        assert process.stdout.readline() == "got 15\n"
    os.close(terminal)
    os.close(behind)


def test_a_second_ctrl_c_does_not_lose_the_trace(tmp_path):
    (tmp_path / "app.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    command = [sys.executable, "-c", INTERRUPTED]
    done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "3\n"
