"""Sessions whose cases have recipes, as a worker would write them, without any framework."""

from builders import make_session
from rule_builders import end_of, ordered, path, spread, varying, verdict

from dlprof.probes.base import ArraySpec, Import, Protocol
from dlprof.probes.numpy import NumPy
from dlprof.rules import RULES
from dlprof.session.model import FindingRecord
from dlprof.worker.instruments import recipe


def recipe_of(producer=None, consumer=None, spec=None, setup=""):
    """What a worker says of the conversion of an array."""
    way = Import("way", (Protocol.DLPACK,), "f({x})", setup=setup)
    return recipe.measure(
        producer or NumPy(), consumer or NumPy(), way, spec or ArraySpec((64, 64), "float32")
    )


def case_of(producer, consumer, spec, **changes):
    return {
        "producer": producer.name,
        "consumer": consumer.name,
        "shape": spec.shape,
        "dtype": spec.dtype,
        "layout": spec.layout,
        "device": spec.device,
        "protocol": "dlpack",
        **changes,
    }


SETTING = {
    "name": "locale of the process",
    "code": "locale.setlocale(locale.LC_ALL)",
    "before": "'C'",
    "after": "'de_DE.UTF-8'",
}
BROKEN = {
    "error": ["BufferError"],
    "after": "BufferError: no",
    "plain_create": "x = [0.5]",
    "plain_code": "list(x)",
}
EVIDENCE = {
    "DLP001": {"ordering": ordered("host-sync")},
    "DLP002": {"ordering": ordered("device-sync")},
    "DLP003": {"ordering": ordered("unordered", values_right=False)},
    "DLP005": {"peak_memory": verdict("ok", arrays=2.0, size_bytes=16 << 20)},
    "DLP007": {"values": verdict("wrong", changed={"dtype": ["float64", "float32"]})},
    "DLP008": {
        "values": verdict("wrong", changed={"values": {"different": 3, "of": 9, "first_index": 0}})
    },
    "DLP009": {"values": verdict("ok", writable={"source": False, "result": True})},
    "DLP010": {"lifetime": verdict("retained", references_per_conversion=1.0)},
    "DLP011": {"lifetime": verdict("dangling", changed_after_drop=True)},
    "DLP014": {"placement": {"use": "numpy.add(x, 1)"}},
    "DLP016": {"status": "crashed", "lost": end_of("killed by SIGABRT during first call")},
    "DLP017": {"ownership": varying(("copy", 16), ("view", 64))},
    "DLP019": {"host_time": spread(1e3), "ready_time": spread(1e6)},
    "DLP026": {"status": "unsupported", "refusal": verdict("broken", **BROKEN)},
    "DLP025": {"settings": verdict("changed", changed=[SETTING])},
    "DLP020": {"early_write": verdict("unsafe", sizes_bytes={"4096": "torn"})},
}
FOUND = {
    "DLP007": {"before": "float64", "after": "float32"},
    "DLP025": {"setting": SETTING["name"]},
    "DLP024": {"prescribed": "BufferError or ValueError"},
}


def session_of(rule, *sides, spec=None, code="numpy.array(x)", case=None, header=None, **changes):
    """A session with one finding of ``rule``, of a case that shows it.

    ``sides`` are producer and consumer, and ``changes`` parts of the result.
    """
    producer, consumer = sides or (NumPy(), NumPy())
    spec = spec or ArraySpec((64, 64), "float32")
    promise = "copy" if rule == "DLP018" else None
    made, array = recipe_of(producer, consumer, spec), case_of(producer, consumer, spec)
    shown = {**EVIDENCE.get(rule, {}), "recipe": made, **changes}
    first = path(code, case={**array, "promise": promise, **(case or {})}, **shown)
    other = path(code.replace("(x)", "(x[:])"), case=array, recipe=made)
    return make_session(first, other, findings=[finding_of(rule)], **(header or {}))


def with_case(result, **changes):
    return result.model_copy(update={"case": result.case.model_copy(update=changes)})


def finding_of(rule, **changes):
    name = next((known.name for known in RULES if known.id == rule), "unknown")
    fields = {
        "rule": rule,
        "name": name,
        "severity": "error",
        "results": [0],
        "summary": "it is wrong",
        "against": 1,
        "evidence": FOUND.get(rule, {}),
    }
    return FindingRecord.model_validate({**fields, **changes})
