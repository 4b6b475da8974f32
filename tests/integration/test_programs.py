"""``dlprof time --program``: programs in other languages, and programs with faults."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import dlprof

import dlprof as library

ROOT = Path(__file__).parents[2]
HOSTILE = f"{sys.executable} {ROOT}/tests/programs/hostile.py"
QUICK = ("--rounds", 1, "--no-diagnose", "--shape", 1024)


def results(file):
    return {result.case.code: result for result in library.load(file).results}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    file = tmp_path_factory.mktemp("hostile") / "session.json"
    done = dlprof("time", "--program", HOSTILE, *QUICK, "--timeout", 4, "-o", file)
    assert done.code == 0, done.err
    return results(file)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("dies(v)", "the program was killed by SIGABRT (Aborted) before it answered time"),
        ("hangs(v)", "no answer within 4 s"),
        ("says_hello(v)", "answers time with 'Warming up, please wait' instead of a JSON object"),
        ("floods(v)", "instead of a JSON object"),
        ("ends_stdout(v)", "before it answered time"),
        ("slower_than_the_clock(v)", "answers time with"),
        ("is_not_called(v)", "calls: they are not made"),
    ],
)
def test_a_program_that_fails_costs_one_case_and_is_said_in_a_sentence(hostile, code, sentence):
    found = hostile[code]
    assert sentence in f"{found.lost} {found.reason}"
    # A wrong answer is no crash of the conversion.
    assert (found.lost is None) == found.is_of_faulty_probe
    assert hostile["v[:]"].ownership.verdict == "copy"
    assert hostile["v[:]"].values.verdict == "ok"


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("names_the_source(v)", "address and write contradict each other"),
        ("names_no_memory(v)", "the program has no memory at 0x40"),
    ],
)
def test_a_wrong_address_is_no_proof_of_a_view_or_a_copy(hostile, code, sentence):
    found = hostile[code].ownership
    assert found.verdict == "unknown"
    assert sentence in found.evidence.reason


def test_a_wrong_address_is_said_on_the_screen_and_is_no_finding(tmp_path):
    file, paths = tmp_path / "session.json", ("--path", "names_*")
    done = dlprof("time", "--program", HOSTILE, *paths, "--rounds", 1, "--shape", 64, "-o", file)
    full = dlprof("report", file, "--full")
    for said in (done.said, full.said):
        assert "address and write contradict each other" in said
        assert "the program has no memory at 0x40" in said
        assert "DLP0" not in said


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("no-such-program", "cannot be started: No such file or directory: no-such-program"),
        ("echo '", "cannot be started: No closing quotation"),
        ("echo 3", "answers hello with '3' instead of a JSON object"),
        ("true", "ended with exit code 0 before it answered hello"),
        ("echo '{}'", "answers hello with protocol None, no int"),
        ("sleep 60", "no answer within 4 s while it was loaded"),
    ],
)
def test_a_program_without_a_proper_hello_is_an_error_of_use(command, sentence):
    done = dlprof("time", "--program", command, "--timeout", 4)
    assert done.code == 2
    assert sentence in done.err


def test_a_result_that_other_conversions_change_says_nothing_of_its_lifetime(tmp_path):
    file, path = tmp_path / "session.json", ("--path", "reuses(v)")
    once = ("--rounds", 1, "--shape", 1024, "-o", file)
    assert dlprof("time", "--program", HOSTILE, *path, *once).code == 0
    (found,) = results(file).values()
    assert found.lifetime.verdict == "unknown"
    assert "other conversions change its result" in found.lifetime.evidence.reason


def test_a_statement_and_a_program_exclude_each_other():
    assert "name either statements or a program" in dlprof("time").err
    assert "name either statements or a program" in dlprof("time", "x", "--program", "true").err
    assert "--shape is for a program" in dlprof("time", "x.numpy()", "--shape", 4).err
    assert "--setup is for a statement" in dlprof("time", "--program", "true", "-s", "x = 1").err


def compiled(folder, *command):
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]}")
    subprocess.run([*command[:-1], "-o", folder / "copies", command[-1]], check=True)
    return folder / "copies"


@pytest.mark.parametrize(
    ("command", "copy", "view", "lifetime"),
    [
        (
            ("g++", "-O2", "-std=c++17", ROOT / "examples/harness/copies.cpp"),
            "std::vector(v)",
            "span(v.data(), v.size())",
            "dangling",
        ),
        (
            ("rustc", "-O", ROOT / "examples/harness/copies.rs"),
            "v.clone()",
            "&v[..]",
            "unknown",  # the compiler forbids what could dangle
        ),
    ],
)
def test_an_example_shows_its_copy_and_its_view(tmp_path, command, copy, view, lifetime):
    program, file = compiled(tmp_path, *command), tmp_path / "session.json"
    assert dlprof("time", "--program", program, "--rounds", 2, "-o", file).code == 0
    found = results(file)
    assert {name: found[name].ownership.verdict for name in found} == {copy: "copy", view: "view"}
    assert {found[name].values.verdict for name in found} == {"ok"}
    assert found[copy].lifetime.verdict == "safe"
    assert found[view].lifetime.verdict == lifetime
    assert found[copy].host_time.median_ns > 1000 * found[view].host_time.median_ns


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    source = ROOT / "examples/harness/copies.cpp"
    return compiled(tmp_path_factory.mktemp("copies"), "g++", "-O2", "-std=c++17", source)


def test_the_screen_names_only_what_was_checked(copies, tmp_path):
    file = tmp_path / "session.json"
    done = dlprof("time", "--program", copies, "--rounds", 2, "--shape", 1024, "-o", file)
    assert "2 processes checked values and lifetime. error" in done.said


def test_the_ticket_of_a_program_names_the_program_as_its_reproducer(copies, tmp_path):
    file, once = tmp_path / "session.json", ("--rounds", 1, "--shape", 1024)
    dlprof("time", "--program", copies, *once, "-o", file)
    done = dlprof("ticket", file, "DLP011")
    assert "the program itself is the reproducer" in done.out
    assert "--run" not in done.out + done.err


def test_an_array_without_elements_is_not_looked_at(copies, tmp_path):
    file, path = tmp_path / "session.json", ("--path", "std::vector(v)")
    done = dlprof("time", "--program", copies, *path, "--rounds", 1, "--shape", 0, "-o", file)
    assert "an array without elements has no memory to look at" in done.said
    assert "DLP0" not in done.said


SCENARIO = """
title = "Vectors"
question = "Is it a copy?"
program = "./copies"
shapes = [65536]
diagnose = false
rounds = 1
expect = ["no error on C++->std"]
"""


def test_a_scenario_starts_its_program_in_its_own_folder(tmp_path):
    compiled(tmp_path, "g++", "-O2", "-std=c++17", ROOT / "examples/harness/copies.cpp")
    scenario = tmp_path / "vectors.toml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    done = dlprof("run", scenario)
    assert done.code == 0, done.err
    assert "Vectors: C++ → std" in done.said


@pytest.mark.nightly
def test_a_gate_finds_a_copy_that_takes_a_tenth_longer(tmp_path):
    source = ROOT / "examples/harness/copies.cpp"
    base = compiled(tmp_path, "g++", "-O2", "-std=c++17", source)
    text, more = source.read_text(encoding="utf-8"), "source->begin() + source->size() / 10"
    fast = "Vector copy(*source);"
    slow = text.replace(fast, f"{fast} Vector more(source->begin(), {more}); use(more.data());")
    slow = slow.replace("Result convert", "void use(void*); Result convert")
    assert slow != text
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow.cpp").write_text(slow, encoding="utf-8")
    head = compiled(tmp_path / "slow", "g++", "-O2", "-std=c++17", tmp_path / "slow.cpp")
    scenario = tmp_path / "vectors.toml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    sides = ("--base-program", base, "--head-program", head)
    done = dlprof("gate", scenario, *sides, "--path", "std::vector(v)", "-o", tmp_path / "sides")
    assert done.code == 1
    assert "HEAD is slower: std::vector(v)" in done.err
