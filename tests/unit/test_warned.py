"""Warnings of a first call are recorded, and judged by the proof of view or copy."""

import warnings

import pytest
from builders import make_subject
from rule_builders import found, path, verdict

from dlprof.probes.base import ArraySpec, Import, Protocol
from dlprof.probes.torch import Torch
from dlprof.worker.instruments import warned

READ_ONLY = "UserWarning: the array is not writable"


class Replies(dict):
    def part(self, name, value):
        self[name] = value


def texts(code, layout="C", **names):
    import_ = Import("any", (Protocol.DLPACK,), code)
    spec = ArraySpec((4,), "float32", layout)
    subject = make_subject(import_=import_, consumer=Torch(), spec=spec, **names)
    replies = Replies()
    with warned.recorded(subject, replies):
        subject.convert()
    return replies["warnings"]["evidence"].get("texts", [])


def deprecated(array):
    warnings.warn("it goes", DeprecationWarning, stacklevel=2)
    return array


@pytest.mark.filterwarnings("default")
def test_a_warning_that_comes_once_in_a_process_is_recorded_for_each_path():
    for code in ("torch.from_numpy({x})", "torch.as_tensor({x})"):
        (text,) = texts(code, "readonly")
        assert text.startswith("UserWarning: The given NumPy array is not writable")
    assert texts("torch.from_numpy({x})") == []


@pytest.mark.filterwarnings("default")
def test_a_deprecation_that_a_script_would_show_is_recorded():
    assert texts("deprecated({x})", deprecated=deprecated) == ["DeprecationWarning: it goes"]


@pytest.mark.filterwarnings("default")
def test_a_warning_of_a_frameworks_first_use_is_not_the_conversions():
    calls = []

    def first_use(array):
        if not calls:
            warnings.warn("no linker", RuntimeWarning, stacklevel=2)
        calls.append(array)
        return array

    assert texts("first_use({x})", first_use=first_use) == []


@pytest.mark.parametrize(
    ("owner", "text", "severity"),
    [
        ("copy", READ_ONLY, "warning"),
        ("view", READ_ONLY, "info"),
        ("copy", "FutureWarning: it goes", "info"),
    ],
)
def test_only_a_copy_that_warns_of_writes_contradicts_its_warning(owner, text, severity):
    warns = verdict("warns", texts=[text])
    (finding,) = found("DLP031", path("f(x)", owner=owner, warnings=warns))
    assert finding.severity == severity
    assert found("DLP031", path("f(x)", owner=owner, warnings=verdict("silent"))) == []


def test_a_copy_to_another_shape_contradicts_a_warning_of_writes_too():
    shape = {"changed": {"shape": [[4], [1, 4]]}}
    looks = {"values": verdict("wrong", **shape), "warnings": verdict("warns", texts=[READ_ONLY])}
    statement = path("f([x])", owner="copy", case={"import": "statement"}, **looks)
    (finding,) = found("DLP031", statement)
    assert finding.severity == "warning"
    assert "although the result is a copy: " in finding.headline


def test_a_warning_is_cut_at_the_end_of_a_sentence():
    text = "UserWarning: It is slow. Please write the other call. " + "Triggered at " * 20
    (finding,) = found("DLP031", path("f(x)", warnings=verdict("warns", texts=[text])))
    assert '"It is slow. Please write the other call. …"' in finding.summary


@pytest.mark.parametrize(("ready_us", "advice"), [(9.0, "g(x) does not warn."), (200.0, "")])
def test_a_path_that_does_not_warn_is_advised_unless_it_is_slow(ready_us, advice):
    warns = verdict("warns", texts=["DeprecationWarning: it goes"])
    other = path("g(x)", ready_us * 1000, "copy", warnings=verdict("silent"))
    (finding,) = found("DLP031", path("f(x)", owner="copy", warnings=warns), other)
    assert finding.advice == advice
