"""The page of a history, and its section in a report, in a real browser."""

from __future__ import annotations

import itertools

import pytest
from history_builders import machine, month, stepped, trends
from hostile import BITES
from html_builders import full_session

from dlprof.history.store import History
from dlprof.reports.html import history_page, page

pytestmark = pytest.mark.browser

SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])
KINDS = pytest.mark.parametrize("kind", ["page", "section"])


def weeks(word=""):
    """A step in time, one in the verdict, two machines, a crash at the end."""

    def change(number):
        copies = {"verdict": "copy" if number >= 15 else "view", "evidence": {}}
        lost = {"status": "crashed", "reason": f"SIGSEGV {word}"} if number == 24 else {}
        return {"ownership": copies, "case": {"producer": word or "torch"}, **lost}

    def header(number):
        return {
            "environment": machine(
                cpu=f"Example {word}",
                cores=4 if number % 5 == 4 else 8,
                packages={f"numpy{word}": "2.5.0" if number >= 10 else "2.4.0"},
            )
        }

    label = lambda number: f"{'0123456789' * 4}{word}"  # noqa: E731
    return month(stepped(26), change, header, label)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The files of both kinds."""
    folder = tmp_path_factory.mktemp("history")
    entries = weeks()
    texts = {
        "page": history_page.render(
            History(tuple(entries), (("x.parquet", "it is damaged"),)), trends(entries), "ready"
        ),
        "section": page.render(full_session(), trends(entries)),
    }
    for kind, text in texts.items():
        (folder / f"{kind}.html").write_text(text, encoding="utf-8")
    return folder


@KINDS
@SCHEMES
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing(opened, written, kind, scheme, width):
    from axe_playwright_python.sync_playwright import Axe

    shown = opened(written / f"{kind}.html", color_scheme=scheme, width=width)
    shown.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    found = Axe().run(shown)
    assert not found.response["violations"], found.generate_report()


@KINDS
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_does_not_scroll_sideways(opened, written, kind, width):
    shown = opened(written / f"{kind}.html", width=width)
    shown.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    assert shown.evaluate("document.documentElement.scrollWidth") <= width


@KINDS
def test_steps_and_what_brought_them_can_be_read(opened, written, kind):
    text = opened(written / f"{kind}.html", java_script_enabled=False).inner_text("main")
    assert "numpy 2.4.0 → 2.5.0" in text
    assert "ownership: view, now copy (warning)" in text


@KINDS
def test_every_chart_has_its_words_and_numbers(opened, written, kind):
    shown = opened(written / f"{kind}.html")
    charts = shown.locator("figure:has([aria-label*='numpy.a(x), torch'])")
    assert charts.count() == 2
    for place in range(2):
        assert (
            charts.nth(place).locator("svg[role=img][aria-label*='Chart: numpy.a(x)']").count() == 1
        )
        assert charts.nth(place).locator("table tbody tr").count() > 3


@SCHEMES
def test_the_line_of_a_step_is_seen_in_light_and_dark(opened, written, scheme):
    shown = opened(written / "page.html", color_scheme=scheme)
    paint = "getComputedStyle(document.querySelector('.chart [stroke-dasharray=\"4,3\"]')).stroke"
    ink = "rgb(31, 35, 40)" if scheme == "light" else "rgb(230, 237, 243)"
    assert shown.evaluate(paint) == ink


def test_headings_step_down_one_at_a_time(opened, written):
    levels = opened(written / "page.html").evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4')].map(heading => +heading.tagName[1])"
    )
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


@pytest.mark.parametrize("word", BITES)
def test_hostile_text_runs_nothing(opened, tmp_path, word):
    path = tmp_path / "hostile.html"
    entries = weeks(word)
    text = history_page.render(History(tuple(entries), ((word, word),)), trends(entries), "ready")
    path.write_text(text, encoding="utf-8")
    shown = opened(path)
    shown.on("dialog", lambda dialog: pytest.fail(f"the page said {dialog.message}"))
    assert shown.locator("main section").count() == 4
    assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
