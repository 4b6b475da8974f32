"""What is expected instead of a finding, and which document says so."""

from __future__ import annotations

from dlprof.analysis import changed
from dlprof.analysis.case_view import CaseView
from dlprof.session.model import FindingRecord, Result

ARRAY_API = "https://data-apis.org/array-api/latest/API_specification/generated/array_api"
DLPACK = "https://dmlc.github.io/dlpack/latest/python_spec.html"
C_API = "https://dmlc.github.io/dlpack/latest/c_api.html"
FROM_DLPACK = f"[array API standard, from_dlpack]({ARRAY_API}.from_dlpack.html)"
EXPORT = f"[array API standard, \\_\\_dlpack\\_\\_]({ARRAY_API}.array.__dlpack__.html)"

ZERO_COPY = f"DLPack exchange is zero-copy where possible ([DLPack, semantics]({DLPACK}))."
ORDERED = (
    "The producer makes its work safe to use on the consumer's stream, without a wait on the host"
    f" if it can order streams ({EXPORT}, `stream`)."
)
SAME_DATA = f"The result of from_dlpack holds the data of its source ({FROM_DLPACK})."
LIKE_OTHERS = (
    "“Both `x` and `y` may continue to be used just like arrays created in other ways”"
    f" ([DLPack, semantics]({DLPACK}))."
)
DELETER = (
    "The consumer calls the producer's deleter when it no longer needs the data, and not before"
    f" ([DLPack, implementation]({DLPACK}))."
)

EXPECTED = {
    "DLP001": ("The call returns without waiting for the work on `x`.", ORDERED),
    "DLP002": ("The call waits at most for the work on `x`.", ORDERED),
    "DLP003": ("The result has its final values whenever it is used.", ORDERED),
    "DLP004": (
        "The result is a view: another path between these frameworks gives one.",
        ZERO_COPY,
    ),
    "DLP005": ("At its peak, a copy needs the memory of one array, and a view none.", ""),
    "DLP006": ("The data stay on the device.", ZERO_COPY),
    "DLP007": ("The result has the dtype of its source.", SAME_DATA),
    "DLP008": ("The result has the shape and the values of its source.", SAME_DATA),
    "DLP009": (
        "The result of a read-only array is read-only or a copy.",
        f"DLPack 1.0 has the flag `DLPACK_FLAG_BITMASK_READ_ONLY` ([DLPack, C API]({C_API})).",
    ),
    "DLP010": ("Nothing stays behind when the result is dropped.", DELETER),
    "DLP011": ("The result keeps its memory alive.", DELETER),
    "DLP012": ("Both expressions give the same result, and cost about the same.", ""),
    "DLP013": ("Both directions hand over the same memory at a similar cost.", ZERO_COPY),
    "DLP014": ("The conversion costs little compared with the work in the loop.", ""),
    "DLP015": (
        "The first request is answered.",
        f"`__dlpack__` has the keywords `max_version`, `dl_device` and `copy` ({EXPORT}, 2023.12).",
    ),
    "DLP016": (
        "The call returns or raises an error.",
        f"A consumer that cannot take an array raises `BufferError` ({FROM_DLPACK}).",
    ),
    "DLP017": (
        "The result is a view of this array too, or the call says that it copies.",
        ZERO_COPY,
    ),
    "DLP019": (
        "A framework that queues its work may return early. The time of the call is not its cost.",
        "",
    ),
    "DLP020": (
        "The result is a view, which shows every write to `x`, or a copy, which shows none.",
        f"{LIKE_OTHERS} The specification does not say when a copy must be complete.",
    ),
}
"""By rule: what is expected, and what says so of arrays that DLPack hands over."""
UNTOUCHED = (
    "A conversion changes neither `x` nor earlier results, and its result has the values of `x`.",
    LIKE_OTHERS,
)
UNAVOIDABLE = (
    "The wait may be unavoidable. But the call looks cheap if it is timed with an empty queue.",
    "",
)
KEPT_ALIVE = {
    "cuda-array-interface": "The specification leaves it to the user: “The User code must preserve"
    " the lifetime of the object owning the data” ([CUDA Array Interface, lifetime management]"
    "(https://nvidia.github.io/numba-cuda/user/cuda_array_interface.html)).",
    "array-interface": "“A reference to the object exposing the array interface must be stored by"
    " the new object if the memory area is to be secured” ([array interface protocol]"
    "(https://numpy.org/doc/stable/reference/arrays.interface.html)).",
    "buffer": "The result holds the buffer of its source until the buffer is released"
    " ([buffer protocol](https://docs.python.org/3/c-api/buffer.html)).",
}
"""By protocol: what keeps the memory of a view alive, where that is not DLPack's deleter."""

JAX = "https://docs.jax.dev/en/latest/_autosummary"
ASYNCHRONOUS = {
    "jax": "JAX says about `device_put`: “This function is always asynchronous, i.e. returns"
    " immediately without blocking the calling Python thread until any transfers are completed”"
    f" ([documentation]({JAX}/jax.device_put.html)). It does not forbid writes to the source.",
}
"""By consumer: what its documentation says about when a copy is complete."""
QUOTED = {
    ("jax", "from_dlpack_copy"): (
        "If copy=True then a copy is always performed",
        f"{JAX}/jax.dlpack.from_dlpack.html",
    ),
    ("jax", "device_put_copy"): ("If False, `x` will be copied.", f"{JAX}/jax.device_put.html"),
    ("jax", "asarray_nocopy"): (
        "If False, then error if a copy is necessary.",
        f"{JAX}/jax.numpy.asarray.html",
    ),
    ("torch", "asarray_copy"): (
        "If [...] a copy is requested then it will not share its memory with `obj`.",
        "https://docs.pytorch.org/docs/stable/generated/torch.asarray.html",
    ),
}
"""By consumer and import: what the documentation says about copies."""
COPY = {
    "copy": f"With `copy=True`, the function must always copy ({FROM_DLPACK}).",
    "view": "With `copy=False`, the function must raise `BufferError` or `ValueError` if it would"
    f" have to copy ({FROM_DLPACK}; [asarray]({ARRAY_API}.asarray.html)).",
}
"""By promise: what the standard says about the keyword ``copy``."""


def expected(finding: FindingRecord, result: Result) -> str:
    """Markdown: what is expected of a case of the finding, with its source."""
    case = result.case
    if finding.rule == "DLP018":
        return _documented(result)
    told, source = EXPECTED.get(finding.rule, ("", ""))
    if finding.rule == "DLP001" and finding.severity == "info":
        told, source = UNAVOIDABLE
    if finding.rule == "DLP008" and changed.first(CaseView(0, result).changed):
        told, source = UNTOUCHED
    if case.protocol not in ("dlpack", "dlpack-capsule"):
        source = KEPT_ALIVE.get(case.protocol, "") if finding.rule == "DLP011" else ""
    asynchronous = ASYNCHRONOUS.get(case.consumer, "") if finding.rule == "DLP020" else ""
    return " ".join(filter(None, (told, source, asynchronous)))


def _documented(result: Result) -> str:
    case = result.case
    quoted = QUOTED.get((case.consumer, case.import_))
    if quoted is not None:
        return f"The function's documentation: “{quoted[0]}” ([source]({quoted[1]}))."
    promise = case.promise if case.promise in COPY else "copy"
    does = {"copy": "copies", "view": "does not copy"}[promise]
    standard = COPY[promise] if "copy=" in case.code else ""
    return f"The documentation says that this call {does}. {standard}".strip()
