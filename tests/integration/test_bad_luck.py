"""A faulty framework or probe costs its own case and no measured result."""

import sys
from contextlib import closing
from pathlib import Path

import pytest
from command_line import FAKE, PROBE_FILES, QUICK, by_import, content, dlprof

from dlprof.errors import UsageError
from dlprof.runner import catalog
from dlprof.runner.catalog import inspect_interpreter
from dlprof.runner.measurement import Measurement
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Axes, Request, Settings

UNLUCKY = ("run", "unlucky", "unlucky", "--probe", PROBE_FILES / "unlucky.py", *QUICK)
PHASES = str(PROBE_FILES / "phases.py")

LIMIT_S = 8
"""The cost of a hang. Everything else ends earlier, on a busy machine too."""


def told(result, *facts):
    """Whether the reason names all facts."""
    return all(fact in result["reason"] for fact in facts)


# Bad luck in a conversion, one import each


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """The state folder of the unlucky run; its name is in the environment of every worker."""
    return tmp_path_factory.mktemp("unlucky")


@pytest.fixture(scope="module")
def unlucky(state):
    """Run every kind of bad luck. Return the results by import."""
    path = state / "session.json"
    run = dlprof(*UNLUCKY, "--timeout", LIMIT_S, "-o", path, XDG_STATE_HOME=state)
    assert run.code == 0, run.err
    assert run.sentences == []
    return by_import(content(path))


@pytest.mark.parametrize("way", ["view", "copy"])
def test_the_healthy_cases_of_the_run_are_measured(unlucky, way):
    result = unlucky[way]
    assert (result["status"], result["reason"], result["notes"]) == ("ok", None, [])
    assert result["host_time"]["median_ns"] > 0
    assert result["ownership"]["verdict"] == way


@pytest.mark.parametrize(
    ("way", "status", "facts"),
    [
        ("crash", "crashed", ("SIGSEGV", "first call")),
        ("leave", "crashed", ("exit code 0", "first call")),
        ("hang", "timeout", (f"{LIMIT_S} s", "first call")),
    ],
)
def test_bad_luck_in_a_conversion_is_reported_in_one_reason(unlucky, way, status, facts):
    result = unlucky[way]
    assert (result["status"], result["host_time"]) == (status, None)
    assert told(result, *facts)
    assert "\n" not in result["reason"]


@pytest.mark.parametrize(
    "way", ["flood", "start_threads", "write_into_every_pipe", "fork_a_child_that_stays"]
)
def test_a_strange_but_harmless_conversion_is_measured(unlucky, way):
    result = unlucky[way]
    assert (result["status"], result["reason"]) == ("ok", None)
    assert result["host_time"]["median_ns"] > 0


@pytest.mark.parametrize(
    ("way", "status", "facts"),
    [
        ("later_crash", "crashed", ("SIGSEGV", "host_time")),
        ("later_refuse", "unsupported", ("TypeError: ",)),
    ],
)
def test_bad_luck_in_the_timed_loop_keeps_earlier_results(unlucky, way, status, facts):
    result = unlucky[way]
    assert result["status"] == status
    assert told(result, *facts)
    assert result["first_call_ns"] > 0


def test_no_process_is_left_behind(unlucky, state):
    mark = f"XDG_STATE_HOME={state}".encode()
    assert unlucky
    assert [one for one in Path("/proc").glob("[0-9]*") if mark in variables_of(one)] == []


