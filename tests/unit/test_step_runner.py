"""Steps of a suite: time limits, crashes, what is kept of them, and the table; no step is slow."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from step_runner import (
    FAILED,
    GRACE_S,
    LONGEST_LINE,
    NO_TIME,
    NOT_RUN,
    NOTHING,
    OK,
    STOPPED,
    TIMED_OUT,
    Done,
    Runner,
    Step,
    ends,
    table,
)

pytestmark = pytest.mark.unit

PLENTY_S = 3600.0
WAITS = "import signal; signal.pause()"
# Opened once the other side reads: this process is then under way.
ENDS_IN_ORDER = """
import sys, time
try:
    open(sys.argv[1], "w").close()
    while True:  # a signal just before a pause would be slept through
        time.sleep(0.05)
except KeyboardInterrupt:
    print("3 of 5 measured")
    sys.exit(130)
"""
DEAF = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
open(sys.argv[1], "w").close()
while True:
    signal.pause()
"""
LEAVES_A_CHILD = """
import os, subprocess, sys
held = os.open(sys.argv[1], os.O_WRONLY)
code = "import signal; signal.pause()"
subprocess.Popen([sys.executable, "-c", code], pass_fds=[held])
"""


def step(name, code="print('fine')", limit_s=PLENTY_S, arguments=(), **changes):
    return Step(name, (sys.executable, "-c", code, *map(str, arguments)), limit_s, **changes)


@pytest.fixture
def runner(tmp_path):
    return Runner(tmp_path, PLENTY_S, tmp_path, dict(os.environ), say=lambda _: None)


def kept(folder):
    return json.loads((folder / "steps.json").read_text(encoding="utf-8"))["steps"]


class Overdue:
    """Waits until the first step is under way, and then says that its time is up."""

    def __init__(self, fifo, *, grace=True):
        self.fifo, self.grace, self.calls = fifo, grace, 0

    def __call__(self, process, limit_s):
        self.calls += 1
        if self.calls == 1:
            self.fifo.read_bytes()
            return False
        return ends(process, limit_s) if self.calls > 2 or self.grace else False


