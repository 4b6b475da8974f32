"""How the documentation is built: Sphinx with MyST, see ``make docs``."""

from importlib.metadata import version as version_of
from pathlib import Path

from dlprof.judge import RULES
from dlprof.judge.pages import index, page

project = "dlprof"
author = "The dlprof contributors"
project_copyright = "The dlprof contributors"
release = version_of("dlprof")

extensions = ["myst_parser"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3
nitpicky = True

html_theme = "furo"
html_title = f"dlprof {release}"


def write_rules() -> None:
    """A page for each rule, and the table of all: everything about a rule stands in the package."""
    folder = Path(__file__).parent / "rules"
    lines = ["| id | name | severity | it finds |", "|---|---|---|---|"]
    for rule in RULES:
        (folder / f"{rule.id}.md").write_text(page(rule.id), encoding="utf-8")
        link = f"[{rule.id}]({rule.id}.md)"
        lines.append(f"| {link} | {rule.name} | {rule.severity_text} | {index(rule.id)} |")
    (folder / "table.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


write_rules()