def variables_of(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""


# Bad luck in other parts of a probe


@pytest.fixture(scope="module")
def phases(tmp_path_factory):
    """Run every probe that fails at one phase. Return the results by pair."""
    path = tmp_path_factory.mktemp("phases") / "session.json"
    files = (PHASES, FAKE)
    catalog = inspect_interpreter(sys.executable, files)
    names = [probe.name for probe in catalog.probes if probe.source.endswith("phases.py")]
    pairs = [(name, "fake") for name in names]
    pairs += [("fake", name) for name in names if name.startswith(TAKING)]
    request = Request(
        pairs=tuple(pairs),
        axes=Axes(shapes=((16,),)),
        globs=("array->view",),
        settings=Settings(rounds=1, sample_ns=5_000_000, limit_s=LIMIT_S, diagnose=False),
        python=sys.executable,
        probe_files=files,
        command=("run",),
    )
    with closing(Measurement(request, catalog, path, Watcher())) as measurement:
        measurement.run()
    return {
        (result["case"]["producer"], result["case"]["consumer"]): result
        for result in content(path)["results"]
    }


TAKING = ("to-numpy", "pointer-is-text", "device")
"""Name prefixes of failing frameworks that are tried as consumers too."""
FAULTY = "the probe is faulty"


@pytest.mark.parametrize(
    ("name", "status", "facts"),
    [
        ("setup-raises-anew", "unsupported", ("ImportError: libnothing.so.2",)),
        ("setup-crashes", "crashed", ("SIGSEGV", "import")),
        ("setup-is-no-python", "crashed", (FAULTY, "SyntaxError")),
        ("create-forgets-x", "crashed", (FAULTY, "create-forgets-x's create")),
        ("create-crashes", "crashed", ("SIGSEGV", "create")),
        ("create-makes-another-shape", "unsupported", ("(1, 2, 3)", "(16,)")),
        ("pointer-leaves", "crashed", ("exit code 3", "create")),
    ],
)
def test_a_failing_producer_is_reported_in_one_reason(phases, name, status, facts):
    result = phases[name, "fake"]
    assert (result["status"], result["host_time"]) == (status, None)
    assert told(result, *facts)


@pytest.mark.parametrize(
    ("pair", "instrument"),
    [
        (("fake", "pointer-is-text"), "ownership"),
        (("fake", "to-numpy-is-nothing"), "values"),
        (("writable-is-an-object", "fake"), "values"),
        (("fake", "device-is-unknown"), "ownership"),
    ],
    ids=str,
)
def test_a_wrong_answer_about_an_array_costs_one_instrument(phases, pair, instrument):
    result = phases[pair]
    assert result["status"] == "ok"
    assert result["host_time"]["median_ns"] > 0
    assert result[instrument] is None
    assert any(note["instrument"] == instrument for note in result["notes"])


# Bad luck when a probe file is loaded


@pytest.fixture
def probe_file(tmp_path):
    """Write a probe file: the given text after the working class Fake."""

    def write(text: str) -> str:
        path = tmp_path / "probe.py"
        head = Path(FAKE).read_text(encoding="utf-8").partition("class Missing")[0]
        path.write_text(f"{head}\nimport os, sys, time\n{text}\n", encoding="utf-8")
        return str(path)

    return write


def refusal(file: str) -> str:
    """Return the sentence that refuses a probe file."""
    with pytest.raises(UsageError) as refused:
        inspect_interpreter(sys.executable, (file,))
    sentence = str(refused.value)
    assert file in sentence
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("raise ValueError('bad day')", "ValueError: bad day"),
        ("os._exit(7)", "exit code 7"),
        ("ctypes.string_at(0)", "SIGSEGV"),
        ("del Fake", "dlprof.probes.base.Probe"),
    ],
)
def test_a_probe_file_that_fails_to_load_is_refused_in_words(probe_file, text, fact):
    assert fact in refusal(probe_file(text))


def test_a_probe_file_that_hangs_is_given_up(probe_file, monkeypatch):
    monkeypatch.setattr(catalog, "INSPECT_LIMIT_S", 0.5)
    assert "0.5 s" in refusal(probe_file("ctypes.PyDLL(None).sleep(3600)"))


@pytest.mark.parametrize(
    "text",
    [
        "print('noise' * 100_000); print('noise' * 100_000, file=sys.stderr)",
        "os.close(1); os.close(2); sys.stdout = sys.stderr = None; sys.path.clear()",
        "from dataclasses import dataclass\n@dataclass\nclass Detail:\n    size: 'int'",
    ],
)
def test_a_strange_but_harmless_probe_file_is_loaded(probe_file, text):
    catalog = inspect_interpreter(sys.executable, (probe_file(text),))
    assert catalog.find("fake").found
