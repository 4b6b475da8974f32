"""``--html`` on the command line: a file, or stdout instead of the table."""

from __future__ import annotations

import pytest
from command_line import FAKE, QUICK, content, dlprof

pytestmark = pytest.mark.integration

RUN = ("run", "fake", "fake", "--probe", FAKE, *QUICK)
PAGE = "<!doctype html>"


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp("html")
    path = folder / "session.json"
    assert dlprof(*RUN, "-o", path, state=folder).code == 0
    return path


def test_a_run_writes_the_page_beside_its_table(tmp_path):
    page = tmp_path / "report.html"
    run = dlprof(*RUN, "--html", page, state=tmp_path)
    assert run.code == 0
    assert "fake → fake" in run.out
    assert PAGE not in run.out
    assert page.read_text(encoding="utf-8").startswith(PAGE)


def test_a_run_prints_the_page_instead_of_its_table(tmp_path):
    run = dlprof(*RUN, "--html", "-", "--json", tmp_path / "session.json", state=tmp_path)
    assert run.out.startswith(PAGE)
    assert run.out.endswith("</html>\n")
    assert content(tmp_path / "session.json")["complete"] is True


def test_both_cannot_be_printed(tmp_path):
    run = dlprof(*RUN, "--html", "-", "--json", "-", state=tmp_path)
    assert run.code == 2
    assert run.out == ""
    assert run.sentence() == "dlprof: only one of --json, --html can be printed"


def test_a_saved_session_becomes_a_page(session, tmp_path):
    page = tmp_path / "report.html"
    report = dlprof("report", session, "--html", page, state=tmp_path)
    assert (report.code, report.out) == (0, "")
    assert page.read_text(encoding="utf-8").startswith(PAGE)


def test_a_saved_session_is_printed_as_a_page(session, tmp_path):
    report = dlprof("report", session, "--html", "-", state=tmp_path)
    assert report.out.startswith(PAGE)
    assert report.err == ""


def test_the_page_is_replaced_as_a_whole(session, tmp_path):
    page = tmp_path / "report.html"
    page.write_text("what was there before", encoding="utf-8")
    assert dlprof("report", session, "--html", page, state=tmp_path).code == 0
    assert page.read_text(encoding="utf-8").startswith(PAGE)
    assert [file.name for file in tmp_path.glob(".*.partial")] == []


@pytest.mark.parametrize("option", ["--html", "--csv", "--parquet", "--markdown"])
def test_no_report_replaces_a_session(session, tmp_path, option):
    other = tmp_path / "other.json"
    other.write_bytes(session.read_bytes())
    report = dlprof("report", session, option, other, state=tmp_path)
    assert report.code == 2
    assert report.sentence() == (
        f"dlprof: cannot write {other}: a session is in it; name another file"
    )
    assert other.read_bytes() == session.read_bytes()


def test_a_report_may_be_written_to_a_device(session, tmp_path):
    assert dlprof("report", session, "--html", "/dev/null", state=tmp_path).code == 0


def test_a_run_that_measures_nothing_writes_a_page_without_a_chart(tmp_path):
    page = tmp_path / "report.html"
    run = dlprof(*RUN, "--layout", "strided", "--html", page, state=tmp_path)
    assert run.code == 4
    text = page.read_text(encoding="utf-8")
    assert text.startswith(PAGE)
    assert "<svg" not in text
