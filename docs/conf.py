"""How the documentation is built: Sphinx with MyST, see ``make docs``."""

from importlib.metadata import version as version_of

project = "dlprof"
author = "The dlprof contributors"
project_copyright = "The dlprof contributors"
release = version_of("dlprof")

extensions = ["myst_parser"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3
nitpicky = True
suppress_warnings = ["myst.xref_missing"]  # the table of rules links to pages in the package

html_theme = "furo"
html_title = f"dlprof {release}"
