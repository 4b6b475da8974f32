"""Settings: what a conversion changes for the whole framework or process, and the rule on it."""

import ctypes
import errno
import faulthandler
import gc
import os
import platform
import resource
import signal
import sys
import types
import warnings
from pathlib import Path

import numpy
import pytest
from builders import make_subject
from rule_builders import path, verdict

from dlprof.judge import find
from dlprof.probes.base import Import, Protocol
from dlprof.probes.numpy import NumPy
from dlprof.worker import timer
from dlprof.worker.instruments import settings
from dlprof.worker.refusal import Refusal

SOFT, HARD = resource.getrlimit(resource.RLIMIT_NOFILE)
FEWER_FILES = (SOFT - 1, HARD)


class WithSettings(NumPy):
    """NumPy, and a setting that nothing can read."""

    settings = {**NumPy.settings, "lost": "numpy.no_such_getter()"}  # noqa: RUF012


class Heard:
    def part(self, name, value):
        self.found = value


def looked(call, probe=WithSettings):
    """What the instrument says of ``call`` as a conversion."""
    import_ = Import("any", (Protocol.DLPACK,), "call({x})")
    subject = make_subject(import_=import_, producer=probe(), consumer=probe(), call=call)
    heard = Heard()
    with settings.watched(subject, heard):
        subject.convert()
    return heard.found


def test_a_conversion_that_changes_nothing_keeps_the_settings_and_tells_what_it_cannot_read():
    found = looked(lambda x: x)
    assert (found["verdict"], found["evidence"].keys()) == ("kept", {"left_out"})
    assert found["evidence"]["left_out"].startswith("lost of numpy: AttributeError")


def test_a_setting_whose_text_ends_the_process_cannot_be_read():
    ending = type("Ending", (NumPy,), {"settings": {"lost": "exit(3)"}})
    found = looked(lambda x: x, ending)
    assert (found["verdict"], found["evidence"]["left_out"]) == (
        "kept",
        "lost of numpy: SystemExit: 3",
    )


def names(call):
    return [one["name"] for one in looked(call)["evidence"]["changed"]]


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM, int(signal.SIGRTMIN) + 2])
def test_a_handler_of_any_signal_is_one_setting(number):
    before = signal.getsignal(number)
    try:
        found = names(lambda _: signal.signal(number, lambda *_: None))
    finally:
        signal.signal(number, before)
    assert found == [f"handler of {getattr(number, 'name', number)} of the process"]


def test_a_handler_that_python_does_not_know_is_seen():
    try:
        found = names(lambda _: faulthandler.register(signal.SIGUSR2))
    finally:
        faulthandler.unregister(signal.SIGUSR2)
    assert found == ["signals caught and ignored of the process"]


def test_a_handler_in_c_beside_one_of_python_is_seen():
    def both(_):
        signal.signal(signal.SIGUSR1, lambda *_: None)
        faulthandler.register(signal.SIGUSR2)

    before = signal.getsignal(signal.SIGUSR1)
    try:
        found = names(both)
    finally:
        signal.signal(signal.SIGUSR1, before)
        faulthandler.unregister(signal.SIGUSR2)
    assert "signals caught and ignored of the process" in found


def test_a_signal_that_is_blocked_is_seen():
    try:
        found = names(lambda _: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1]))
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
    assert found == ["blocked signals of the process"]


UPWARD = {"x86_64": 0x800, "aarch64": 0x400000}
LIBC = ctypes.CDLL(None)


@pytest.mark.skipif(platform.machine() not in UPWARD, reason="other constants")
def test_a_rounding_mode_is_one_setting():
    try:
        found = names(lambda _: LIBC.fesetround(UPWARD[platform.machine()]))
    finally:
        LIBC.fesetround(0)
    assert found == ["rounding of floats of the process"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="another register")
@pytest.mark.parametrize("bit", [0x8000, 0x0040], ids=["flush to zero", "denormals are zero"])
def test_denormals_that_are_flushed_or_taken_for_zero_are_seen(bit):
    before, now = ctypes.create_string_buffer(32), ctypes.create_string_buffer(32)

    def set_bit(_):
        LIBC.fegetenv(before)
        status = int.from_bytes(before[28:32], "little") | bit  # MXCSR
        now.raw = before[:28] + status.to_bytes(4, "little")
        LIBC.fesetenv(now)

    try:
        found = names(set_bit)
    finally:
        LIBC.fesetenv(before)
    assert found == ["denormals of the process"]


