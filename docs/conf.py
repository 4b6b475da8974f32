"""How the documentation is built: Sphinx with MyST, see ``make docs``."""

import re
from importlib.metadata import version as version_of

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


def link_rules(_: Sphinx, docname: str, source: list[str]) -> None:
    """Link the table of rules to sections here, and to the files in the package on a code host."""
    if docname == "rules/index":
        rule = re.compile(r"\(\.\./\.\./dlprof/judge/pages/(DLP\d+)\.md\)")
        source[0] = rule.sub(lambda link: f"(pages.md#{link[1].lower()})", source[0])


def setup(app: Sphinx) -> None:
    app.connect("source-read", link_rules)
