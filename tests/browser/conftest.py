"""A real browser for the tests of the HTML report.

Without a browser they are skipped. If ``DLPROF_REQUIRE_BROWSER`` is set, they fail.
"""

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))  # its builders

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = (
    "--no-sandbox",  # root in a container may not make one
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def executable():
    """The browser of this machine."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        message = f"there is no browser: none of {', '.join(NAMES)} is on PATH"
        if os.environ.get("DLPROF_REQUIRE_BROWSER"):
            pytest.fail(message)
        pytest.skip(message)
    return found


@pytest.fixture(scope="session")
def browser(executable):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable, args=list(ARGUMENTS))
        yield started
        started.close()


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """Write the page of a document with every kind of part, and with a session, to a file."""
    from document_builders import document
    from html_builders import full_session

    from dlprof.report.html import render

    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(render(document(), full_session()), encoding="utf-8")
    return path


@pytest.fixture
def opened(browser):
    """Open a file in a fresh page; any page error or request fails the test."""
    contexts, complaints = [], []

    def open_(path, width=1280, **options):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, accept_downloads=True, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: _complain(complaints, message))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: _refuse(complaints, path, request.url))
        page.goto(path.as_uri())
        return page

    yield open_
    for context in contexts:
        context.close()
    assert not complaints


def _complain(complaints, message):
    if message.type in ("error", "warning"):
        complaints.append(message.text)


def _refuse(complaints, path, url):
    """Allow no requests except for the file itself and its own blobs."""
    if url.partition("#")[0] != path.as_uri() and not url.startswith(("blob:", "data:")):
        complaints.append(f"asked for {url}")
