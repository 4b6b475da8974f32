"""Whatever a framework or a probe does, it costs its own case and nothing that was measured."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import pytest
from command_line import FAKE, PROBE_FILES, QUICK, Finished, by_import, content, dlprof

from dlprof.errors import UsageError
from dlprof.measuring import measure
from dlprof.plan.pairing import Axes
from dlprof.plan.request import Request, Settings
from dlprof.runner import inspection
from dlprof.runner.inspection import inspect_interpreter
from dlprof.runner.measurement import Measurement
from dlprof.runner.progress import Silent

pytestmark = pytest.mark.integration

UNLUCKY = str(PROBE_FILES / "unlucky.py")
PHASES = str(PROBE_FILES / "phases.py")

LIMIT_S = 8
"""What hangs costs this long; all else must be done by then, on a busy machine too."""
NO_ANSWER = f"no answer within {LIMIT_S} s"


TAKING = (
    "setup-crashes",
    "wait-is-a-number",
    "wait-is-no-python",
    "wait-has-another-name",
    "wait-raises",
    "wait-crashes",
    "wait-exits",
    "pointer-is-text",
    "pointer-is-nan",
    "to-numpy-is-nothing",
    "to-numpy-crashes",
    "shape-is-nothing",
    "device-is-unknown",
)
"""The failing frameworks that are tried as consumers too."""


# What a conversion does, one way in each


@pytest.fixture(scope="module")
def state(tmp_path_factory) -> Path:
    """The state folder of the unlucky run; its name is in the environment of every worker."""
    return tmp_path_factory.mktemp("unlucky")


@pytest.fixture(scope="module")
def unlucky(state) -> tuple[Finished, dict]:
    """One run over every kind of bad luck: how it ended, and its results by the way in."""
    path = state / "session.json"
    words = ("run", "unlucky", "unlucky", "--probe", UNLUCKY, *QUICK, "--timeout", LIMIT_S)
    run = dlprof(*words, "-o", path, state=state)
    return run, by_import(content(path))


def test_a_run_with_much_bad_luck_ends_well_since_something_was_measured(unlucky):
    run, _ = unlucky
    assert run.code == 0, run.err
    assert run.sentences == []


@pytest.mark.parametrize("way", ["view", "copy"])
def test_the_healthy_cases_of_the_run_are_measured(unlucky, way):
    result = unlucky[1][way]
    assert (result["status"], result["reason"], result["notes"]) == ("ok", None, [])
    assert result["host_time"]["median_ns"] > 0
    assert result["ownership"]["verdict"] == way


@pytest.mark.parametrize(
    ("way", "status", "reason"),
    [
        ("crash", "crashed", "killed by SIGSEGV (Segmentation fault) during first call"),
        ("abort", "crashed", "killed by SIGABRT (Aborted) during first call"),
        ("leave", "crashed", "the process ended with exit code 3 during first call"),
        ("leave_well", "crashed", "the process ended with exit code 0 during first call"),
        ("hang", "timeout", f"{NO_ANSWER} during first call"),
        ("hang_with_the_gil", "timeout", f"{NO_ANSWER} during first call"),
        ("stop", "timeout", f"{NO_ANSWER} during first call"),
        ("sys_exit", "crashed", "raised SystemExit: sys.exit was called"),
        ("interrupt", "crashed", "raised KeyboardInterrupt"),
        ("memory_error", "unsupported", "MemoryError: cannot allocate"),
        ("recurse", "unsupported", "RecursionError: maximum recursion depth exceeded"),
        ("refuse", "unsupported", "TypeError: this framework does not take that"),
        ("refuse_without_words", "unsupported", "NoWords, whose message cannot be shown"),
        ("refuse_in_surrogates", "unsupported", "TypeError: bad text \\udcff in the message"),
        ("close_the_pipes", "crashed", "the process ended with exit code 1 during first call"),
    ],
)
def test_bad_luck_in_a_conversion_is_told_in_one_reason(unlucky, way, status, reason):
    result = unlucky[1][way]
    assert (result["status"], result["host_time"]) == (status, None)
    assert result["reason"].startswith(reason)
    assert "\n" not in result["reason"]


def test_a_reason_of_megabytes_is_cut(unlucky):
    reason = unlucky[1]["refuse_at_length"]["reason"]
    assert reason.endswith("… (4,999,999 characters)")
    assert len(reason) < 3000


@pytest.mark.parametrize("way", ["crash", "abort"])
def test_the_last_output_of_a_crash_is_kept(unlucky, way):
    assert "Fatal Python error" in unlucky[1][way]["output"]


@pytest.mark.parametrize(
    "way",
    [
        "flood",
        "close_the_output",
        "start_threads",
        "write_into_every_pipe",
        "close_the_requests",
    ],
)
def test_what_only_looks_dangerous_is_measured(unlucky, way):
    result = unlucky[1][way]
    assert (result["status"], result["reason"]) == ("ok", None)
    assert result["host_time"]["median_ns"] > 0


@pytest.mark.parametrize(
    "way", ["fork_and_both_return", "fork_a_child_that_stays", "later_fork_and_both_return"]
)
def test_a_conversion_that_forks_is_measured_and_noted(unlucky, way):
    result = unlucky[1][way]
    assert result["status"] == "ok"
    assert "conversion: it forks the process; each child was ended at once" in result["notes"]


@pytest.mark.parametrize(
    ("way", "given"), [("number", "an int"), ("nothing", "None"), ("text", "a str")]
)
def test_a_conversion_that_returns_rubbish_is_told_in_one_sentence(unlucky, way, given):
    result = unlucky[1][way]
    reason = f"the conversion gives {given}, which is no array of unlucky"
    assert result["notes"] == [f"result: {reason}"]
    for instrument in ("ownership", "values"):
        found = result[instrument]
        assert (found["verdict"], found["evidence"]) == ("unknown", {"reason": reason})


@pytest.mark.parametrize(
    ("way", "status", "reason"),
    [
        ("later_crash", "crashed", "killed by SIGSEGV (Segmentation fault) during host_time"),
        ("later_hang", "timeout", f"{NO_ANSWER} during host_time"),
        ("later_sys_exit", "crashed", "raised SystemExit: sys.exit was called"),
        ("later_refuse", "unsupported", "TypeError: this framework does not take that"),
    ],
)
def test_bad_luck_in_the_timed_loop_keeps_what_came_before(unlucky, way, status, reason):
    result = unlucky[1][way]
    assert (result["status"], result["reason"]) == (status, reason)
    assert result["first_call_ns"] > 0


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("crash", "killed by SIGSEGV (Segmentation fault) during first call"),
        ("leave_well", "the process ended with exit code 0 during first call"),
        ("sys_exit", "raised SystemExit: sys.exit was called"),
        ("later_refuse", "TypeError: this framework does not take that"),
    ],
)
def test_where_nothing_else_is_measured_it_is_said_in_one_sentence(tmp_path, way, reason):
    only = ("--path", f"array->{way}")
    run = dlprof("run", "unlucky", "unlucky", "--probe", UNLUCKY, *QUICK, *only, state=tmp_path)
    assert run.code == 4
    assert run.sentence() == f"dlprof: nothing could be measured: {reason}"


# What the other parts of a probe do


@pytest.fixture(scope="module")
def phases(tmp_path_factory) -> dict[tuple[str, str], dict]:
    """Every probe that fails at one phase, as producer or consumer; results by that."""
    path = tmp_path_factory.mktemp("phases") / "session.json"
    files = (PHASES, FAKE)
    catalog = inspect_interpreter(sys.executable, files)
    names = [probe.name for probe in catalog.probes if probe.source.endswith("phases.py")]
    pairs = [(name, "fake") for name in names if not name.startswith("wait")]
    pairs += [("fake", name) for name in names if name in TAKING]
    request = Request(
        pairs=(*pairs, ("fake", "fake")),
        axes=Axes(shapes=((16,),)),
        globs=("array->view",),
        settings=Settings(rounds=1, sample_ns=5_000_000, limit_s=LIMIT_S, diagnose=False),
        python=sys.executable,
        probe_files=files,
        command=("run",),
    )
    with closing(Measurement(request, catalog, path, Silent())) as measurement:
        measure.run(measurement)
    return {
        (result["case"]["producer"], result["case"]["consumer"]): result
        for result in content(path)["results"]
    }


FAULTY = "the probe is faulty: "


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("setup-raises", "unsupported", "ImportError: libnothing.so.1 cannot be loaded"),
        ("setup-crashes", "crashed", "killed by SIGSEGV (Segmentation fault) during import"),
        ("setup-is-no-python", "crashed", f"{FAULTY}SyntaxError: invalid syntax"),
        ("create-is-a-number", "crashed", f"{FAULTY}what create-is-a-number's create returns must be text, not 5"),
        ("create-is-no-python", "crashed", f"{FAULTY}SyntaxError: invalid syntax"),
        ("create-forgets-x", "crashed", f"{FAULTY}the text of create-forgets-x's create sets no x"),
        ("create-is-missing", "unsupported", "NotImplementedError"),
        ("create-crashes", "crashed", "killed by SIGSEGV (Segmentation fault) during create"),
        ("create-hangs", "timeout", f"{NO_ANSWER} during create"),
        ("create-exits", "crashed", "raised SystemExit: 3"),
        ("create-makes-another-shape", "unsupported", "create-makes-another-shape made shape (1, 2, 3) when asked for (16,)"),
        ("shape-is-nothing", "unsupported", "shape-is-nothing made shape None when asked for (16,)"),
        ("dtype-is-bytes", "unsupported", "dtype-is-bytes made dtype b'float32' when asked for float32"),
        ("device-is-unknown", "unsupported", "device-is-unknown made device"),
        ("pointer-leaves", "crashed", "the process ended with exit code 3 during create"),
        ("ready-raises", "unsupported", "RuntimeError: no licence for this device"),
    ],
)  # fmt: skip
def test_a_producer_that_fails_is_told_in_one_reason(phases, name, status, reason):
    result = phases[name, "fake"]
    assert (result["status"], result["host_time"]) == (status, None)
    assert result["reason"].startswith(reason)


def test_a_failed_import_is_told_in_the_words_of_the_first_try(tmp_path):
    path = tmp_path / "session.json"
    words = ("run", "setup-raises-anew", "fake", "--probe", PHASES, "--probe", FAKE, *QUICK)
    assert dlprof(*words, "-o", path, state=tmp_path).code == 4
    reasons = {result["reason"] for result in content(path)["results"]}
    assert reasons == {"ImportError: libnothing.so.2 cannot be loaded"}


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("setup-crashes", "crashed", "killed by SIGSEGV (Segmentation fault) during import"),
        ("wait-is-a-number", "crashed", f"{FAULTY}what wait-is-a-number's wait returns must be text, not 5"),
        ("wait-is-no-python", "crashed", f"{FAULTY}what wait-is-no-python's wait returns is not a Python expression: 'wait for {{x}}' (invalid syntax)"),
        ("wait-has-another-name", "crashed", f"{FAULTY}what wait-has-another-name's wait returns must hold {{x}} and nothing else in braces: 'len({{y}})'"),
        ("wait-raises", "unsupported", "ZeroDivisionError: division by zero"),
        ("wait-crashes", "crashed", "killed by SIGSEGV (Segmentation fault) during first call"),
        ("wait-exits", "crashed", "raised SystemExit: 16"),
    ],
)  # fmt: skip
def test_a_consumer_that_fails_is_told_in_one_reason(phases, name, status, reason):
    result = phases["fake", name]
    assert (result["status"], result["reason"]) == (status, reason)


@pytest.mark.parametrize(
    ("pair", "instrument"),
    [
        (("pointer-is-text", "fake"), "ownership"),
        (("fake", "pointer-is-text"), "ownership"),
        (("pointer-is-nan", "fake"), "ownership"),
        (("fake", "pointer-is-nan"), "ownership"),
        (("to-numpy-is-nothing", "fake"), "values"),
        (("fake", "to-numpy-is-nothing"), "values"),
        (("writable-is-an-object", "fake"), "values"),
        (("fake", "shape-is-nothing"), "values"),
        (("fake", "device-is-unknown"), "ownership"),
    ],
    ids=str,
)
def test_rubbish_about_an_array_costs_one_instrument_alone(phases, pair, instrument):
    result = phases[pair]
    assert result["status"] == "ok"
    assert result["host_time"]["median_ns"] > 0
    assert result[instrument] is None
    assert any(note.startswith(f"{instrument}: ") for note in result["notes"])


@pytest.mark.parametrize(
    "pair", [("pointer-is-wrong", "fake"), ("fake", "to-numpy-crashes")], ids=str
)
def test_a_crash_in_an_instrument_says_in_which(phases, pair):
    result = phases[pair]
    assert result["status"] == "crashed"
    assert result["reason"].split(" during ")[1] in ("ownership", "values")
    assert result["first_call_ns"] > 0


def test_a_healthy_pair_between_failing_ones_is_measured(phases):
    assert phases["fake", "fake"]["status"] == "ok"
    assert phases["fake", "fake"]["host_time"]["median_ns"] > 0


# What a probe file does when it is loaded


@pytest.fixture
def probe_file(tmp_path):
    """Write a probe file: the given text after a well-behaved class Fake."""

    def write(text: str) -> str:
        path = tmp_path / "probe.py"
        head = Path(FAKE).read_text(encoding="utf-8").partition("class Missing")[0]
        path.write_text(f"{head}\nimport os, sys, time\n{text}\n", encoding="utf-8")
        return str(path)

    return write


def refusal(file: str) -> str:
    """The sentence with which a probe file is refused."""
    with pytest.raises(UsageError) as refused:
        inspect_interpreter(sys.executable, (file,))
    start = f"cannot use the probe file {file}: "
    assert str(refused.value).startswith(start)
    assert "\n" not in str(refused.value)
    return str(refused.value).removeprefix(start)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raise ValueError('bad day')", "ValueError: bad day"),
        ("this is no python", "SyntaxError: invalid syntax (probe.py, line"),
        ("sys.exit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("def f(): f()\nf()", "RecursionError: maximum recursion depth exceeded"),
        ("os._exit(7)", "the process ended with exit code 7 while it was loaded"),
        ("ctypes.string_at(0)", "killed by SIGSEGV (Segmentation fault) while it was loaded"),
        ("os.closerange(3, 256)", "the process ended with exit code 1 while it was loaded"),
        ("del Fake", "it defines no subclass of dlprof.probes.base.Probe"),
        ("class Bad(Fake):\n    name = sys.exit(3)", "SystemExit: 3"),
        ("class Bad(Fake):\n    name = 'bad'\n    def __init__(self): 1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_probe_file_that_fails_when_it_is_loaded_is_refused_in_words(probe_file, text, reason):
    assert refusal(probe_file(text)).startswith(reason)


def test_a_probe_file_that_hangs_is_given_up(probe_file, monkeypatch):
    monkeypatch.setattr(inspection, "INSPECT_LIMIT_S", 0.5)
    file = probe_file("ctypes.PyDLL(None).sleep(3600)")
    assert refusal(file) == "no answer within 0.5 s while it was loaded"


@pytest.mark.parametrize(
    "text",
    [
        "print('noise' * 100_000); print('noise' * 100_000, file=sys.stderr)",
        "os.close(1); os.close(2)",
        "os.fork()",
        "os.fork() or time.sleep(3600)",
        "import threading; threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()",
        "sys.stdout = sys.stderr = None",
        "sys.path.clear()",
        "again = Fake",
        "from dataclasses import dataclass\n@dataclass\nclass Detail:\n    size: 'int'",
    ],
)
def test_a_probe_file_that_only_looks_dangerous_is_loaded(probe_file, text):
    catalog = inspect_interpreter(sys.executable, (probe_file(text),))
    assert catalog.named("fake").found


@pytest.mark.parametrize("text", ["sys.exit(3)", "ctypes.string_at(0)"])
def test_a_bad_probe_file_ends_the_command_with_one_sentence(tmp_path, probe_file, text):
    file = probe_file(text)
    run = dlprof("run", "fake", "fake", "--probe", file, *QUICK, state=tmp_path)
    assert run.code == 2
    assert run.sentence().startswith(f"dlprof: cannot use the probe file {file}: ")


def test_an_import_that_hangs_has_a_limit_of_its_own(tmp_path, probe_file):
    file = probe_file(
        "class Bad(Fake):\n    name = 'bad'\n    aliases = ()\n    setup = 'import time\\ntime.sleep(3600)'"
    )
    limited = (
        "import dlprof.runner.worker_client as client; client.IMPORT_LIMIT_S = 1.0;"
        "from dlprof.cli import main; main()"
    )
    only = ("--path", "array->view")
    run = dlprof(
        "run", "bad", "fake", "--probe", file, *QUICK, *only,
        state=tmp_path, command=(sys.executable, "-c", limited),
    )  # fmt: skip
    assert run.code == 4
    assert run.sentence() == "dlprof: nothing could be measured: no answer within 1 s during import"


def test_no_process_is_left_behind(unlucky, state):
    mark = f"XDG_STATE_HOME={state}".encode()
    left = [process for process in Path("/proc").glob("[0-9]*") if mark in variables_of(process)]
    assert left == []


def variables_of(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""


def test_a_first_call_of_seconds_loses_nothing(tmp_path):
    path = tmp_path / "session.json"
    probe = ("--probe", PROBE_FILES / "slow.py")
    run = dlprof("run", "slow", "slow", *probe, *QUICK, "-o", path, state=tmp_path)
    assert run.code == 0, run.err
    (result,) = content(path)["results"]
    assert result["first_call_ns"] > 1e9 > result["host_time"]["median_ns"]
    assert result["ownership"]["verdict"] == "copy"
    assert result["values"]["verdict"] == "ok"
    assert not any("no array" in note for note in result["notes"])
