"""What holds for all tests."""

from __future__ import annotations

import gc


def pytest_collection_finish():
    """Keep thousands of collected tests out of the collections that instruments ask for."""
    gc.collect()
    gc.freeze()
