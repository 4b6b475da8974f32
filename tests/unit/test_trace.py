"""Trace: what CUPTI's records say of a window, and every way in which there are none."""

from __future__ import annotations

import sys

import pytest
from builders import make_subject
from fake_cupti import FakeCupti, cuptiError
from simulated_device import pair

from dlprof.worker.instruments import trace
from dlprof.worker.instruments.trace import CONTROL, Record, Recorder, Window, evidence

pytestmark = pytest.mark.unit

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


def recorded(cupti, *happens):
    with Recorder() as recorder:
        for method, *arguments in happens:
            getattr(cupti, method)(*arguments)
    return [record for record in recorder.records if record.name != CONTROL]


class TestRecords:
    @pytest.mark.parametrize(
        ("real", "shown"),
        [
            ("cudaMemcpyAsync_v3020", "cudaMemcpyAsync"),
            ("cuMemcpyDtoHAsync_v2", "cuMemcpyDtoHAsync"),
            ("cudaMemcpyAsync_ptsz_v7000", "cudaMemcpyAsync"),
            ("cuMemcpyDtoHAsync_v2_ptsz", "cuMemcpyDtoHAsync"),
            ("cuStreamSynchronize", "cuStreamSynchronize"),
        ],
    )
    def test_a_call_has_its_plain_name(self, cupti, real, shown):
        (call,) = recorded(cupti, ("call", real, 10, 30, 7))
        assert call == Record("call", 7, 10, 30, shown, None, 1)

    @pytest.mark.parametrize(
        ("kind", "direction"),
        [
            ("HTOD", "host to device"),
            ("DTOH", "device to host"),
            ("DTOD", "device to device"),
            ("HTOH", "host to host"),
            ("HTOA", "host to device"),
            ("ATOH", "device to host"),
            ("UNKNOWN", "unknown"),
        ],
    )
    def test_a_copy_has_its_bytes_and_its_direction(self, cupti, kind, direction):
        (copy,) = recorded(cupti, ("copy", kind, 64, 10, 30, 7))
        assert copy == Record("copy", 7, 10, 30, direction, 64)

    @pytest.mark.parametrize(
        "kind", ["EVENT_SYNCHRONIZE", "STREAM_SYNCHRONIZE", "CONTEXT_SYNCHRONIZE"]
    )
    def test_a_synchronisation_of_the_host_is_a_wait(self, cupti, kind):
        assert [one.what for one in recorded(cupti, ("wait", kind, 10, 30, 7))] == ["wait"]

    @pytest.mark.parametrize("kind", ["STREAM_WAIT_EVENT", "UNKNOWN"])
    def test_a_synchronisation_of_streams_is_not(self, cupti, kind):
        assert recorded(cupti, ("wait", kind, 10, 30, 7)) == []

    def test_cupti_is_left_as_it_was_found(self, cupti):
        recorded(cupti)
        assert not cupti.enabled
        assert not cupti.subscribed


def call(name, start, end, correlation, thread=1):
    return Record("call", correlation, start, end, name, None, thread)


def events(*records, loaded=True):
    return evidence(records, WINDOW, loaded=loaded)["events"]


class TestWindow:
    @pytest.mark.parametrize(("start", "inside"), [(999, 0), (1_000, 1), (2_000, 1), (2_001, 0)])
    def test_calls_that_begin_in_the_window_are_in_it(self, start, inside):
        assert len(events(call("cudaMalloc", start, start + 10, 1))) == inside

    def test_a_copy_that_runs_after_the_window_belongs_to_the_call_in_it(self):
        (event,) = events(
            call("cudaMemcpyAsync", 1_100, 1_150, 1), Record("copy", 1, 9_000, 9_400, "x", 64)
        )
        assert (event["bytes"], event["direction"], event["device_ns"]) == (64, "x", 400)

    def test_several_copies_of_one_call_are_added_up(self):
        found = evidence(
            [
                call("cudaMemcpy", 1_100, 1_150, 1),
                Record("copy", 1, 1_110, 1_120, "x", 64),
                Record("copy", 1, 1_120, 1_140, "x", 6),
            ],
            WINDOW,
            loaded=True,
        )
        assert found["copied_bytes"] == 70
        assert found["events"][0]["device_ns"] == 30

    def test_a_kernel_is_named_beside_its_launch(self):
        (event,) = events(
            call("cudaLaunchKernel", 1_100, 1_150, 1), Record("kernel", 1, 1_200, 1_290, "copy")
        )
        assert (event["kernel"], event["device_ns"]) == ("copy", 90)

    def test_calls_that_the_runtime_makes_of_the_driver_are_its_own(self):
        (event,) = events(
            call("cudaMemcpy", 1_100, 1_200, 1),
            call("cuMemcpyHtoD", 1_110, 1_190, 2),
            Record("copy", 2, 1_120, 1_130, "host to device", 64),
        )
        assert (event["name"], event["bytes"]) == ("cudaMemcpy", 64)

    def test_a_recorded_wait_is_a_wait_however_short(self):
        (event,) = events(
            call("cudaStreamSynchronize", 1_100, 1_150, 1), Record("wait", 1, 1_110, 1_140)
        )
        assert event["waited"] is True

    def test_a_call_as_long_as_the_queue_waited_whatever_its_name(self):
        found = evidence([call("cudaFree", 1_100, 1_100 + 19 * MS, 1)], WINDOW, loaded=True)
        assert found["waited"] == ["cudaFree"]

    def test_a_call_behind_no_queue_is_not_said_not_to_wait(self):
        found = events(call("cudaFree", 1_100, 1_100 + 19 * MS, 1), loaded=False)
        assert found[0]["waited"] is None

    def test_the_list_is_cut_where_it_would_fill_the_session(self):
        many = [call("cudaFree", 1_100 + i, 1_100 + i, i) for i in range(trace.MOST_EVENTS + 5)]
        found = evidence(many, WINDOW, loaded=True)
        assert (len(found["events"]), found["events_left_out"]) == (trace.MOST_EVENTS, 5)


