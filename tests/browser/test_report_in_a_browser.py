"""The HTML report in a real browser, with scripts and without."""

from __future__ import annotations

import gzip
import itertools
import json

import pytest
from hostile import BITES, session_of
from html_builders import full_session

from dlprof.reports.html import render
from dlprof.session.model import parse

pytestmark = pytest.mark.browser

SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])
COLUMN = "table.cases >> nth=0 >> tbody tr:visible td:nth-child({})"


def unfold(page):
    page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")


def texts(page, selector):
    return [text.strip() for text in page.locator(selector).all_inner_texts()]


def saved(page, selector, folder):
    """What a click on a button or a link saves."""
    with page.expect_download() as waiting:
        page.click(selector)
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_everything_is_readable(opened, report, scripts):
    page = opened(report, java_script_enabled=scripts)
    text = page.locator("main").inner_text()
    for words in (
        "torch",
        "Findings",
        "Worst:",
        "numpy.slow(x)",
        "Cost against size",
        "memcpy of this machine",
        "What was not measured, and why",
        "SIGSEGV during timing",
        "no diagnosis of waiting",
        "seed",
    ):
        assert words in text


def test_without_scripts_there_is_no_button_that_does_nothing(opened, report):
    page = opened(report, java_script_enabled=False)
    assert page.locator("button:visible").count() == 0
    assert page.locator("input:visible").count() == 0


def test_without_scripts_what_is_folded_can_be_unfolded(opened, report):
    page = opened(report, java_script_enabled=False)
    before = page.locator("details[open]").count()
    page.locator("details:not([open]) > summary").filter(visible=True).first.click()
    assert page.locator("details[open]").count() == before + 1


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_the_compressed_session_can_be_saved(opened, report, tmp_path, scripts):
    page = opened(report, java_script_enabled=scripts)
    path = saved(page, "#packed", tmp_path)
    assert parse(gzip.decompress(path.read_bytes()).decode(), "saved") == full_session()


def test_the_session_can_be_saved_as_it_was_written(opened, report, tmp_path):
    path = saved(opened(report), "#save", tmp_path)
    assert parse(path.read_text(encoding="utf-8"), "saved") == full_session()


def test_a_session_that_stands_there_compressed_only_can_be_saved(opened, tmp_path, monkeypatch):
    monkeypatch.setattr("dlprof.reports.html.embedded.MOST_PLAIN", 0)
    report = tmp_path / "report.html"
    report.write_text(render(full_session()), encoding="utf-8")
    path = saved(opened(report), "#save", tmp_path)
    assert json.loads(path.read_text(encoding="utf-8"))["schema"] == "dlprof.session/1"


def test_a_table_is_sorted_by_number_and_back(opened, report):
    page = opened(report)
    heading = page.locator("table.cases >> nth=0 >> th button", has_text="ready")
    values = (
        "[...document.querySelectorAll('table.cases')[0].tBodies[0].rows]"
        ".map(row => row.cells[3].dataset.v)"
    )
    heading.click()
    assert heading.locator("..").get_attribute("aria-sort") == "ascending"
    up = [float(value) for value in page.evaluate(values) if value]
    heading.click()
    assert heading.locator("..").get_attribute("aria-sort") == "descending"
    down = [float(value) for value in page.evaluate(values) if value]
    assert up == sorted(up)
    assert down == sorted(down, reverse=True)


def test_what_has_no_number_stands_last_both_ways(opened, report):
    page = opened(report)
    table = page.locator("table.cases >> nth=0")
    heading = table.locator("th button", has_text="GB/s")
    place = heading.evaluate("button => button.parentElement.cellIndex")
    cells = table.locator(f"tbody tr td:nth-child({place + 1})")
    for _ in range(2):
        heading.click()
        numbers = [text.strip() != "-" for text in cells.all_inner_texts()]
        assert any(numbers)
        assert not all(numbers)
        assert numbers == sorted(numbers, reverse=True)


def test_sorting_keeps_every_row(opened, report):
    page = opened(report)
    before = sorted(texts(page, COLUMN.format(1)))
    page.locator("table.cases >> nth=0 >> th button", has_text="path").click()
    assert sorted(texts(page, COLUMN.format(1))) == before


def test_the_filter_leaves_the_cases_with_every_word(opened, report):
    page = opened(report)
    page.fill("#filter", "NUMPY.array 4096x4096")
    rows = texts(page, "table.cases tbody tr:visible td:nth-child(2)")
    assert rows == ["numpy.array(x)"]
    assert page.inner_text("#matches") == "1 of 14 cases"
    page.fill("#filter", "")
    assert page.locator("table.cases tbody tr:visible").count() == 14


def test_a_link_to_a_case_unfolds_and_unfilters_it(opened, report):
    page = opened(report)
    page.fill("#filter", "no such thing")
    page.locator(".card a.case").first.click()
    target = page.evaluate("location.hash")
    assert page.wait_for_selector(f"tr{target}:visible").is_visible()