def test_a_change_behind_a_long_beginning_is_seen_and_shown():
    before, after = ({"one": ("f()", "a" * 9999 + end)} for end in ("b", "c"))
    (one,) = settings._judge(before, after)["evidence"]["changed"]
    assert (one["before"][-1], one["after"][-1]) == ("b", "c")


def test_a_setting_that_can_no_longer_be_read_has_changed():
    lost = {"one": ("f()", Refusal(ValueError("gone")))}
    found = settings._judge({"one": ("f()", "1")}, lost)
    (changed,) = found["evidence"]["changed"]
    assert found["verdict"] == "changed"
    assert (changed["before"], changed["after"]) == ("1", "cannot be read: ValueError: gone")


@pytest.mark.parametrize("error", [OSError(errno.EMFILE, "too many files"), MemoryError()])
def test_a_setting_that_the_process_has_no_means_to_read_has_not_changed(error):
    found = settings._judge(
        {"one": ("f()", "1"), "two": ("g()", "2")},
        {"one": ("f()", Refusal(error)), "two": ("g()", "2")},
    )
    assert (found["verdict"], found["evidence"].keys()) == ("kept", {"left_out"})


def test_signal_masks_that_cannot_be_read_any_more_are_told():
    name = f"{settings.HANDLERS_IN_C} of the process"
    before, after = ({name: ("f()", one)} for one in ("['0x1', '0x2']", Refusal(ValueError("no"))))
    (one,) = settings._judge(before, after)["evidence"]["changed"]
    assert one["after"] == "cannot be read: ValueError: no"


def test_of_a_setting_that_could_not_be_read_before_nothing_is_known():
    lost = {"one": ("f()", Refusal(ValueError("gone")))}
    found = settings._judge(lost, {"one": ("f()", "1")})
    assert (found["verdict"], "gone" in found["evidence"]["left_out"]) == ("unknown", True)


def test_a_setting_of_a_framework_is_told_before_and_after():
    with numpy.errstate(all="warn"):
        found = looked(lambda _: numpy.seterr(over="raise"))
    assert found["verdict"] == "changed"
    (one,) = found["evidence"]["changed"]
    assert (one["name"], one["code"]) == ("handling of float errors of numpy", "numpy.geterr()")
    assert ("'over': 'warn'" in one["before"], "'over': 'raise'" in one["after"]) == (True, True)


def test_a_setting_of_the_process_counts_also_if_the_call_is_refused():
    def refuse(_):
        warnings.simplefilter("ignore", BufferError)
        raise BufferError

    heard = Heard()
    subject = make_subject(import_=Import("any", (Protocol.DLPACK,), "refuse({x})"), refuse=refuse)
    with warnings.catch_warnings(), pytest.raises(BufferError), settings.watched(subject, heard):
        subject.convert()
    (one,) = heard.found["evidence"]["changed"]
    assert one["name"] == "warning filters of the process"


@pytest.mark.parametrize(
    ("imports", "message", "found"),
    [
        (True, "of one module", "kept"),
        (True, "", "changed"),
        (False, "of one module", "changed"),
    ],
)
def test_a_warning_filter_counts_unless_it_comes_with_a_module(
    imports, message, found, monkeypatch
):
    def sets(_):
        if imports:
            monkeypatch.setitem(sys.modules, "imported_by_the_call", types.ModuleType("one"))
        warnings.filterwarnings("ignore", message=message)

    with warnings.catch_warnings():
        assert looked(sets)["verdict"] == found


def test_a_warning_filter_that_goes_while_a_module_is_imported_counts(monkeypatch):
    def resets(_):
        monkeypatch.setitem(sys.modules, "imported_by_the_call", types.ModuleType("one"))
        warnings.resetwarnings()

    with warnings.catch_warnings():
        assert looked(resets)["verdict"] == "changed"


@pytest.mark.parametrize(
    "text", ["numpy.geterr()['over'], numpy.geterr()['under']", "numpy.geterr()  # the handling"]
)
def test_a_setting_may_be_a_tuple_or_have_a_comment(text, monkeypatch):
    monkeypatch.setattr(WithSettings, "settings", {"mine": text})
    with numpy.errstate(all="warn"):
        found = looked(lambda _: numpy.seterr(over="raise"))
    before = {one["name"]: one["before"] for one in found["evidence"]["changed"]}
    assert "warn" in before["mine of numpy"]