class TestConversions:
    """On the simulated device, whose conversions are recorded as one call each."""

    def measured(self, cupti, producer=None, **behaviour):
        case, device = pair(producer=producer, **behaviour)
        cupti.get_timestamp = device.host_ns
        plain, calls = case.consumer.from_dlpack, []

        def watched(source):
            began = device.now_ns
            result = plain(source)
            calls.append(None)
            cupti.call("cudaConvert_v3020", began, device.now_ns, len(calls))
            if behaviour.get("copies"):
                cupti.copy("DTOD", 64, device.now_ns, device.now_ns + 16, len(calls))
            return result

        case.consumer.from_dlpack = watched
        return trace.measure(case, device)

    def test_a_conversion_that_waits_is_named(self, cupti):
        found = self.measured(cupti, order="host")
        assert found["verdict"] == "traced"
        assert found["evidence"]["waited"] == ["cudaConvert"]

    @pytest.mark.parametrize("order", ["event", "nothing"])
    def test_one_that_does_not_wait_is_not(self, cupti, order):
        found = self.measured(cupti, order=order)["evidence"]
        assert found["waited"] == []
        assert [event["waited"] for event in found["events"]] == [False]

    def test_of_several_windows_the_shortest_counts(self, cupti):
        case, device = pair(order="nothing")
        cupti.get_timestamp = device.host_ns
        plain, delays = case.consumer.from_dlpack, iter([0, 0, 0, 90 * MS, 0, 90 * MS])

        def delayed(source):
            device.spend(next(delays))
            return plain(source)

        case.consumer.from_dlpack = delayed
        assert trace.measure(case, device)["evidence"]["window_ns"] < MS


class TestNoTrace:
    """Each with its reason, and never a list of no calls."""

    def reason(self):
        found = trace.measure(*pair())
        assert found["verdict"] == "no trace"
        assert set(found["evidence"]) == {"reason"}
        return found["evidence"]["reason"]

    def test_without_the_package(self, cupti, monkeypatch):
        monkeypatch.setitem(sys.modules, "cupti", None)
        monkeypatch.delitem(sys.modules, "cupti.cupti")
        assert self.reason() == "cupti-python is not installed: pip install cupti-python"

    def test_without_a_driver(self, cupti, monkeypatch):
        monkeypatch.setattr(trace, "driver_devices", lambda: "there is no CUDA driver")
        assert self.reason() == "there is no CUDA driver"

    def test_where_another_profiler_has_the_slot(self, cupti):
        words = "ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)"
        cupti.refuses["subscribe"] = cuptiError(words)
        assert self.reason() == "another profiler has CUPTI's only subscriber slot"

    @pytest.mark.parametrize(
        "function", ["activity_enable", "activity_register_callbacks", "get_timestamp"]
    )
    @pytest.mark.parametrize(
        "error",
        [
            cuptiError("ERROR_NOT_COMPATIBLE (14)"),
            cuptiError("ERROR_INSUFFICIENT_PRIVILEGES (35)"),
            RuntimeError("CUDA driver is not found"),
        ],
    )
    def test_where_cupti_refuses(self, cupti, function, error):
        cupti.refuses[function] = error
        assert self.reason() == f"CUPTI says no: {type(error).__name__}: {error}"
        assert not cupti.enabled

    @pytest.mark.parametrize("name", ["activity_enable", "subscribe", "get_timestamp"])
    def test_where_the_version_lacks_a_function(self, cupti, name):
        cupti.refuses[name] = AttributeError(f"no attribute '{name}'")
        assert self.reason().startswith("this version of cupti-python lacks something")

    def test_where_records_have_other_fields(self, cupti, monkeypatch):
        def nameless(domain, cbid):
            raise KeyError(cbid)

        monkeypatch.setattr(cupti, "get_callback_name", nameless)
        assert self.reason().startswith("a record could not be read: KeyError")

    def test_where_records_were_dropped(self, cupti):
        cupti.dropped = 3
        assert self.reason() == "CUPTI dropped 3 records"

    def test_where_not_even_a_known_call_was_recorded(self, cupti, monkeypatch):
        monkeypatch.setattr(trace, "_call_control", lambda: None)
        assert self.reason().startswith("CUPTI recorded nothing")

    def test_where_no_device_is_involved(self, cupti):
        found = trace.measure(make_subject())
        assert found["verdict"] == "no trace"
        assert "nothing to do with a CUDA device" in found["evidence"]["reason"]
