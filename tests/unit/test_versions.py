"""Versions are told of frameworks and of the libraries that do their work."""

import json
import os

import pytest
from builders import make_header
from hypothesis import given
from hypothesis import strategies as st
from repro_builders import finding_of, session_of

from dlprof.probes.base import Probe
from dlprof.probes.jax import Jax
from dlprof.report.method import packages
from dlprof.runner.header import Environment
from dlprof.ticket.reproducer import reproducer
from dlprof.ticket.ticket import written
from dlprof.worker.inspect import describe

KNOWN = {
    "packages": {"numpy": "2.4", "worker": "1.5", "onnxruntime-gpu": "1.2", "torch": "2.9"},
    "libraries": {"worker": "numpy"},
}


def test_a_library_is_told_with_the_framework_whose_work_it_does():
    known = Environment.model_validate(KNOWN)
    assert known.distributions(["numpy"]) == [("numpy", "2.4"), ("worker", "1.5")]
    assert known.distributions(["onnxruntime"]) == [("onnxruntime-gpu", "1.2")]


@given(st.dictionaries(st.text(max_size=5), st.recursive(st.text(), st.lists, max_leaves=3)))
def test_what_a_session_says_of_libraries_may_be_anything(libraries):
    whole = {"packages": {"numpy": "2.4"}, "libraries": libraries}
    assert ("numpy", "2.4") in Environment.model_validate(whole).distributions(["numpy"])


def test_a_probe_names_the_libraries_that_are_installed():
    assert "jaxlib" in Jax.also

    class Working(Probe):
        name = module = "working"
        distributions = ("pytest",)
        also = ("pluggy", "no-such-distribution")

    assert list(describe(Working(), "builtin")["also"]) == ["pluggy"]


def test_a_probe_names_the_file_of_its_framework_unless_it_is_built_in():
    class Working(Probe):
        name = "working"
        distributions = ()

    Working.module = "json"
    assert describe(Working(), "builtin")["file"] == os.path.realpath(json.__file__)
    Working.module = "sys"
    assert describe(Working(), "builtin")["file"] is None


@pytest.fixture
def session():
    found = session_of("DLP018")
    return found.model_copy(
        update={
            "environment": Environment.model_validate({**found.environment.model_dump(), **KNOWN})
        }
    )


def test_a_library_is_told_in_report_ticket_and_reproducer(session):
    header = make_header(environment=KNOWN, request={"pairs": [["numpy", "numpy"]]})
    assert ("worker", "worker 1.5") in packages(header)
    ticket = written(session, finding_of("DLP018"), None, str)
    assert "- numpy 2.4, worker 1.5\n" in ticket
    assert "worker 1.5" in reproducer(session, finding_of("DLP018")).text.replace("\n", " ")


def test_many_other_packages_do_not_hide_those_that_were_measured():
    many = {f"other{n}": "1" for n in range(50)} | {"numpy": "2.4"}
    header = make_header(environment={"packages": many}, request={"pairs": [["numpy", "numpy"]]})
    assert packages(header) == [("numpy", "numpy 2.4")]
