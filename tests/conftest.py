"""What holds for all tests."""

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
    """Without the seed a case that was found could not be found again."""
    seed, cases = (os.environ.get(f"DLPROF_ATTACK_{name}") for name in ("SEED", "CASES"))
    return f"attack: DLPROF_ATTACK_SEED={seed or 0} DLPROF_ATTACK_CASES={cases or 200}"


def _leave_out_of_collections():
    """Keep what is there by now out of the collections that instruments ask for."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """The folder of a test is its marker."""
    for item in items:
        item.add_marker(item.path.parent.name)


def pytest_collection_finish():
    """Thousands of collected tests."""
    _leave_out_of_collections()


@pytest.fixture(autouse=True, scope="module")
def _frameworks_of_other_modules():
    """What the tests before have imported: each collection would take a fifth of a second."""
    _leave_out_of_collections()


@pytest.fixture(autouse=True, scope="session")
def _state_folder(tmp_path_factory):
    """No test writes into the state folder of the user who runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield
