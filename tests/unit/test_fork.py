"""Fork: a conversion in a child of a process that has converted."""

import os
import threading

import pytest
from builders import make_subject
from rule_builders import found, path

from dlprof.probes.base import Import, Protocol
from dlprof.probes.numpy import NumPy
from dlprof.worker.instruments import fork

pytestmark = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # JAX of an earlier test
held = threading.Lock()
held.acquire()
PARENT = os.getpid()


def first(array):
    """Wait in a child for a lock that its parent holds."""
    if os.getpid() == PARENT:
        return array
    with held:
        return array


class Late(NumPy):
    def wait(self, device):
        return "first({x})"


def refuses(array):
    raise BufferError


def measured(code, **names):
    import_ = Import("any", (Protocol.DLPACK,), code)
    return fork.measure(make_subject(import_=import_, **names))


@pytest.mark.parametrize("code", ["{x}.copy()", "numpy.from_dlpack({x})"])
def test_a_conversion_without_threads_returns_in_a_forked_child(code):
    assert measured(code)["verdict"] == "returns"


def test_a_conversion_that_waits_in_the_child_for_what_only_its_parent_has_hangs(monkeypatch):
    monkeypatch.setattr(fork, "ASLEEP_S", 0.2)
    assert measured("first({x})", first=first)["verdict"] == "hangs"


def test_a_hang_in_the_wait_is_told_from_one_in_the_call(monkeypatch):
    monkeypatch.setattr(fork, "ASLEEP_S", 0.2)
    names = {"consumer": Late(), "first": first}
    in_wait, in_call = (measured(code, **names) for code in ("{x}.copy()", "first({x})"))
    assert (in_wait["verdict"], in_wait["evidence"]["returned"]) == ("hangs", True)
    assert "returned" not in in_call["evidence"]
    for hang, words in (
        (in_wait, "never becomes ready in a forked child"),
        (in_call, "hangs in a"),
    ):
        (finding,) = found("DLP032", path("f(x)", fork=hang))
        assert words in finding.headline


def test_a_child_that_is_busy_at_the_limit_is_no_proof(monkeypatch):
    monkeypatch.setattr(fork, "LIMIT_S", 0.2)

    def spin(array):
        while os.getpid() != PARENT:
            pass
        return array

    assert measured("spin({x})", spin=spin)["verdict"] == "unknown"


def test_an_error_in_the_child_is_an_answer():
    def refuse(array):
        return array if os.getpid() == PARENT else refuses(array)

    assert measured("refuse({x})", refuse=refuse)["verdict"] == "returns"
