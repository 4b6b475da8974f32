"""Measure on a quiet machine and draw the pictures of the documentation: ``python docs/images.py``.

The terminal at 80 and 100 columns as SVG; the HTML page in light, in dark and at 390 px as PNG, by
Chromium.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from dlprof.measuring.judged import judged
from dlprof.report import html, terminal
from dlprof.report.session_document import session_document
from dlprof.runner.session_file import load

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
COMMAND = "run torch numpy --shape 4096x4096"
COLUMNS = (80, 100)
PAGES = {"light": (1440, 900), "dark": (1440, 900), "narrow": (390, 844)}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "session.json")
        dlprof = [sys.executable, "-m", "dlprof", *COMMAND.split(), "--output", file]
        subprocess.run(dlprof, check=True, stdout=subprocess.DEVNULL)
        session = judged(load(file))
    IMAGES.mkdir(exist_ok=True)
    document = session_document(session)
    for columns in COLUMNS:
        screen = terminal.render(document, columns, True)
        picture = drawn(f"$ dlprof {COMMAND}\n{screen}", columns)
        (IMAGES / f"terminal-{columns}.svg").write_text(picture)
    page = html.render(session_document(session, html.SAVED, scripts=True), session)
    for name, size in PAGES.items():
        take(page, IMAGES / f"page-{name}.png", size, dark=name == "dark")


def drawn(screen: str, columns: int) -> str:
    """The screen of a terminal as SVG."""
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(screen))
    return console.export_svg(title="dlprof", unique_id="dlprof")


def take(page: str, target: Path, size: tuple[int, int], *, dark: bool) -> None:
    """A screenshot of the top of a page."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "page.html")
        file.write_text(page, encoding="utf-8")
        subprocess.run(
            [  # noqa: S607 - the browser of the machine
                "chromium",
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                f"--screenshot={target}",
                f"--window-size={size[0]},{size[1]}",
                *(["--blink-settings=preferredColorScheme=0"] if dark else []),
                file.as_uri(),
            ],
            check=True,
            capture_output=True,
        )


if __name__ == "__main__":
    main()
