"""The HTML page in a real browser, with scripts and without."""

import pytest
from document_builders import COLUMNS, document, document_of, row
from hostile import BITES

from dlprof.report.document import Table
from dlprof.report.html import render

OPENED = "details[open]"
UNFOLD = "document.querySelectorAll('details').forEach(fold => fold.open = true)"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("dark", 390)])
def test_axe_finds_nothing(opened, written, scheme, width):
    from axe_playwright_python.sync_playwright import Axe

    page = opened(written, color_scheme=scheme, width=width)
    page.evaluate(UNFOLD)
    found = Axe().run(page)
    assert not found.response["violations"], found.generate_report()


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_small_screen_does_not_scroll_sideways(opened, written, width):
    page = opened(written, width=width)
    page.evaluate(UNFOLD)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("scheme", "is_light"), [("light", True), ("dark", False)])
def test_page_and_charts_follow_the_color_scheme(opened, written, scheme, is_light):
    page = opened(written, color_scheme=scheme)
    colors = page.evaluate(
        "['body', 'svg text'].map(one => getComputedStyle(document.querySelector(one)))"
        ".map((style, at) => at ? style.fill : style.backgroundColor)"
    )
    background, ink = (sum(map(int, color[4:-1].split(","))) for color in colors)
    assert (background > 380, ink < 380) == (is_light, is_light)


def test_without_scripts_every_fold_is_open_and_no_button_shows(opened, written):
    page = opened(written, java_script_enabled=False)
    assert page.locator("details:not([open])").count() == 0
    assert page.locator("pre:visible", has_text="import torch").count() == 3
    assert page.locator("button:visible, input:visible").count() == 0


def test_with_scripts_folds_are_closed_and_open_with_the_keyboard(opened, written):
    page = opened(written)
    assert page.locator(OPENED).count() == 0
    page.locator("summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator(OPENED).count() == 1


def test_a_rule_in_the_table_opens_its_problem(opened, written):
    page = opened(written)
    for _ in range(2):
        page.locator("td a", has_text="DLP018").click()
        page.wait_for_selector("details[open] h3:has-text('DLP018')")
        assert page.locator(OPENED).count() == 1
        page.evaluate(f"document.querySelector('{OPENED}').open = false")


def test_a_command_can_be_copied(opened, written):
    page = opened(written, permissions=["clipboard-read", "clipboard-write"])
    page.evaluate(UNFOLD)
    box = page.locator(".copied").last
    box.locator("button").click()
    page.wait_for_selector("button:has-text('Copied'), button:has-text('Selected')")
    copied = page.evaluate("getSelection().toString() || navigator.clipboard.readText()")
    assert copied == box.locator("code").inner_text()


def test_a_filter_leaves_the_rows_with_every_word(opened, tmp_path):
    path = tmp_path / "long.html"
    rows = tuple(
        row(f"f{number}(x)", kind=kind) for number in range(40) for kind in ("view", "copy")
    )
    path.write_text(render(document(tables=(Table(COLUMNS, rows),))), encoding="utf-8")
    page = opened(path)
    page.get_by_label("Filter").fill("F7 copy")
    (left,) = page.locator("tbody tr:visible").all_inner_texts()
    assert left.split() == ["33", "µs", "copy", "f7(x)"]
    page.get_by_label("Filter").fill("")
    assert page.locator("tbody tr:visible").count() == 80


@pytest.mark.parametrize("word", BITES)
def test_hostile_text_runs_nothing_and_breaks_nothing(opened, tmp_path, word):
    path = tmp_path / "hostile.html"
    path.write_text(render(document_of(word)), encoding="utf-8")
    page = opened(path)
    page.on("dialog", lambda dialog: pytest.fail(f"the page said {dialog.message}"))
    page.evaluate(UNFOLD)
    assert page.locator("footer:visible").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
