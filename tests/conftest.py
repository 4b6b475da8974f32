"""What holds for all tests."""

from __future__ import annotations

import gc

import pytest


def _leave_out_of_collections():
    """Keep what is there by now out of the collections that instruments ask for."""
    gc.collect()
    gc.freeze()


def pytest_collection_finish():
    """Thousands of collected tests."""
    _leave_out_of_collections()


@pytest.fixture(autouse=True, scope="module")
def _frameworks_of_other_modules():
    """What the tests before have imported: each collection would take a fifth of a second."""
    _leave_out_of_collections()
