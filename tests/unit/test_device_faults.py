"""Each planted way on the simulated device: what it waits for, what it orders, what it breaks."""

from __future__ import annotations

import pytest
from planted_on_device import PLANTED, PROBES, case_of, put_in_place

from dlprof.rules import RULES
from dlprof.selftest import device as frameworks
from dlprof.selftest.faults import DEVICE_PLANTS as PLANTS
from dlprof.selftest.faults import NOT_ON_DEVICE
from dlprof.worker.contract import check_probe
from dlprof.worker.instruments import early_write, handshake, lifetime, ordering, ownership, values
from dlprof.worker.load import default_sides, load_of

pytestmark = pytest.mark.unit


ORDER = {
    "view": "stream-ordered",
    "queued-copy": "stream-ordered",
    "default-stream": "stream-ordered",
    "private-stream": "stream-ordered",
    "strided-view": "stream-ordered",
    "copy-if-strided": "stream-ordered",
    "slow": "stream-ordered",
    "retry": "stream-ordered",
    "leak": "stream-ordered",
    "dangle": "stream-ordered",
    "early": "stream-ordered",
    "sync": "host-sync",
    "bounce": "host-sync",
    "narrow": "host-sync",
    "device-sync": "device-sync",
    "race": "unordered",
    "legacy-race": "unordered",
    "race-and-wait": "unordered",
    "late": "unordered",
}
OWNER = {
    "view": "view",
    "strided-view": "view",
    "dangle": "view",
    "lose-read-only": "view",
    "retry": "view",
    "broken-promise": "view",
    "queued-copy": "copy",
    "bounce": "copy",
    "narrow": "copy",
    "early": "copy",
    "late": "copy",
    "copy-if-strided": "copy",
}
CHANGED = {
    "view": set(),
    "queued-copy": set(),
    "strided-view": set(),
    "bounce": set(),
    "early": set(),
    "late": set(),
    "retry": set(),
    "copy-if-strided": set(),
    "narrow": {"dtype", "values"},
    "wrong-strides": {"values"},
}


@pytest.fixture
def device(monkeypatch):
    return put_in_place(monkeypatch)


@pytest.mark.parametrize("name", ORDER)
def test_the_instrument_tells_what_each_way_orders(device, name):
    found = ordering.measure(case_of(PLANTED[name]), device)
    assert found["verdict"] == ORDER[name], found["evidence"].get("reason")


@pytest.mark.parametrize("name", ["race", "legacy-race"])
def test_on_default_streams_a_race_is_innocent(device, name):
    case = case_of(PLANTED[name])
    load = load_of(case, case.producer.enqueue(case.spec), device, default_sides(case))
    assert ordering.measure_load(load)["verdict"] == "stream-ordered"


@pytest.mark.parametrize("name", OWNER)
def test_the_instrument_tells_a_view_from_a_copy(device, name):
    assert ownership.measure(case_of(PLANTED[name]), device)["verdict"] == OWNER[name]


@pytest.mark.parametrize("name", CHANGED)
def test_the_instrument_tells_what_did_not_survive(device, name):
    found = values.measure(case_of(PLANTED[name]))
    assert set(found["evidence"]["changed"]) == CHANGED[name]


def test_a_read_only_array_can_be_written_where_the_flag_is_lost(device):
    lost = values.measure(case_of(PLANTED["lose-read-only"]))["evidence"]["writable"]
    kept = values.measure(case_of(PLANTED["read-only-view"]))["evidence"]["writable"]
    assert (lost, kept) == (
        {"source": False, "result": True},
        {"source": False, "result": False},
    )


@pytest.mark.parametrize(("name", "verdict"), [("view", "safe"), ("dangle", "dangling")])
def test_the_instrument_tells_whether_the_memory_is_kept(device, name, verdict):
    assert lifetime.measure(case_of(PLANTED[name]), device)["verdict"] == verdict


def test_a_leak_is_seen_as_device_memory_of_the_arrays_size(device):
    found = lifetime.measure(case_of(PLANTED["leak"]), device)
    assert found["verdict"] == "retained"
    assert found["evidence"]["bytes_per_conversion"] == lifetime.SIZE_BYTES


@pytest.mark.parametrize(
    ("name", "verdict"), [("queued-copy", "safe"), ("early", "safe"), ("late", "unsafe")]
)
def test_the_instrument_tells_whether_the_source_may_be_written(device, name, verdict):
    assert early_write.measure(case_of(PLANTED[name]), [4 << 10])["verdict"] == verdict


def test_a_retry_is_refused_first_and_then_answered(device):
    first, second, whole = handshake.measure(case_of(PLANTED["retry"]))
    assert first["outcome"].startswith("TypeError")
    assert (second["outcome"], whole["outcome"]) == ("returned", "returned")
    assert second["capsule"]["device"] == "cuda:0"


def test_every_rule_is_planted_on_a_device_or_it_is_said_why_not():
    planted = {plant.rule for plant in PLANTS if plant.rule}
    assert planted | set(NOT_ON_DEVICE) == {rule.id for rule in RULES}
    assert not planted & set(NOT_ON_DEVICE)


def test_every_plant_has_a_probe_that_keeps_to_the_contract_and_ways_that_exist():
    for plant in PLANTS:
        check_probe(type(PROBES[plant.consumer]))
        assert plant.producer in PROBES
        assert tuple(way.name for way in PROBES[plant.consumer].imports) == plant.ways
        assert all(callable(getattr(frameworks, way)) for way in plant.ways)
