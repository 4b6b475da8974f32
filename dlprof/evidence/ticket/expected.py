"""What should be instead, and who says so: a specification, a framework's documentation, a page."""

from __future__ import annotations

from dlprof.analysis import changed
from dlprof.analysis.known import Known, mapping
from dlprof.session.model import FindingRecord, Result

ARRAY_API = "https://data-apis.org/array-api/latest/API_specification/generated/array_api"
DLPACK = "https://dmlc.github.io/dlpack/latest/python_spec.html"
DLPACK_C = "https://dmlc.github.io/dlpack/latest/c_api.html"

FROM_DLPACK = f"[array API standard, from_dlpack]({ARRAY_API}.from_dlpack.html)"
EXPORT = f"[array API standard, \\_\\_dlpack\\_\\_]({ARRAY_API}.array.__dlpack__.html)"
SEMANTICS = f"[Python specification for DLPack, semantics]({DLPACK})"
IMPLEMENTATION = f"[Python specification for DLPack, implementation]({DLPACK})"

ZERO_COPY = f"Exchange through DLPack must be zero-copy where that is possible ({SEMANTICS})."
ORDERED = (
    "The producer makes its work safe to use on the consumer's stream, without a wait of the host"
    f" where it can order streams ({EXPORT}, `stream`)."
)
SAME = f"The result has the data of the source: shape, dtype and values ({FROM_DLPACK})."
UNTOUCHED = (
    "A conversion reads its source and makes a result. Source and earlier results stay as they are,"
    " and each result has the values that its source has at the time of the call: “Both `x` and"
    f" `y` may continue to be used just like arrays created in other ways” ({SEMANTICS})."
)

NO_NORM = "No specification promises a view of arrays that are handed over in this way."
SPEC = "https://nvidia.github.io/numba-cuda/user/cuda_array_interface.html"
ARRAY_INTERFACE = "https://numpy.org/doc/stable/reference/arrays.interface.html"
BUFFER = "https://docs.python.org/3/c-api/buffer.html"
KEPT_ALIVE = {
    "cuda-array-interface": "The result keeps its source alive, or its documentation says that it"
    " does not. The specification leaves it to the user: “The User code must preserve the lifetime"
    f" of the object owning the data” ([CUDA Array Interface, lifetime management]({SPEC})).",
    "array-interface": "“A reference to the object exposing the array interface must be stored by"
    " the new object if the memory area is to be secured”"
    f" ([array interface protocol]({ARRAY_INTERFACE})).",
    "buffer": "The result holds the buffer of its source, which keeps the memory alive until it is"
    f" released ([buffer protocol]({BUFFER})).",
}
"""By protocol: who keeps the memory of a view alive, where that is not DLPack's deleter."""
BY_DLPACK = ("dlpack", "dlpack-capsule")

EXPECTED = {
    "DLP001": "The call returns without waiting for the work, and orders it instead. " + ORDERED,
    "DLP002": "The call waits for the work on its source at most. " + ORDERED,
    "DLP003": "Whoever uses the result sees its values. " + ORDERED,
    "DLP004": "The result is a view, which shows later writes to its source: another way between"
    f" the same frameworks gives one. {ZERO_COPY}",
    "DLP005": "A copy needs the memory of one array at its peak, a view none.",
    "DLP006": f"Source and result are on the device, and the data stay there. {ZERO_COPY}",
    "DLP007": SAME,
    "DLP008": SAME,
    "DLP009": "The result of a read-only array cannot be written, or is a copy. DLPack 1.0 carries"
    f" the flag `DLPACK_FLAG_BITMASK_READ_ONLY` for it ([C API]({DLPACK_C})).",
    "DLP010": "Nothing stays behind when the result is dropped: the consumer calls the producer's"
    f" deleter when it no longer needs the data ({IMPLEMENTATION}).",
    "DLP011": "The result keeps its memory alive: the producer's deleter is called when the"
    f" consumer no longer needs the data, and not before ({IMPLEMENTATION}).",
    "DLP012": "The same result costs about the same by either expression.",
    "DLP013": "Both directions hand over the same memory, so that neither costs many times the"
    f" other. {ZERO_COPY}",
    "DLP014": "The conversion costs little beside the work of the loop.",
    "DLP015": "The first request is answered. `max_version`, `dl_device` and `copy` are keywords of"
    f" `__dlpack__` since version 2023.12 ({EXPORT}).",
    "DLP016": "The call returns or raises an error; a consumer that cannot take an array raises"
    f" `BufferError` ({FROM_DLPACK}).",
    "DLP017": "The result is a view of this array too, or the call says that it copies."
    f" {ZERO_COPY}",
    "DLP019": "This is allowed where the framework queues its work. What is expected is that"
    " nobody reads the call's time as the cost of the conversion.",
    "DLP020": "The result is a view, which shows every write to the source, or a copy, which shows"
    " none. “Both `x` and `y` may continue to be used just like arrays created in other ways”"
    f" ({SEMANTICS}); `copy=None` means to “reuse the existing memory buffer if possible and copy"
    f" otherwise” ({FROM_DLPACK}). Neither says in words when a copy must be whole. A call that"
    " returns before it is must say that the source may not be written until then, and how to wait"
    " for it.",
}

