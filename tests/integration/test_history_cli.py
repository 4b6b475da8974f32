"""``dlprof history`` as a user runs it: processes, files, words and exit codes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import COMMAND, dlprof, environment

sys.path.insert(0, str(Path(__file__).parent.parent / "unit"))
from history_builders import day, machine, result

pytestmark = pytest.mark.integration

NO_LABEL = {"GITHUB_SHA": None, "CI_COMMIT_SHA": None, "DLPROF_HISTORY": None}


def here(folder, words):
    return [re.sub("@", f"{folder}/", str(word)) for word in words]


@pytest.fixture
def keep(tmp_path):
    """Write the session of a day and return its path."""

    def write(number, *results, **header):
        path = tmp_path / f"day{number:02}.json"
        session = day(number, *(results or [result("a", seed=number)]), **header)
        path.write_text(session.model_dump_json(by_alias=True), encoding="utf-8")
        return path

    return write


@pytest.fixture
def run(tmp_path):
    """Run ``dlprof history``; ``@name`` is a file in the folder of the test."""

    def call(*words, **changes):
        options = {**NO_LABEL, **changes}
        return dlprof("history", *here(tmp_path, words), state=tmp_path / "state", **options)

    return call


@pytest.fixture(scope="module")
def weeks(tmp_path_factory):
    """Twenty days of sessions and their history; the case takes 20 % longer from the eleventh on.

    For tests that add nothing to it.
    """
    folder = tmp_path_factory.mktemp("weeks")
    for number in range(20):
        late = number >= 10
        found = day(
            number,
            result("a", 1200.0 if late else 1000.0, seed=number),
            environment=machine(packages={"numpy": "2.5.0" if late else "2.4.0"}),
        )
        path = folder / f"day{number:02}.json"
        path.write_text(found.model_dump_json(by_alias=True), encoding="utf-8")
    (folder / "empty").mkdir()
    words = ("history", "add", *sorted(folder.glob("*.json")), "--to", folder / "history")
    assert dlprof(*words, state=folder / "state", **NO_LABEL).code == 0
    return folder


@pytest.fixture
def ask(weeks):
    """Run ``dlprof history`` on the weeks; ``@name`` is a file there."""

    def call(*words, **changes):
        options = {**NO_LABEL, **changes}
        return dlprof("history", *here(weeks, words), state=weeks / "state", **options)

    return call


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_session_is_added_and_shown(tmp_path, keep, run):
    done = run("add", keep(0), "--to", "@history", "--label", "v1")
    assert (done.code, done.err) == (0, "")
    told = f"added to the new history {tmp_path}/history: 1 case, label v1 (from --label)"
    assert told in done.out
    assert len(files(tmp_path / "history")) == 1
    shown = run("show", "@history")
    assert (shown.code, shown.err) == (0, "")
    assert "1 case" in shown.out


def test_a_session_may_come_from_stdin(tmp_path, keep, run):
    line = [*COMMAND, "history", "add", "-", "--to", str(tmp_path / "history")]
    done = subprocess.run(
        line,
        input=keep(0).read_bytes(),
        env=environment(tmp_path / "state", **NO_LABEL),
        timeout=60,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(files(tmp_path / "history")) == 1
    again = run("add", keep(0), "--to", "@history", "--label", "v2")
    assert (again.code, "already; nothing added" in again.out) == (0, True)
    assert len(files(tmp_path / "history")) == 1


def test_the_step_and_what_brought_it_are_shown(ask):
    done = ask("show", "@history", COLUMNS="80")
    said = " ".join(done.out.split())
    assert done.code == 0
    assert "numpy 2.4.0 → 2.5.0" in said
    assert "1 slower" in said
    assert "\x1b" not in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_the_history_as_json(ask):
    done = ask("show", "@history", "--json", "-")
    found = json.loads(done.out)
    assert (found["schema"], len(found["sessions"])) == ("dlprof.trend/1", 20)
    assert len(found["trends"][0]["steps"]) == 1


def test_the_history_as_a_page(tmp_path, ask):
    page = tmp_path / "page.html"
    done = ask("show", "@history", "--html", page)
    assert done.code == 0
    assert "1 slower" in done.out
    assert "<svg" in page.read_text(encoding="utf-8")


def test_the_report_of_a_session_shows_its_past(tmp_path, keep, weeks):
    newest = keep(20, result("a", 1200.0, seed=20))
    page = tmp_path / "report.html"
    words = ("report", newest, "--html", page, "--history", weeks / "history")
    done = dlprof(*words, state=tmp_path)
    assert (done.code, done.err) == (0, "")
    text = page.read_text(encoding="utf-8")
    assert "2026-01-21 03:00" in text
    assert len(files(weeks / "history")) == 20


def test_one_file_that_cannot_be_read_keeps_all_out(tmp_path, keep, run):
    (tmp_path / "other.json").write_text("{}")
    done = run("add", keep(0), "@other.json", "--to", "@history")
    assert done.code == 2
    assert "other.json is not a dlprof session" in done.sentence()
    assert not (tmp_path / "history").exists()


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (("show", "@nowhere"), 2, "there is no history at @nowhere"),
        (("show",), 2, "Give an ADDRESS, or set DLPROF_HISTORY"),
        (("show", "@history", "--case", "zz*"), 2, "no case of the history matches"),
        (("show", "@history", "--measure", "x"), 2, "--measure is ready, host"),
        (("show", "@history", "--json", "-", "--html", "-"), 2, "only one of --json, --html"),
        (("show", "@history", "--json", "@no/x"), 2, "cannot write @no/x"),
        (("show", "@empty"), 4, "the history @empty holds no session"),
        (("add", "@day00.json"), 2, "Give --to ADDRESS, or set DLPROF_HISTORY"),
        (("add", "@day00.json", "--to", "@day00.json/x"), 2, "the history @day00.json/x"),
        (("add", "@nowhere.json", "--to", "@history"), 2, "cannot read the session @nowhere.json"),
        (("add", "-", "-", "--to", "@history"), 2, "only one session can be on stdin"),
    ],
)
def test_what_makes_no_sense_is_told_in_one_sentence(weeks, ask, words, code, reason):
    done = ask(*words)
    (told,) = here(weeks, [reason])
    assert done.code == code
    assert told in done.sentence()


def test_a_secret_in_an_address_is_not_told(tmp_path):
    done = dlprof("history", "show", "bogus://user:secret@host/x?token=secret", state=tmp_path)
    assert done.code == 2
    assert done.sentence().startswith("dlprof: cannot open the history bogus://<hidden>@host/x?")
    assert "secret" not in done.out + done.err


def test_a_foreign_file_is_named_on_stderr_and_the_rest_is_shown(tmp_path, weeks, run):
    shutil.copytree(weeks / "history", tmp_path / "history")
    (tmp_path / "history" / "foreign.parquet").write_bytes(b"PAR1 and no more")
    done = run("show", "@history")
    assert done.code == 0
    assert done.sentence().startswith("dlprof: foreign.parquet is left out: it is damaged")
    assert "1 slower" in done.out
