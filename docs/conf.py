"""How the documentation is built: Sphinx with MyST, see ``make docs``."""

import re
from importlib.metadata import version as version_of
from pathlib import Path

from sphinx.application import Sphinx

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


RULES = Path(__file__).parents[1] / "dlprof" / "judge" / "pages"


def link_rules(_: Sphinx, docname: str, source: list[str]) -> None:
    """Link the table of rules to sections here, and to the files in the package on a code host."""
    if docname == "rules/index":
        rule = re.compile(r"\(\.\./\.\./dlprof/judge/pages/(DLP\d+)\.md\)")
        source[0] = rule.sub(lambda link: f"(pages.md#{link[1].lower()})", source[0])
    if docname == "rules/pages":
        for page in sorted(RULES.glob("DLP*.md")):
            text = f"```{{include}} ../../dlprof/judge/pages/{page.name}\n:heading-offset: 1\n```"
            source[0] += f"\n## {page.stem}\n\n{text}\n"


def setup(app: Sphinx) -> None:
    app.connect("source-read", link_rules)
