"""``--junit``, ``--markdown`` and ``--github`` as a pipeline runs them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from command_line import FAKE, QUICK, content, dlprof

sys.path.insert(0, str(Path(__file__).parent.parent / "unit"))
from builders import make_result
from comparison_builders import session, suite, with_code

pytestmark = pytest.mark.integration

RUN = ("run", "fake", "fake", "--probe", FAKE, *QUICK)
BAD = {
    "rule": "DLP008",
    "name": "wrong-values",
    "severity": "error",
    "results": [0],
    "summary": "\n::error::100% wrong, says a framework",
}


@pytest.fixture
def keep(tmp_path):
    """Write a session of these results and return its path."""

    def write(name, results, **header):
        path = tmp_path / f"{name}.json"
        found = session(results, created=f"2026-01-01 {name}", **header)
        path.write_text(found.model_dump_json(by_alias=True), encoding="utf-8")
        return path

    return write


@pytest.fixture
def sides(keep):
    """Two sessions, of which the second is slower in one case."""
    return keep("base", suite()), keep("head", suite({"c": 1.5}, seed=50))


def outputs(folder):
    names = {"--junit": "j.xml", "--markdown": "m.md"}
    return {option: folder / name for option, name in names.items()}


def words(files):
    return [word for pair in files.items() for word in pair]


def check_files(files):
    """Both are whole, and what JUnit says."""
    root = ET.parse(files["--junit"]).getroot()
    assert files["--markdown"].read_text(encoding="utf-8").startswith("## dlprof: ")
    return root


def test_a_run_writes_all_of_them(tmp_path):
    files = outputs(tmp_path)
    done = dlprof(*RUN, *words(files), "-o", tmp_path / "s.json", state=tmp_path)
    assert done.code == 0, done.err
    root = check_files(files)
    session = content(tmp_path / "s.json")
    assert int(root.get("tests")) == len(session["results"]) + len(session["left_out"]) + 2
    assert root.get("failures") == "0"


def test_a_report_writes_them_again_and_fails_as_asked(tmp_path, keep):
    files, path = outputs(tmp_path), keep("s", [make_result("f(x)")], findings=[BAD])
    done = dlprof("report", path, *words(files), "--fail-on", "error", state=tmp_path)
    assert done.code == 1
    root = check_files(files)
    assert root.get("failures") == "1"


@pytest.mark.parametrize(("verb", "code"), [("gate", 1), ("compare", 0)])
def test_a_comparison_writes_all_of_them(tmp_path, sides, verb, code):
    files = outputs(tmp_path)
    done = dlprof(verb, *sides, *words(files), "--json", tmp_path / "c.json", state=tmp_path)
    assert done.code == code
    root = check_files(files)
    assert (root.get("failures"), root.get("errors")) == ("1", "0")
    assert content(tmp_path / "c.json")["exit_code"] == code


@pytest.mark.parametrize("option", ["--junit", "--markdown"])
def test_one_of_them_can_be_printed_alone(tmp_path, sides, option):
    file = tmp_path / "out"
    printed = dlprof("gate", *sides, option, "-", state=tmp_path)
    dlprof("gate", *sides, option, file, state=tmp_path)
    assert printed.out == file.read_text(encoding="utf-8")


def test_github_gets_annotations_and_a_summary(tmp_path, sides):
    summary = tmp_path / "summary.md"
    summary.write_text("# before\n", encoding="utf-8")
    done = dlprof("gate", *sides, "--github", state=tmp_path, GITHUB_STEP_SUMMARY=str(summary))
    assert done.code == 1
    assert len(done.sentences) == 1
    last = done.out.splitlines()[-1]
    assert re.match(r"::error title=dlprof%3A SLOWER::numpy\.c\(x\): takes 1\.5", last)
    assert summary.read_text(encoding="utf-8").startswith("# before\n## dlprof: BASE and HEAD")


def test_a_run_on_github_points_nowhere_it_does_not_know(tmp_path):
    done = dlprof(*RUN, "--github", state=tmp_path, GITHUB_STEP_SUMMARY=str(tmp_path / "s.md"))
    assert done.code == 0
    assert "file=" not in done.out
    assert (tmp_path / "s.md").read_text(encoding="utf-8").startswith("## dlprof: fake → fake")


def test_without_a_summary_file_it_says_so(tmp_path, sides):
    done = dlprof("compare", *sides, "--github", state=tmp_path, GITHUB_STEP_SUMMARY=None)
    assert (done.code, done.sentence()) == (0, "no summary: GITHUB_STEP_SUMMARY is not set")


def test_github_obeys_nothing_that_the_report_prints(tmp_path, keep):
    evil = "::error::no"
    sides = [
        keep(name, with_code(evil, suite(ratio, seed=seed, names="c")))
        for name, ratio, seed in (("base", None, 0), ("head", {"c": 1.5}, 50))
    ]
    done = dlprof("gate", *sides, "--github", state=tmp_path, COLUMNS="80")
    assert evil in done.out
    obeyed = obeyed_by_github(done.out)
    assert len(obeyed) == 1
    assert obeyed[0].startswith("::error title=dlprof%3A SLOWER::")


def obeyed_by_github(text):
    """The commands in a step's output, but those between ``stop-commands`` and its word."""
    obeyed, word = [], None
    for line in text.splitlines():
        stop = re.match(r"::stop-commands::(\w+)$", line)
        if word is None and stop:
            word = stop[1]
        elif word is not None and line == f"::{word}::":
            word = None
        elif word is None and line.startswith("::"):
            obeyed.append(line)
    return obeyed


BAD_OUTPUTS = [
    (("--sarif", "x"), "--sarif was removed: use --junit FILE, or --github for annotations"),
    (("--gitlab=x",), "--gitlab was removed: use --junit FILE, which GitLab reads"),
    (
        ("--junit", "-", "--markdown", "-"),
        "only one of --markdown, --junit can be printed: name files",
    ),
    (("--github", "--junit", "-"), "only one of --junit, --github can be printed: name files"),
    (("--junit", "/no/folder/x"), "cannot write /no/folder/x: No such file or directory"),
]


@pytest.mark.parametrize(("bad", "sentence"), BAD_OUTPUTS, ids=range(len(BAD_OUTPUTS)))
@pytest.mark.parametrize("verb", ["gate", "run"])
def test_bad_outputs_are_told_before_anything_is_measured(tmp_path, verb, bad, sentence):
    first = ("gate", "no.json", "nor.json") if verb == "gate" else RUN
    done = dlprof(*first, *bad, state=tmp_path)
    assert (done.code, done.sentence()) == (2, f"dlprof: {sentence}")


@pytest.mark.parametrize(
    ("words", "changes"),
    [(("--junit", "SIDE"), {}), (("--github",), {"GITHUB_STEP_SUMMARY": "SIDE"})],
)
def test_a_report_does_not_replace_a_session(tmp_path, sides, words, changes):
    before, side = sides[0].read_bytes(), str(sides[0])
    words = [word.replace("SIDE", side) for word in words]
    changes = dict.fromkeys(changes, side)
    done = dlprof("gate", *sides, *words, state=tmp_path, **changes)
    assert (done.code, sides[0].read_bytes()) == (2, before)
    assert "a session is in it" in done.sentence()


def test_a_summary_that_cannot_be_written_is_an_error(tmp_path, sides):
    missing = tmp_path / "no" / "summary.md"
    done = dlprof("gate", *sides, "--github", state=tmp_path, GITHUB_STEP_SUMMARY=str(missing))
    assert done.code == 2
    assert "cannot write the summary" in done.sentence()
