"""Trace: CUPTI's records of a window, and every reason for having none."""

import ctypes
import enum
import sys
from types import SimpleNamespace

import pytest
from builders import make_subject
from simulated_device import pair

from dlprof.worker.instruments import trace
from dlprof.worker.instruments.trace import CONTROL, Record, Recorder, Window, evidence

MS = 1_000_000
WINDOW = Window(1_000, 2_000)


# The module cupti.cupti of cupti-python 13.4, with the values of its enums


class ActivityKind(enum.IntEnum):
    MEMCPY = 1
    DRIVER = 4
    RUNTIME = 5
    MEMCPY2 = 22
    SYNCHRONIZATION = 38


class ActivityMemcpyKind(enum.IntEnum):
    UNKNOWN = 0
    HTOD = 1
    DTOH = 2
    DTOD = 8
    HTOH = 9
    PTOP = 10


class CallbackDomain(enum.IntEnum):
    DRIVER_API = 1
    RUNTIME_API = 2


class cuptiError(Exception):  # noqa: N801 - its real name
    pass


class FakeCupti:
    """Delivers the declared events as CUPTI records when it is flushed."""

    ActivityKind = ActivityKind
    ActivityMemcpyKind = ActivityMemcpyKind
    CallbackDomain = CallbackDomain

    def __init__(self):
        self.names = {}
        self.pending = []
        self.enabled = set()
        self.subscribed = False
        self.dropped = 0

    # Events

    def call(self, name, start, end, correlation, kind=ActivityKind.RUNTIME):
        cbid = len(self.names)
        self.names[cbid] = name
        self.add(kind, start, end, correlation, cbid=cbid, thread_id=1)

    def copy(self, kind, size_bytes, start, end, correlation):
        fields = {"copy_kind": int(ActivityMemcpyKind[kind]), "bytes": size_bytes}
        self.add(ActivityKind.MEMCPY, start, end, correlation, **fields)

    def add(self, kind, start, end, correlation, **fields):
        fields |= {"kind": int(kind), "start": start, "end": end, "correlation_id": correlation}
        if kind in self.enabled:
            self.pending.append(SimpleNamespace(**fields))

    # The module

    def get_timestamp(self):
        return 0

    def subscribe(self, callback, userdata):
        self.subscribed = True
        return 4711

    def unsubscribe(self, subscriber):
        assert subscriber == 4711
        self.subscribed = False

    def activity_register_callbacks(self, requested, completed):
        size, _ = requested()
        assert size > 0
        self.completed = completed

    def activity_enable(self, kind):
        self.enabled.add(kind)

    def activity_disable(self, kind):
        self.enabled.discard(kind)

    def activity_flush_all(self, flag):
        self.completed(self.pending)
        for activity in self.pending:
            vars(activity).clear()  # CUPTI takes back its buffer
        self.pending = []

    def activity_get_num_dropped_records(self, context, stream_id, dropped):
        ctypes.c_size_t.from_address(dropped).value = self.dropped

    def get_callback_name(self, domain, cbid):
        return self.names[cbid]


@pytest.fixture
def cupti(monkeypatch):
    """A CUPTI that works, on a machine with a device."""
    fake = FakeCupti()
    control = (CONTROL, 0, 1, 999_999, ActivityKind.DRIVER)
    monkeypatch.setattr(trace, "driver_devices", lambda: 1)
    monkeypatch.setattr(trace, "_call_control", lambda: fake.call(*control))
    monkeypatch.setitem(sys.modules, "cupti", fake)
    monkeypatch.setitem(sys.modules, "cupti.cupti", fake)
    return fake


class TestRecords:
    def recorded(self, cupti, *happens):
        recorder = Recorder()
        with recorder.recording():
            for method, *arguments in happens:
                getattr(cupti, method)(*arguments)
        assert not cupti.enabled
        assert not cupti.subscribed
        return [record for record in recorder.records if record.name != CONTROL]

    @pytest.mark.parametrize(
        ("kind", "direction"),
        [
            ("HTOD", "host to device"),
            ("DTOH", "device to host"),
            ("UNKNOWN", "unknown"),
        ],
    )
    def test_a_copy_has_its_bytes_and_its_direction(self, cupti, kind, direction):
        (copy,) = self.recorded(cupti, ("copy", kind, 64, 10, 30, 7))
        assert copy == Record("copy", 7, 10, 30, direction, 64)


def call(name, start, end, correlation):
    return Record("call", correlation, start, end, name, None, 1)


def event_of(*records, loaded=True):
    (event,) = evidence(records, WINDOW, loaded=loaded)["events"]
    return event


class TestWindow:
    def test_a_recorded_wait_or_a_call_as_long_as_the_queue_waited(self):
        short = call("cudaStreamSynchronize", 1_100, 1_150, 1)
        long = call("cudaFree", 1_100, 1_100 + 19 * MS, 1)
        assert event_of(short, Record("wait", 1, 1_110, 1_140))["waited"] is True
        assert event_of(short)["waited"] is False
        assert event_of(long)["waited"] is True
        assert event_of(long, loaded=False)["waited"] is None


class TestConversions:
    """A trace on the simulated device, which records each conversion as one call."""

    @pytest.mark.parametrize(
        ("order", "waited"), [("host", ["cudaConvert"]), ("event", []), ("nothing", [])]
    )
    def test_a_conversion_that_waits_is_named(self, cupti, order, waited):
        case, device = pair(order=order)
        cupti.get_timestamp = device.host_ns
        plain, calls = case.consumer.from_dlpack, []

        def watched(source):
            began = device.now_ns
            result = plain(source)
            calls.append(None)
            cupti.call("cudaConvert_v3020", began, device.now_ns, len(calls))
            return result

        case.consumer.from_dlpack = watched
        found = trace.measure(case, device)
        assert (found["verdict"], found["evidence"]["waited"]) == ("traced", waited)


class TestNoTrace:
    """Each failure gives its reason, and never an empty list of calls."""

    def reason(self, *case):
        found = trace.measure(*(case or pair()))
        assert found["verdict"] == "no trace"
        assert set(found["evidence"]) == {"reason"}
        return found["evidence"]["reason"]

    def test_without_the_package_or_a_driver_or_a_device(self, cupti, monkeypatch):
        assert "nothing to do with a CUDA device" in self.reason(make_subject())
        monkeypatch.setitem(sys.modules, "cupti", None)
        monkeypatch.delitem(sys.modules, "cupti.cupti")
        assert "pip install cupti-python" in self.reason()
        monkeypatch.setattr(trace, "driver_devices", lambda: "there is no CUDA driver")
        assert self.reason() == "there is no CUDA driver"

    @pytest.mark.parametrize(
        "function", ["activity_enable", "activity_register_callbacks", "get_timestamp"]
    )
    def test_if_cupti_refuses(self, cupti, monkeypatch, function):
        def refuse(*_):
            raise cuptiError("ERROR_NOT_COMPATIBLE (14)")

        monkeypatch.setattr(cupti, function, refuse)
        assert "ERROR_NOT_COMPATIBLE" in self.reason()
        assert not cupti.enabled

    def test_if_records_were_dropped(self, cupti):
        cupti.dropped = 3
        assert self.reason() == "CUPTI dropped 3 records"
