"""Settings: changes of a conversion to the whole framework or process, and the rule on them."""

import gc
import random
import signal
import socket
import sys
import threading

import numpy
import pytest
from builders import make_subject
from rule_builders import path, verdict

from dlprof.judge import find
from dlprof.probes.base import Import, Protocol
from dlprof.probes.numpy import NumPy
from dlprof.worker.instruments import settings


class WithSettings(NumPy):
    """NumPy, with a setting that cannot be read."""

    settings = {**NumPy.settings, "lost": "numpy.no_such_getter()"}  # noqa: RUF012


class Heard:
    def part(self, name, value):
        self.found = value


def looked(call, probe=WithSettings, *, timed=False):
    """Return the instrument's answer for ``call`` as a conversion."""
    import_ = Import("any", (Protocol.DLPACK,), "call({x})")
    subject = make_subject(import_=import_, producer=probe(), consumer=probe(), call=call)
    heard = Heard()
    with settings.watched(subject, heard, timed=timed):
        subject.convert()
    return heard.found


def test_a_harmless_conversion_keeps_the_settings_even_if_one_cannot_be_read():
    ending = type("Ending", (NumPy,), {"settings": {"lost": "exit(3)"}})
    assert looked(lambda x: x)["verdict"] == "kept"
    assert looked(lambda x: x, ending)["verdict"] == "kept"


def names(call):
    return [one["name"] for one in looked(call)["evidence"]["changed"]]


def test_a_setting_of_a_framework_is_reported_before_and_after():
    with numpy.errstate(all="warn"):
        found = looked(lambda _: numpy.seterr(over="raise"))
    assert found["verdict"] == "changed"
    (one,) = found["evidence"]["changed"]
    assert (one["name"], one["code"]) == ("handling of float errors of numpy", "numpy.geterr()")
    assert ("'over': 'warn'" in one["before"], "'over': 'raise'" in one["after"]) == (True, True)


@pytest.mark.usefixtures("put_back")
def test_a_setting_of_the_process_also_counts_if_the_call_is_refused():
    def refuse(_):
        sys.setswitchinterval(0.123)
        raise BufferError

    heard = Heard()
    subject = make_subject(import_=Import("any", (Protocol.DLPACK,), "refuse({x})"), refuse=refuse)
    with pytest.raises(BufferError), settings.watched(subject, heard):
        subject.convert()
    (one,) = heard.found["evidence"]["changed"]
    assert one["name"] == "switch interval of the process"


@pytest.fixture
def put_back():
    """Restore the settings of this process afterwards."""
    limit, interval = sys.getrecursionlimit(), sys.getswitchinterval()
    handler = signal.getsignal(signal.SIGUSR1)
    yield
    gc.enable()
    socket.setdefaulttimeout(None)
    sys.setswitchinterval(interval)
    sys.setrecursionlimit(limit)
    signal.signal(signal.SIGUSR1, handler)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("garbage collector", lambda _: gc.disable()),
        ("recursion limit", lambda _: sys.setrecursionlimit(2345)),
        ("random generator", lambda _: random.random()),
        ("default socket timeout", lambda _: socket.setdefaulttimeout(3)),
        ("signal handlers", lambda _: signal.signal(signal.SIGUSR1, lambda *_: None)),
    ],
)
@pytest.mark.usefixtures("put_back")
def test_a_setting_of_the_process_is_seen(name, change):
    (one,) = looked(change)["evidence"]["changed"]
    assert one["name"] == f"{name} of the process"
    assert one["before"] != one["after"]


def test_a_thread_that_runs_on_after_the_call_is_seen():
    ends = threading.Event()

    def spin():
        while not ends.is_set():
            pass

    try:
        found = looked(lambda _: threading.Thread(target=spin).start(), timed=True)
    finally:
        ends.set()
    (one,) = found["evidence"]["changed"]
    assert one["name"] == "state of the threads between calls"
    assert (one["before"], one["after"]) == ("asleep", "running")


def test_a_setting_of_numpy_is_seen():
    draw = numpy.random.random
    assert names(lambda _: draw()) == ["global random state of numpy"]


CHANGED = {"name": "grad mode of torch", "code": "torch.is_grad_enabled()"}


def test_a_finding_names_the_setting_its_values_and_a_path_that_keeps_it():
    seen = verdict("changed", changed=[{**CHANGED, "before": "True", "after": "False"}])
    (found,) = find([path("sets(x)", settings=seen), path("keeps(x)", settings=verdict("kept"))])
    assert (found.rule, found.severity) == ("DLP025", "warning")
    assert "the grad mode of torch: True before, False after" in found.headline
    assert found.advice == "keeps(x) keeps it."


def test_a_path_without_a_reading_of_the_setting_is_not_advised():
    seen = verdict("changed", changed=[{**CHANGED, "before": "True", "after": "False"}])
    (found,) = find([path("sets(x)", settings=seen), path("timed(x)", settings=None)])
    assert found.advice == ""


def test_each_setting_is_a_finding_of_its_own():
    other = {**CHANGED, "name": "locale of the process", "before": "'C'", "after": "''"}
    seen = verdict("changed", changed=[{**CHANGED, "before": "True", "after": "False"}, other])
    found = find([path("sets(x)", settings=seen)])
    assert [one.evidence["setting"] for one in found] == [CHANGED["name"], other["name"]]
