"""A document as one HTML file. It fetches nothing and works without scripts."""

from __future__ import annotations

from dlprof.reports.html.page import render

__all__ = ["render"]
