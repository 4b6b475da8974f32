"""Sessions as files, and an empty interpreter."""

import venv

import pytest
from builders import make_session
from comparison_builders import suite


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> str:
    """A Python with nothing installed: no dlprof, no NumPy, no pip."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    return str(folder / "bin" / "python")


@pytest.fixture
def keep(tmp_path):
    """Write a session of these results and return its path."""

    def write(name, results, **header):
        path = tmp_path / f"{name}.json"
        second = len(list(tmp_path.iterdir()))
        created = f"2026-01-01T00:00:{second:02}+00:00"
        found = make_session(*results, **{"created": created, **header})
        path.write_text(found.model_dump_json(by_alias=True), encoding="utf-8")
        return path

    return write


@pytest.fixture
def sides(keep):
    """Two sessions; the second is slower in one case."""
    return keep("base", suite()), keep("head", suite({"c": 2.5}, seed=50))
