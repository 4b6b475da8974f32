"""The report as one HTML file: no network, readable with scripts blocked, verdict first."""

from __future__ import annotations

from dlprof.reports.html.page import render

__all__ = ["render"]
