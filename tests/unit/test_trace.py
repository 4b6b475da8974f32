"""Trace: what CUPTI's records say of a window, and every way in which there are none."""

import sys

import pytest
from builders import make_subject
from fake_cupti import FakeCupti, cuptiError
from simulated_device import pair

from dlprof.worker.instruments import trace
from dlprof.worker.instruments.trace import CONTROL, Record, Recorder, Window, evidence

MS = 1_000_000
WINDOW = Window(1_000, 2_000)


@pytest.fixture
def cupti(monkeypatch):
    """A CUPTI that works, on a machine with a device."""
    fake = FakeCupti()
    monkeypatch.setattr(trace, "driver_devices", lambda: 1)
    monkeypatch.setattr(
        trace, "_call_control", lambda: fake.call(CONTROL, 0, 1, 999_999, runtime=False)
    )
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
            ("DTOD", "device to device"),
            ("HTOH", "host to host"),
            ("ATOH", "device to host"),
            ("PTOP", "device to other device"),
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
    def test_copies_belong_to_the_call_that_made_them_even_after_the_window(self):
        records = [
            call("cudaMemcpy", 1_100, 1_200, 1),
            call("cuMemcpyHtoD", 1_110, 1_190, 2),  # made by the runtime
            Record("copy", 2, 1_120, 1_130, "host to device", 64),
            Record("copy", 2, 9_000, 9_020, "host to device", 6),
        ]
        found = evidence(records, WINDOW, loaded=True)
        (event,) = found["events"]
        assert (event["name"], event["bytes"], event["device_ns"]) == ("cudaMemcpy", 70, 30)
        assert (event["direction"], found["copied_bytes"]) == ("host to device", 70)

    def test_a_recorded_wait_or_a_call_as_long_as_the_queue_waited(self):
        short = call("cudaStreamSynchronize", 1_100, 1_150, 1)
        long = call("cudaFree", 1_100, 1_100 + 19 * MS, 1)
        assert event_of(short, Record("wait", 1, 1_110, 1_140))["waited"] is True
        assert event_of(short)["waited"] is False
        assert event_of(long)["waited"] is True
        assert event_of(long, loaded=False)["waited"] is None


class TestConversions:
    """On the simulated device, whose conversions are recorded as one call each."""

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
    """Each with its reason, and never a list of no calls."""

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
    def test_if_cupti_refuses(self, cupti, function):
        cupti.refuses[function] = cuptiError("ERROR_NOT_COMPATIBLE (14)")
        assert "ERROR_NOT_COMPATIBLE" in self.reason()
        assert not cupti.enabled

    def test_if_not_even_a_known_call_was_recorded(self, cupti, monkeypatch):
        monkeypatch.setattr(trace, "_call_control", lambda: None)
        assert self.reason().startswith("CUPTI recorded nothing")