@pytest.fixture
def fifo(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


def test_a_step_that_ends_well_tells_its_last_line(runner):
    (done,) = runner.run([step("one", "print('first'); print('last'); print()")])
    assert (done.outcome, done.rc, done.line) == (OK, 0, "last")


def test_a_step_that_fails_does_not_stop_the_next(runner):
    found = runner.run([step("one", "import sys; sys.exit('bad')"), step("two")])
    assert [(one.outcome, one.rc, one.line) for one in found] == [
        (FAILED, 1, "bad"),
        (OK, 0, "fine"),
    ]


def test_a_step_that_says_there_was_nothing_to_do_has_not_failed(runner):
    (done,) = runner.run([step("one", "import sys; sys.exit(5)", nothing_rc=5)])
    assert (done.outcome, done.rc) == (NOTHING, 5)


def test_a_step_that_crashes_does_not_stop_the_next(runner):
    crash = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    found = runner.run([step("one", crash), step("two")])
    assert [(one.outcome, one.rc) for one in found] == [(FAILED, -signal.SIGKILL), (OK, 0)]


def test_a_program_that_is_not_there_does_not_stop_the_next(runner):
    found = runner.run([Step("one", ("/no/such/program",), PLENTY_S), step("two")])
    assert (found[0].outcome, found[0].rc) == (FAILED, None)
    assert "cannot be started" in found[0].line
    assert found[1].outcome == OK


def test_a_step_that_never_ends_is_ended_and_the_next_is_run(runner, fifo):
    strict = replace(runner, wait=Overdue(fifo, grace=False))
    found = strict.run([step("one", DEAF, arguments=[fifo]), step("two")])
    assert [(one.outcome, one.rc) for one in found] == [(TIMED_OUT, -signal.SIGKILL), (OK, 0)]


def test_a_step_whose_time_is_up_can_write_down_what_it_has(runner, fifo):
    strict = replace(runner, wait=Overdue(fifo))
    (done,) = strict.run([step("one", ENDS_IN_ORDER, arguments=[fifo])])
    assert (done.outcome, done.rc, done.line) == (TIMED_OUT, 130, "3 of 5 measured")


def test_what_a_step_leaves_running_is_ended(runner, fifo):
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    (done,) = runner.run([step("one", LEAVES_A_CHILD, arguments=[fifo])])
    assert done.outcome == OK
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b""  # nobody holds the other end any more
    os.close(reader)


def test_a_limit_is_real(runner):
    (done,) = runner.run([step("one", WAITS, limit_s=0.2, least_s=0)])
    assert done.outcome == TIMED_OUT


def test_a_step_is_not_begun_with_less_time_than_it_needs(runner):
    found = replace(runner, total_s=GRACE_S + 20).run(
        [step("long", least_s=30), step("short", least_s=0)]
    )
    assert [(one.outcome, one.line) for one in found] == [(NOT_RUN, NO_TIME), (OK, "fine")]


def test_a_limit_ends_with_the_total(runner):
    limits = []

    def wait(process, limit_s):
        limits.append(limit_s)
        return ends(process, PLENTY_S)

    clock = itertools.count(0, 100).__next__  # a look at it takes 100 s
    replace(runner, wait=wait, clock=clock, total_s=1000.0).run([step("one")])
    assert limits == [1000.0 - 100 - GRACE_S]


def test_all_that_no_time_is_left_for_is_named(runner):
    found = replace(runner, total_s=0.0).run([step("one"), step("two")])
    assert [(one.name, one.outcome, one.line) for one in found] == [
        ("one", NOT_RUN, NO_TIME),
        ("two", NOT_RUN, NO_TIME),
    ]


def test_a_step_that_has_a_reason_is_not_run_and_tells_it(runner):
    (done,) = runner.run([step("one", why_not=lambda: "no device")])
    assert (done.outcome, done.rc, done.line) == (NOT_RUN, None, "no device")


def test_a_reason_is_asked_for_when_its_turn_comes(runner, tmp_path):
    made = tmp_path / "made"
    first = step("first", "import sys; open(sys.argv[1], 'w').close()", arguments=[made])
    second = step("second", why_not=lambda: None if made.exists() else "nothing was made")
    assert [one.outcome for one in runner.run([first, second])] == [OK, OK]


def test_a_user_who_stops_it_gets_what_there_is(runner):
    def wait(process, limit_s):
        raise KeyboardInterrupt

    found = replace(runner, wait=wait).run([step("one", WAITS), step("two")])
    assert [(one.outcome, one.line) for one in found] == [(NOT_RUN, STOPPED), (NOT_RUN, STOPPED)]


def test_a_result_that_cannot_be_read_is_told(runner):
    def tell(log):
        raise ValueError("no number")

    found = runner.run([step("one", tell=tell), step("two")])
    assert found[0].outcome == OK
    assert found[0].line == "its result cannot be read: ValueError: no number"
    assert found[1].outcome == OK


def test_everything_that_was_printed_is_kept(runner, tmp_path):
    runner.run([step("one", "import sys; print('out'); print('err', file=sys.stderr)")])
    log = (tmp_path / "logs" / "00-one.log").read_text(encoding="utf-8")
    assert sorted(log.split()) == ["err", "out"]


def test_what_was_done_is_on_disk_before_the_next_step(runner, tmp_path):
    seen = []
    last = step("two", why_not=lambda: seen.append(kept(tmp_path)))
    runner.run([step("one"), last])
    assert [one["name"] for one in seen[0]] == ["one"]
    first, _ = kept(tmp_path)
    assert (first["outcome"], first["rc"], first["tail"]) == (OK, 0, "fine\n")


def test_bytes_that_are_no_text_stop_nothing(runner):
    (done,) = runner.run([step("one", "import os; os.write(1, bytes([255, 254, 10]))")])
    assert done.outcome == OK


def test_the_table_has_a_line_for_each_step():
    found = [
        Done("device", OK, 0, 1.25, "12 passed", ()),
        Done("matrix-loaded", FAILED, -11, 30.0, "", ()),
        Done("report", NOT_RUN, None, 0.0, NO_TIME, ()),
    ]
    assert table(found) == (
        "step           outcome          s  result\n"
        "device         ok             1.2  12 passed\n"
        "matrix-loaded  failed (-11)  30.0\n"
        "report         not run        0.0  no time\n"
    )


def test_a_long_line_is_cut_in_the_table():
    (_, line) = table([Done("one", OK, 0, 1.0, "x " * 200, ())]).splitlines()
    assert line.endswith("…")
    assert len(line.split(maxsplit=3)[3]) == LONGEST_LINE
