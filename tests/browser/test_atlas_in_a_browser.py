"""The atlas in a real browser, opened from a folder."""

from pathlib import Path

import pytest

from dlprof.atlas.changes import changes_of
from dlprof.atlas.grid import grid_of
from dlprof.report.html.site import HOME, pages_of

VERSIONS = Path(__file__).parents[1] / "recorded" / "versions"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("atlas")
    grid = grid_of([VERSIONS], pytest.fail)
    for name, text in pages_of(grid, changes_of(grid)):
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("scheme", "name"),
    [
        ("light", HOME),
        ("dark", HOME),
        ("light", "changes.html"),
        ("dark", "pair-numpy-onnxruntime.html"),
    ],
)
def test_axe_finds_nothing_in_an_atlas(opened, site, scheme, name):
    from axe_playwright_python.sync_playwright import Axe

    page = opened(site / name, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    found = Axe().run(page)
    assert not found.response["violations"], found.generate_report()


def test_a_search_by_keyboard_finds_a_path_and_its_page(opened, site):
    page = opened(site / HOME)
    page.get_by_label("Search").focus()
    page.keyboard.type("ortvalue from_dlpack")
    assert page.get_by_role("status").inner_text().startswith("3 found")
    page.keyboard.press("Tab")
    link = page.evaluate("document.activeElement.href")
    assert link.endswith("pair-numpy-onnxruntime.html")


def test_an_atlas_does_not_scroll_a_phone_sideways(opened, site):
    page = opened(site / HOME, width=390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
