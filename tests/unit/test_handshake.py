"""The handshake: a consumer's requests to a producer, recorded by a proxy."""

import numpy
import pytest
from builders import make_subject

from dlprof.probes.base import ArraySpec, Export, Import, Protocol
from dlprof.worker.instruments import handshake
from dlprof.worker.instruments.handshake import proxy


class Old:
    """A producer of the first DLPack protocol: it knows no max_version."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, *, stream=None):
        return self.array.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def heard(source, protocol, use):
    events = []
    result = use(proxy(source, protocol, events))
    return result, events


def test_a_dlpack_consumer_asks_for_a_capsule_which_is_read_and_not_consumed():
    array = numpy.arange(6.0).reshape(2, 3)
    result, events = heard(array, Protocol.DLPACK, lambda x: numpy.from_dlpack(x, copy=False))
    (asked,) = [event for event in events if event["call"] == "__dlpack__"]
    assert asked["arguments"]["copy"] is False
    assert asked["arguments"]["max_version"].startswith("(1, ")
    assert asked["outcome"] == "returned"
    assert (asked["capsule"]["shape"], asked["capsule"]["dtype"]) == ((2, 3), "float64")
    assert asked["capsule"]["address"] == array.ctypes.data
    assert result.tolist() == array.tolist()


def test_the_events_end_with_the_outcome_of_the_import():
    events = handshake.measure(make_subject())
    assert "__dlpack__" in [event["call"] for event in events]
    assert events[-1] == {"call": "import", "outcome": "returned"}

    def refuse(thing):
        raise RuntimeError("no proxies here")

    refusing = Import("refuse", (Protocol.DLPACK,), "refuse({x})")
    assert handshake.measure(make_subject(import_=refusing, refuse=refuse)) == [
        {"call": "import", "outcome": "RuntimeError: no proxies here"}
    ]


def test_a_capsule_protocol_has_the_exports_capsule_as_its_event():
    export = Export("capsule", Protocol.DLPACK_CAPSULE, "{x}.__dlpack__()")
    import_ = Import("any", (Protocol.DLPACK_CAPSULE,), "type({x})")
    (event,) = handshake.measure(make_subject(export, import_))
    assert (event["call"], event["outcome"]) == ("export", "PyCapsule")
    assert event["capsule"]["shape"] == (4, 8)


class Frozen(Old):
    """A producer that refuses a request without a version."""

    def __dlpack__(self, *, stream=None, max_version=None):
        if max_version is None or max_version < (1, 0):
            raise BufferError("it is read-only")
        return self.array.__dlpack__(max_version=max_version)


def variants_asked(source, *args, **how):
    """Return dlprof's requests to ``source`` after a consumer that made this one."""

    def insist(thing):
        thing.__dlpack__(*args, **how)

    insisting = Import("insist", (Protocol.DLPACK,), "insist({x})")
    subject = make_subject(import_=insisting, insist=insist)
    subject.namespace["x"] = source
    events = handshake.measure_refusal(subject)
    return [event for event in events if event["call"] == "other export"]


@pytest.mark.parametrize(
    ("producer", "args", "how", "answered"),
    [
        (Frozen, (), {}, {"max_version": "(1, 3)"}),
        (Frozen, (), {"max_version": (0, 8)}, {"max_version": "(1, 3)"}),
        (Frozen, (None,), {"max_version": (1, 0)}, {"stream": None, "max_version": "(1, 0)"}),
        (Frozen, (), {"max_version": (1, 0), "copy": None}, {"max_version": "(1, 0)"}),
        (Old, (), {"stream": None, "max_version": (1, 0)}, {"stream": None}),
        (Old, (), {"stream": None, "max_version": (1, 0), "copy": None}, {}),
    ],
    ids=["no version", "old version", "position", "copy", "version", "version and copy"],
)
def test_a_refused_request_is_made_again_without_the_likely_cause(producer, args, how, answered):
    *_, last = variants_asked(producer(numpy.arange(6.0)), *args, **how)
    assert (last["arguments"], last["outcome"]) == (answered, "returned")


def test_an_error_that_is_an_answer_drops_no_argument():
    class Elsewhere(Old):
        def __dlpack__(self, **how):
            raise BufferError("a copy would have to be made")

    source = Elsewhere(numpy.arange(6.0))
    assert variants_asked(source, max_version=(1, 0), copy=False) == []


class Unasked:
    """A producer whose own method gives a versioned capsule by default."""

    def __init__(self, array):
        self.array = array

    def capsule(self):
        return self.array.__dlpack__(max_version=(1, 0))

    def __dlpack__(self):
        return self.array.__dlpack__()


def test_a_refused_versioned_capsule_is_followed_by_a_legacy_one():
    def take_legacy(given):
        if "dltensor_versioned" in repr(given):
            raise ValueError("a legacy capsule is needed")

    export = Export("own", Protocol.DLPACK_CAPSULE, "{x}.capsule()")
    import_ = Import("legacy", (Protocol.DLPACK_CAPSULE,), "take_legacy({x})")
    subject = make_subject(export, import_, take_legacy=take_legacy)
    subject.namespace["x"] = Unasked(numpy.arange(6.0))
    given, exported, imported = handshake.measure_refusal(subject)
    assert given["capsule"]["name"] == "dltensor_versioned"
    assert exported["capsule"]["name"] == "dltensor"
    assert imported["arguments"] == {"code": "take_legacy(x.__dlpack__())"}
    assert imported["outcome"] == "returned"


@pytest.mark.parametrize(("layout", "calls"), [("C", ["import"]), ("swapped", [])])
def test_an_accepted_stand_in_proves_nothing_about_an_array_with_more_than_the_protocol(
    layout, calls
):
    def refuse_arrays(thing):
        if isinstance(thing, numpy.ndarray):
            raise TypeError("no arrays")

    refusing = Import("refuse", (Protocol.DLPACK,), "refuse_arrays({x})")
    spec = ArraySpec((4, 8), "float32", layout)
    subject = make_subject(import_=refusing, spec=spec, refuse_arrays=refuse_arrays)
    assert [event["call"] for event in handshake.measure_refusal(subject)] == calls
