"""The same examples in every run, and no deadline: the machine may be slow."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("deterministic", derandomize=True, deadline=None, print_blob=False)
settings.load_profile("deterministic")