def test_a_command_can_be_copied(opened, report):
    page = opened(report, permissions=["clipboard-read", "clipboard-write"])
    button = page.locator("button.copier").first
    command = button.locator("xpath=..//code").inner_text()
    button.click()
    page.wait_for_function("document.querySelector('button.copier').textContent !== 'Copy'")
    if button.inner_text() == "Copied":
        assert page.evaluate("navigator.clipboard.readText()") == command
    else:
        assert page.evaluate("getSelection().toString()") == command


@SCHEMES
@pytest.mark.parametrize("width", [1280, 768, 375])
def test_axe_finds_nothing(opened, report, scheme, width):
    from axe_playwright_python.sync_playwright import Axe

    page = opened(report, color_scheme=scheme, width=width)
    page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    found = Axe().run(page)
    assert not found.response["violations"], found.generate_report()


@SCHEMES
def test_light_and_dark_are_told_apart_by_the_page_and_its_charts(opened, report, scheme):
    page = opened(report, color_scheme=scheme)
    paint = "getComputedStyle(document.querySelector('.chart text')).fill"
    assert page.evaluate(paint) == page.evaluate(
        "(() => { const e = document.createElement('i'); e.style.color = 'var(--muted)';"
        " document.body.append(e); return getComputedStyle(e).color; })()"
    )
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")


@pytest.mark.parametrize("width", [320, 375, 768])
@pytest.mark.parametrize("unfolded", [False, True])
def test_a_small_screen_does_not_scroll_sideways(opened, report, unfolded, width):
    page = opened(report, width=width)
    if unfolded:
        unfold(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


CUT = """[...document.querySelectorAll(%r)]
    .filter(box => box.scrollWidth > box.clientWidth + 1).map(box => box.getAttribute('aria-label'))"""


def test_a_phone_shows_every_column_of_every_table(opened, report):
    page = opened(report, width=375)
    unfold(page)
    assert page.evaluate(CUT % ".scroll:has(table.stack)") == []


def test_a_phone_shows_charts_whole_or_says_that_they_scroll(opened, report):
    page = opened(report, width=375)
    assert page.evaluate(CUT % ".chart:not(.wide)") == []
    wide = page.locator(".chart.wide").count()
    assert wide > 0
    assert page.locator("figure .hint:visible").count() == wide
    assert opened(report, width=1280).locator(".hint:visible").count() == 0


def test_a_phone_names_what_each_cell_holds(opened, report):
    page = opened(report, width=375)
    unfold(page)
    titles = page.evaluate(
        """[...document.querySelectorAll('table.stack')].flatMap(table =>
            [...table.tBodies[0].rows[0].cells].slice(2).map((cell, at) => [
                getComputedStyle(cell, '::before').content,
                table.tHead.rows[0].cells[at + 2].textContent]))"""
    )
    named = [(shown.strip('"').strip(), title) for shown, title in titles if shown != "none"]
    assert len(named) > 20
    assert all(shown == title for shown, title in named)


def test_a_table_is_sorted_on_a_phone_too(opened, report):
    page = opened(report, width=375)
    page.locator("table.cases >> nth=0 >> th button", has_text="path").click()
    paths = texts(page, COLUMN.format(2))
    assert paths == sorted(paths)


def test_all_that_can_be_clicked_is_reached_by_keyboard(opened, report):
    page = opened(report)
    clickable = "a[href], button, input, summary"
    wanted = page.locator(clickable).filter(visible=True).count()
    reached = set()
    for _ in range(3 * wanted):
        page.keyboard.press("Tab")
        mark = page.evaluate(
            f"[...document.querySelectorAll('{clickable}')].indexOf(document.activeElement)"
        )
        reached.add(mark)
    assert len(reached - {-1}) == wanted


def test_a_fold_opens_with_the_keyboard(opened, report):
    page = opened(report)
    summary = page.locator("details:not([open]) > summary").filter(visible=True).first
    handle = summary.element_handle()
    handle.focus()
    page.keyboard.press("Enter")
    assert handle.evaluate("summary => summary.parentElement.open")


def test_headings_step_down_one_at_a_time(opened, report):
    page = opened(report)
    page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    levels = page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4')].map(heading => +heading.tagName[1])"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_it_prints_on_light_paper(opened, report):
    page = opened(report, color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(31, 35, 40)"
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_on_paper_tables_keep_their_headings_and_fit(opened, report):
    page = opened(report, width=720)
    page.emulate_media(media="print")
    unfold(page)
    headings = texts(page, "table.cases >> nth=0 >> th")
    assert headings[:2] == ["#", "path"]
    assert page.locator("table.cases th:visible").count() == page.locator("table.cases th").count()
    assert page.locator(".copier:visible").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 720


@pytest.mark.parametrize("word", BITES)
def test_hostile_text_runs_nothing(opened, tmp_path, word):
    path = tmp_path / "hostile.html"
    path.write_text(render(session_of(word)), encoding="utf-8")
    page = opened(path)
    page.on("dialog", lambda dialog: pytest.fail(f"the page said {dialog.message}"))
    assert page.locator("main section").count() >= 6
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
