"""Run the captured commands of README.md and docs/*.md again, and write what they print.

A capture is a comment ``<!-- captured: COMMAND -->`` with a block of text under it. The files that
a page names in "Save this as `NAME`" are made of the Python block that follows. Run it on a quiet
machine.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CAPTURE = re.compile(r"(<!-- captured: (.*?) -->\n```text\n)(.*?)(```)", re.DOTALL)
EXAMPLE = re.compile(r"Save (?:it|this) as `([\w.]+)`\.\n\n```python\n(.*?)```", re.DOTALL)


def main() -> None:
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = page.read_text(encoding="utf-8")
        if CAPTURE.search(text):
            page.write_text(refreshed(text), encoding="utf-8")


def refreshed(text: str) -> str:
    """The page with every capture made again."""
    with tempfile.TemporaryDirectory() as folder:
        for name, example in EXAMPLE.findall(text):
            Path(folder, name).write_text(example, encoding="utf-8")
        return CAPTURE.sub(lambda found: found[1] + printed(found[2], folder) + found[4], text)


def printed(command: str, folder: str) -> str:
    """What a command prints, in a terminal as wide as it says."""
    print(command, file=sys.stderr)
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],  # noqa: S607 - the pages' own commands
        cwd=folder,
        env={**os.environ, "PATH": programs},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


if __name__ == "__main__":
    main()
