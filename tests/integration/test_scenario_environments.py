"""An environment that a scenario asks for is made once and used again; MXNet lives in one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command_line import content, dlprof

from dlprof.errors import UsageError
from dlprof.scenario import environments
from dlprof.scenario.environments import environment, folder_of, is_made
from dlprof.scenario.model import EnvironmentSpec

pytestmark = pytest.mark.integration

MXNET = Path(__file__).parents[2] / "scenarios" / "mxnet.toml"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def made(*requirements: str, said: list[str] | None = None):
    spec = EnvironmentSpec(name="e", requirements=list(requirements))
    return environment(spec, Path("s.toml"), (said if said is not None else []).append)


def test_the_same_requirements_are_one_environment(cache):
    assert folder_of(["a", "b"]) == folder_of(["b", "a"]) != folder_of(["a"])


def test_what_cannot_be_installed_is_told_in_one_sentence(cache):
    with pytest.raises(UsageError) as refused:
        made("a-distribution-that-nobody-has==0.0.1")
    text = str(refused.value)
    assert "\n" not in text
    assert text.startswith("environment e cannot be installed: ")
    assert "a-distribution-that-nobody-has" in text


def test_half_an_environment_is_not_used(cache):
    requirements = ["a-distribution-that-nobody-has==0.0.1"]
    with pytest.raises(UsageError):
        made(*requirements)
    assert folder_of(requirements).is_dir()
    assert not is_made(EnvironmentSpec(name="e", requirements=requirements))


def test_an_environment_is_made_once_and_used_again(cache, monkeypatch):
    ran: list[list[str]] = []

    def install(command, folder, failure):
        ran.append(list(command))
        folder.mkdir(parents=True, exist_ok=True)

    monkeypatch.setattr(environments, "_run", install)
    said: list[str] = []
    first, again = made("a", said=said), made("a", said=said)
    assert first == again
    assert (len(ran), len(said)) == (2, 1)
    assert ran[1][-1] == "a"
    assert json.loads((folder_of(["a"]) / environments.WHOLE).read_text()) == {
        "requirements": ["a"]
    }


def test_uv_is_used_where_there_is_one(cache, monkeypatch):
    ran: list[list[str]] = []
    monkeypatch.setattr(environments, "_run", lambda command, *_: ran.append(list(command)))
    monkeypatch.setattr(environments.shutil, "which", lambda name: f"/bin/{name}")
    folder_of(["a"]).mkdir(parents=True)
    monkeypatch.setattr(environments.shutil, "rmtree", lambda *_, **__: None)
    python = made("a").python
    assert ran[0][:2] == ["/bin/uv", "venv"]
    assert ran[1] == ["/bin/uv", "pip", "install", "--python", python, "a"]


def test_a_cache_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(UsageError, match="environment e cannot be kept in"):
        made("a")


# MXNet, for real


@pytest.fixture(scope="module")
def mxnet_session(tmp_path_factory):
    """The ready scenario, smaller; the environment stays in the user's cache for the next time."""
    if sys.version_info[:2] > (3, 11):
        pytest.skip("MXNet 1.9.1 needs NumPy 1.23, which needs Python 3.11 or older")
    folder = tmp_path_factory.mktemp("mxnet")
    path = folder / "session.json"
    options = ("--shape", "256x256", "--rounds", "1", "--diagnose", "-o", path)
    run = dlprof("sweep", MXNET, *options, state=folder)
    if run.code == 2 and "cannot be installed" in run.err:
        pytest.skip(f"MXNet cannot be installed here: {run.err}")
    assert run.code in (0, 3), run.err
    return content(path)


def by_code(session) -> dict:
    return {result["case"]["code"]: result for result in session["results"]}


def test_mxnet_is_measured_in_its_environment(mxnet_session):
    assert {result["environment"] for result in mxnet_session["results"]} == {"mxnet 1.9.1"}
    packages = mxnet_session["environments"][0]["packages"]
    assert (packages["mxnet"], packages["numpy"]) == ("1.9.1", "1.23.5")
    assert {result["status"] for result in mxnet_session["results"]} == {"ok"}


@pytest.mark.parametrize(
    ("code", "owner"),
    [
        ("x.asnumpy()", "copy"),
        ("mxnet.nd.from_dlpack(x.__dlpack__())", "view"),
        ("mxnet.nd.from_numpy(x)", "view"),
        ("mxnet.nd.from_numpy(x, zero_copy=False)", "copy"),
        ("mxnet.nd.array(x)", "copy"),
        ("mxnet.nd.from_dlpack(x.to_dlpack_for_read())", "view"),
    ],
)
def test_what_mxnet_copies_is_seen(mxnet_session, code, owner):
    assert by_code(mxnet_session)[code]["ownership"]["verdict"] == owner


def test_values_survive_mxnet(mxnet_session):
    assert {result["values"]["verdict"] for result in mxnet_session["results"]} == {"ok"}


def test_mxnet_makes_the_array_of_numpy_read_only(mxnet_session):
    found = by_code(mxnet_session)["mxnet.nd.from_numpy(x)"]["values"]["evidence"]["writable"]
    assert found == {"source": False, "result": True}