@pytest.fixture
def put_back():
    """The settings of this process as they were."""
    limit, folder, environment = sys.getrecursionlimit(), Path.cwd(), dict(os.environ)
    processors, mask = os.sched_getaffinity(0), os.umask(0o022)
    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.umask(mask)
    yield
    gc.enable()
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)
    resource.setrlimit(resource.RLIMIT_NOFILE, files)
    sys.setrecursionlimit(limit)
    os.chdir(folder)
    os.umask(mask)
    os.sched_setaffinity(0, processors)
    os.environ.clear()
    os.environ.update(environment)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("garbage collector", lambda _: gc.disable()),
        ("garbage collector", lambda _: gc.set_threshold(50_000)),
        ("switch interval", lambda _: sys.setswitchinterval(0.123)),
        ("resource limits", lambda _: resource.setrlimit(resource.RLIMIT_NOFILE, FEWER_FILES)),
        ("recursion limit", lambda _: sys.setrecursionlimit(2345)),
        ("working folder", lambda _: os.chdir("/")),
        ("umask", lambda _: os.umask(0o031)),
        pytest.param(
            "processors of the thread",
            lambda _: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
            marks=pytest.mark.skipif(len(os.sched_getaffinity(0)) == 1, reason="one processor"),
        ),
        ("environment variable DLPROF_NEW", lambda _: os.environ.update(DLPROF_NEW="secret")),
        ("environment variable PATH", lambda _: os.environ.update(PATH="secret")),
        ("environment variable PATH", lambda _: os.environ.pop("PATH")),
    ],
)
@pytest.mark.usefixtures("put_back")
def test_a_setting_of_the_process_is_seen_and_no_value_of_the_environment(name, change):
    (one,) = looked(change)["evidence"]["changed"]
    assert one["name"] == f"{name} of the process"
    assert one["before"] != one["after"]
    assert "secret" not in one["after"]


@pytest.mark.usefixtures("put_back")
def test_a_conversion_that_switches_the_collector_off_is_seen_while_it_is_timed():
    def off(_):
        with timer.collector_off():
            gc.disable()

    (one,) = looked(off)["evidence"]["changed"]
    assert one["name"] == "garbage collector of the process"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("global random state", numpy.random.random),
        ("size of buffers", lambda: numpy.setbufsize(32_768)),
        ("print options", lambda: numpy.set_printoptions(precision=3)),
    ],
)
def test_settings_of_numpy_are_seen(name, change):
    size, options = numpy.getbufsize(), numpy.get_printoptions()
    try:
        assert names(lambda _: change()) == [f"{name} of numpy"]
    finally:
        numpy.setbufsize(size)
        numpy.set_printoptions(**options)


CHANGED = {"name": "grad mode of torch", "code": "torch.is_grad_enabled()"}


def test_a_finding_names_the_setting_its_values_and_a_path_that_keeps_it():
    seen = verdict("changed", changed=[{**CHANGED, "before": "True", "after": "False"}])
    (found,) = find([path("sets(x)", settings=seen), path("keeps(x)", settings=verdict("kept"))])
    assert (found.rule, found.severity) == ("DLP025", "warning")
    assert "the grad mode of torch: True before, False after" in found.headline
    assert found.advice == "keeps(x) keeps it."


@pytest.mark.parametrize(
    "settings",
    [
        None,
        verdict("unknown", reason="no setting can be read"),
        verdict("kept", left_out=f"{CHANGED['name']}: AttributeError: no getter"),
    ],
)
def test_a_path_of_which_nothing_read_the_setting_is_not_advised(settings):
    seen = verdict("changed", changed=[{**CHANGED, "before": "True", "after": "False"}])
    (found,) = find([path("sets(x)", settings=seen), path("timed(x)", settings=settings)])
    assert found.advice == ""


def test_a_long_value_stays_in_the_evidence():
    seen = verdict("changed", changed=[{**CHANGED, "before": "a" * 99, "after": "b"}])
    (found,) = find([path("sets(x)", settings=seen)])
    assert "aaa" not in found.headline
    assert found.evidence["before"] == "a" * 99


def test_each_setting_is_a_finding_of_its_own():
    other = {**CHANGED, "name": "locale of the process", "before": "'C'", "after": "''"}
    seen = verdict("changed", changed=[{**CHANGED, "before": "True", "after": "False"}, other])
    found = find([path("sets(x)", settings=seen)])
    assert [one.evidence["setting"] for one in found] == [CHANGED["name"], other["name"]]
