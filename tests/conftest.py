"""Settings for all tests."""

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default",
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("nightly", max_examples=300, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_report_header():
    """Print the seed, so that a failing case can be run again."""
    seed, cases = (os.environ.get(f"DLPROF_ATTACK_{name}") for name in ("SEED", "CASES"))
    return f"attack: DLPROF_ATTACK_SEED={seed or 0} DLPROF_ATTACK_CASES={cases or 200}"


def _leave_out_of_collections():
    """Freeze existing objects: instruments ask for garbage collections."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark each test with its folder's name."""
    for item in items:
        item.add_marker(item.path.parent.name)


def pytest_collection_finish():
    """Thousands of collected tests."""
    _leave_out_of_collections()


@pytest.fixture(autouse=True, scope="module")
def _frameworks_of_other_modules():
    """Freeze the modules of earlier tests: each collection would take 0.2 s."""
    _leave_out_of_collections()


@pytest.fixture(autouse=True, scope="session")
def _state_folder(tmp_path_factory):
    """Point the state folder elsewhere: no test writes into the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield
