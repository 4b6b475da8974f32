"""Small, valid instances of the data model, for tests that vary one thing at a time."""

import sys

from dlprof.probes.base import ArraySpec
from dlprof.probes.numpy import NumPy
from dlprof.runner.catalog import Catalog, ProbeInfo, Way
from dlprof.runner.pairing import Case, Path
from dlprof.runner.session import Header, Result, Session, TimeMeasure
from dlprof.worker.subject import LoadedPath, Subject, run_setups

ANY_DEVICE = ("cpu", "cuda")
MACHINE = {"machine_id": "0123456789ab", "boot_id": "ba9876543210"}
"""Identifies the machine that a session was measured on."""


def make_way(
    name="dlpack", protocols=("dlpack",), code="{x}", devices=ANY_DEVICE, **changes
) -> Way:
    return Way(name, tuple(protocols), code, tuple(devices), **{"promise": None, **changes})


def make_probe_info(name="numpy", exports=None, imports=None, **changes) -> ProbeInfo:
    fields = {
        "source": "builtin",
        "aliases": (),
        "module": name,
        "found": True,
        "version": "1.0",
        "distribution": name,
        "requirement": name,
        "variables": {},
        "devices": ("cpu",),
        "exports": (make_way(),) if exports is None else tuple(exports),
        "imports": (make_way("from_dlpack", code=f"{name}.from_dlpack({{x}})"),)
        if imports is None
        else tuple(imports),
    }
    return ProbeInfo(name=name, **(fields | changes))


def make_catalog(*probes, python=sys.executable, no_cuda="no driver", faults=None) -> Catalog:
    known = {"python": "3.11.7", "executable": python, "no_cuda": no_cuda, **MACHINE}
    return Catalog(python, known, tuple(probes), faults or {})


def make_case(
    producer="torch", consumer="numpy", name="from_dlpack", shape=(4, 4), **changes
) -> Case:
    export = make_way()
    import_ = make_way(name, code=f"{consumer}.{name}({{x}})")
    fields = {"dtype": "float32", "layout": "C", "device": "cpu"} | changes
    return Case(
        producer=make_probe_info(producer),
        consumer=make_probe_info(consumer),
        path=Path(export, import_, "dlpack", f"{consumer}.{name}(x)"),
        shape=shape,
        **fields,
    )


def make_record(**changes) -> dict:
    """A case as a session stores it."""
    return {**make_case().record(), **changes}


def make_answer(status="ok", reason=None, host_ns=100.0, **changes) -> dict:
    """A worker's answer to a case; if it is ok, ``parts`` are added to the host time."""
    parts = {"host_time": make_timing(host_ns)} if status == "ok" else {}
    parts |= changes.pop("parts", {})
    return {
        "status": status,
        "reason": reason,
        "parts": parts,
        "failures": [],
        "output": None,
        **changes,
    }


def make_timing(median_ns=100.0, page_faults=0.0) -> dict:
    """The samples of a process, spread around a median."""
    samples = [median_ns * share for share in (0.998, 0.999, 1.0, 1.001, 1.002)]
    return {"loops": 10, "samples_ns": samples, "page_faults_per_call": page_faults}


def make_measure(median_ns=1000.0, ci95_ns=(900.0, 1100.0), **changes) -> TimeMeasure:
    fields = {"median_ns": median_ns, "ci95_ns": ci95_ns, "min_ns": median_ns} | changes
    return TimeMeasure.model_validate(fields)


def make_result(
    code=None, median_ns=1000.0, ci95_ns=(900.0, 1100.0), case=None, **changes
) -> Result:
    """A case that was measured in full; pass ``median_ns=None`` for a case without times."""
    record = make_record(**(case or {}))
    if code is not None:
        record["code"] = code
    ready = None if median_ns is None else make_measure(median_ns, ci95_ns)
    fields = {
        "case": record,
        "status": "ok",
        "host_time": ready,
        "ready_time": ready,
        "ownership": {"verdict": "view", "evidence": {}},
        "values": {"verdict": "ok", "evidence": {"changed": {}}},
        "lifetime": {"verdict": "safe", "evidence": {}},
        "early_write": {"verdict": "safe", "evidence": {}},
        "rounds": [0, 1, 2],
    }
    return Result.model_validate(fields | changes)


def make_header(**changes) -> Header:
    fields = {
        "created": "2026-01-01T00:00:00+00:00",
        "command": ["run", "torch", "numpy"],
        "request": {"pairs": [["torch", "numpy"]], "axes": {"shapes": [[4, 4]]}},
        "environment": {"python": "3.11.7", "packages": {"torch": "2.9.0", "numpy": "2.4.0"}},
        "rounds": 3,
    } | changes
    environment = {**MACHINE, **fields["environment"]}
    return Header.model_validate({**fields, "environment": environment})


def make_session(*results, **changes) -> Session:
    header = make_header(**changes)
    return Session.model_validate({**header.model_dump(by_alias=True), "results": list(results)})


def make_subject(
    export=None, import_=None, producer=None, consumer=None, spec=None, **names
) -> Subject:
    """A subject on real NumPy arrays; ``export`` and ``import_`` default to NumPy's DLPack ones.

    ``names`` are the names that the code may use besides those of the frameworks.
    """
    producer = producer or NumPy()
    consumer = consumer or NumPy()
    export = export or producer.exports[0]
    import_ = import_ or consumer.imports[0]
    namespace = {**run_setups(producer, consumer, import_), **names}
    spec = spec or ArraySpec((4, 8), "float32")
    return LoadedPath(producer, consumer, export, import_, namespace).subject(spec)


class Immutable(NumPy):
    """NumPy whose arrays claim to be read-only."""

    def write(self, array, value):
        return NotImplemented


class Silent:
    """Ignores all progress reports of an instrument."""

    def stage(self, name):
        pass

    def part(self, name, value):
        pass


class Clock:
    """A clock that stands still until it is advanced; a reading costs ``read_ns``."""

    def __init__(self, read_ns=0):
        self.now_ns = 1_000
        self.read_ns = read_ns

    def perf_counter_ns(self):
        self.now_ns += self.read_ns
        return self.now_ns

    def advance(self, ns):
        self.now_ns += ns