SAID_OF_TIME = {
    "jax": "JAX says of `device_put`: “This function is always asynchronous, i.e. returns"
    " immediately without blocking the calling Python thread until any transfers are completed”"
    " (https://docs.jax.dev/en/latest/_autosummary/jax.device_put.html). It does not say that the"
    " source must not be written meanwhile.",
}
"""By consumer: what its documentation says of when a copy is whole."""

UNAVOIDABLE = (
    "Perhaps nothing else: no measured path between the two that is safe and gives the same avoids"
    " the wait, and values in host memory cannot be had before they are computed. It is worth"
    f" knowing because the call looks cheap when it is timed alone. On a device: {ORDERED}"
)

COPY = {
    "copy": f"The result shares no memory with its source: with `copy=True` the function must"
    f" always copy ({FROM_DLPACK}).",
    "view": "The function must not copy, and must raise an error if it would have to:"
    f" `BufferError` ({FROM_DLPACK}) or `ValueError`"
    f" ([array API standard, asarray]({ARRAY_API}.asarray.html)).",
}
DOCUMENTED = "The framework's documentation says that this call {does}; `dlprof paths` shows it."
DOES = {"copy": "copies", "view": "does not copy"}

JAX = "https://docs.jax.dev/en/latest/_autosummary/"
QUOTED = {
    ("jax", "from_dlpack_copy"): (
        "If copy=True then a copy is always performed",
        f"{JAX}jax.dlpack.from_dlpack.html",
    ),
    ("jax", "device_put_copy"): ("If False, `x` will be copied.", f"{JAX}jax.device_put.html"),
    ("jax", "asarray_nocopy"): (
        "If False, then error if a copy is necessary.",
        f"{JAX}jax.numpy.asarray.html",
    ),
    ("torch", "asarray_copy"): (
        "If [...] a copy is requested then it will not share its memory with `obj`.",
        "https://docs.pytorch.org/docs/stable/generated/torch.asarray.html",
    ),
}
"""What a framework's documentation says of one of its ways in, and where."""


def expected(finding: FindingRecord, result: Result) -> str:
    """Markdown: what should be, with its source."""
    if finding.rule == "DLP018":
        return _documented(result)
    found = EXPECTED.get(finding.rule, "See the rule's page.")
    if finding.rule == "DLP001" and finding.severity == "info":
        found = UNAVOIDABLE
    if finding.rule == "DLP008" and changed.first(Known(0, result).changed):
        found = UNTOUCHED
    if result.case.protocol not in BY_DLPACK:
        found = _without_dlpack(finding.rule, result.case.protocol, found)
    said = SAID_OF_TIME.get(result.case.consumer) if finding.rule == "DLP020" else None
    return f"{found} {said}" if said else found


WITHOUT_DLPACK = {
    "DLP001": "The call returns without waiting for the work, and orders it instead.",
    "DLP002": "The call waits for the work on its source at most.",
    "DLP003": "Whoever uses the result sees its values.",
    "DLP007": "The result has the dtype of the source.",
    "DLP008": "The result has the shape and the values of the source.",
    "DLP009": "The result of a read-only array cannot be written, or is a copy.",
    "DLP010": "Nothing stays behind when the result is dropped.",
    "DLP016": "The call returns or raises an error.",
    "DLP020": "The result is a view, which shows every write to the source, or a copy, which shows"
    " none. A call that returns before it is must say that the source may not be written until"
    " then, and how to wait for it.",
}
"""What is expected of arrays that are handed over otherwise: what DLPack promises is none."""
UNTOUCHED_ALONE = (
    "A conversion reads its source and makes a result. Source and earlier results stay as they are,"
    " and each result has the values that its source has at the time of the call."
)


def _without_dlpack(rule: str, protocol: str, text: str) -> str:
    if rule == "DLP011":
        return KEPT_ALIVE.get(protocol, "The memory lives as long as the result.")
    if text == UNAVOIDABLE:
        return UNAVOIDABLE.partition(" On a device:")[0]
    if text == UNTOUCHED:
        return UNTOUCHED_ALONE
    norm = NO_NORM if rule in ("DLP004", "DLP017") else ""
    found = WITHOUT_DLPACK.get(rule) or text.replace(ZERO_COPY, "").strip()
    return " ".join(filter(None, (found, norm)))


def _documented(result: Result) -> str:
    case = result.case
    promise = case.promise if case.promise in COPY else "copy"
    quoted = QUOTED.get((case.consumer, case.import_))
    if quoted is not None:
        return f"The documentation of this function: “{quoted[0]}” ({quoted[1]})"
    general = COPY[promise] if "copy=" in case.code else ""
    return " ".join(filter(None, (DOCUMENTED.format(does=DOES[promise]), general)))


def retold(evidence: object) -> dict[str, object]:
    """The evidence of a finding that is fit to be shown: numbers, words and truth values."""
    return {
        str(name): value
        for name, value in mapping(evidence).items()
        if isinstance(value, str | int | float) and name not in ("create", "code")
    }
