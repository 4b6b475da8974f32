"""Sessions whose cases have recipes, as a worker would write them, without a framework."""

from builders import make_session
from guilty import FOUND, GUILTY
from rule_builders import path

from dlprof.probes.base import ArraySpec, Import, Protocol
from dlprof.probes.numpy import NumPy
from dlprof.runner.session import FindingRecord
from dlprof.worker.instruments import recipe


def recipe_of(producer=None, consumer=None, spec=None, setup=""):
    """A worker's answer about the conversion of an array."""
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


def measured_of(rule):
    """Parts of a case that shows the rule, besides the conversion."""
    shown = GUILTY[FOUND[rule].results[0]] if rule in FOUND else path("f(x)")
    return {name: getattr(shown, name) for name in shown.model_fields_set - {"case"}}


def session_of(rule, *sides, spec=None, code="numpy.array(x)", case=None, header=None, **changes):
    """A session with one finding of ``rule``, on a case that shows it.

    ``sides`` are producer and consumer; ``changes`` are parts of the result.
    """
    producer, consumer = sides or (NumPy(), NumPy())
    spec = spec or ArraySpec((64, 64), "float32")
    promise = "copy" if rule == "DLP018" else None
    made, array = recipe_of(producer, consumer, spec), case_of(producer, consumer, spec)
    shown = {**measured_of(rule), "recipe": made, **changes}
    first = path(code, case={**array, "promise": promise, **(case or {})}, **shown)
    other = path(code.replace("(x)", "(x[:])"), case=array, recipe=made)
    return make_session(first, other, findings=[finding_of(rule)], **(header or {}))


def with_case(result, **changes):
    return result.model_copy(update={"case": result.case.model_copy(update=changes)})


def finding_of(rule, **changes):
    fields = {
        "rule": rule,
        "name": FOUND[rule].name if rule in FOUND else "unknown",
        "severity": "error",
        "results": [0],
        "summary": "it is wrong",
        "against": 1,
        "subject": FOUND[rule].subject if rule in FOUND else "",
        "evidence": FOUND[rule].evidence if rule in FOUND else {},
    }
    return FindingRecord.model_validate({**fields, **changes})
