"""Rules, one object per kind of problem, and the wording of their findings.

A finding says which paths do what, what it costs, and what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

from dlprof.judge.case_view import CaseView, is_certain
from dlprof.judge.cases import Cases, Look
from dlprof.judge.safety import Fault
from dlprof.judge.script import Show
from dlprof.runner.axes import shape_text
from dlprof.runner.quantity import MARK, brief_text, plain_time
from dlprof.runner.session import FindingRecord, Result
from dlprof.runner.survey import survey_label
from dlprof.text.clean import listed

ARRAY_API = "https://data-apis.org/array-api/latest/API_specification/generated/array_api"
DLPACK = "https://dmlc.github.io/dlpack/latest/python_spec.html"
C_API = "https://dmlc.github.io/dlpack/latest/c_api.html"
FROM_DLPACK = f"[array API standard, from_dlpack]({ARRAY_API}.from_dlpack.html)"
ASARRAY = f"[asarray]({ARRAY_API}.asarray.html)"
EXPORT = f"[array API standard, \\_\\_dlpack\\_\\_]({ARRAY_API}.array.__dlpack__.html)"

ZERO_COPY = f"DLPack exchange is zero-copy where possible ([DLPack, semantics]({DLPACK}))."
SAME_DATA = f"The result of from_dlpack holds the data of its source ({FROM_DLPACK})."
LIKE_OTHERS = (
    "“Both `x` and `y` may continue to be used just like arrays created in other ways”"
    f" ([DLPack, semantics]({DLPACK}))."
)
SAME_DEVICE = (
    "“If `device` is `None` and `x` supports DLPack, the output array must be on the same device as"
    f" `x`” ({FROM_DLPACK})."
)
SAME_ORDER = (
    "NumPy keeps the order by default: “F & C order preserved, otherwise most similar order”"
    " ([numpy.array](https://numpy.org/doc/stable/reference/generated/numpy.array.html))."
)
DELETER = (
    "The consumer calls the producer's deleter when it no longer needs the data, and not before"
    f" ([DLPack, implementation]({DLPACK}))."
)
READ_ONLY = f"DLPack 1.0 has the flag `DLPACK_FLAG_BITMASK_READ_ONLY` ([DLPack, C API]({C_API}))."
JAX = "https://docs.jax.dev/en/latest/_autosummary"
DEVICE_PUT = (
    "JAX says about `device_put`: “This function is always asynchronous, i.e. returns immediately"
    " without blocking the calling Python thread until any transfers are completed”"
    f" ([device_put]({JAX}/jax.device_put.html)). It does not forbid writes to the source."
)
JAX_BUFFER = (
    "“If a jax Array is constructed from a dlpack buffer and the buffer is later modified in-place,"
    f" it may lead to undefined behavior” ([from_dlpack]({JAX}/jax.dlpack.from_dlpack.html))."
)
QUOTES = {
    ("DLP011", "cuda-array-interface"): "The specification leaves it to the user: “The User code"
    " must preserve the lifetime of the object owning the data” ([CUDA Array Interface, lifetime"
    " management](https://nvidia.github.io/numba-cuda/user/cuda_array_interface.html)).",
    ("DLP018", "jax from_dlpack_copy"): "JAX says: “If copy=True then a copy is always performed”"
    f" ([from_dlpack]({JAX}/jax.dlpack.from_dlpack.html)).",
    ("DLP018", "jax device_put_copy"): "JAX says: “If False, `x` will be copied.”"
    f" ([device_put]({JAX}/jax.device_put.html)).",
    ("DLP018", "jax asarray_nocopy"): "JAX says: “If False, then error if a copy is necessary.”"
    f" ([asarray]({JAX}/jax.numpy.asarray.html)).",
    ("DLP018", "torch asarray_copy"): "PyTorch says: “If [...] a copy is requested then it will not"
    " share its memory with `obj`.”"
    " ([asarray](https://docs.pytorch.org/docs/stable/generated/torch.asarray.html)).",
    ("DLP020", "jax device_put"): DEVICE_PUT,
    ("DLP020", "jax device_put_alias"): DEVICE_PUT,
    ("DLP020", "jax device_put_copy"): DEVICE_PUT,
    ("DLP029", "jax from_dlpack"): JAX_BUFFER,
    ("DLP029", "jax from_dlpack_nocopy"): JAX_BUFFER,
}
"""By rule, and by protocol or import: what a document says about such a call."""
COPY = (
    f"With `copy=True`, the function must always copy. With `copy=False`, it must raise"
    f" `BufferError` or `ValueError` if it would have to copy ({FROM_DLPACK}; {ASARRAY})."
)


LONGEST_CODE = 160
MOST_ARRAYS = 3
NONE_INSTEAD = "No measured path is known to replace it."
DO_NOT_TRY = "Do not try the call to find out whether it works."


Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""Worst first: unsafe or wrong, slow for no reason, worth knowing."""

Severities = Mapping[Severity, str]
"""Severities, each with its condition in words; the last one has none."""

BY_COST: Severities = MappingProxyType({"warning": "from 10 µs per call on", "info": ""})
"""Severities of rules on speed."""

NAME_HINT = "name a rule or a severity"


@dataclass(frozen=True)
class Rule:
    """The id never changes its meaning. The page of a rule is ``pages/{id}.md``.

    A family declares a rule as ``@partial(Rule, …)`` above the function that checks it.
    """

    id: str
    name: str
    severity: Severity | Severities
    """The severity of its findings; if they differ, :func:`finding` gets that of each."""
    expected: str
    """Markdown: what should happen instead."""
    effect: Show
    """Makes the script that reproduces a finding."""
    check: Callable[[Cases], Iterator[FindingRecord]]
    """Yields the findings: see :func:`finding`."""
    source: str = ""
    """Markdown: the document that asks for it; cited only for conversions by DLPack."""
    instrument: str = ""
    """The instrument that proves a finding; without its answer there is none."""
    fault: Fault | None = None
    """The fault that makes a path unsafe; None if the rule has none."""
    changes: tuple[str, ...] = ()
    """Regressions that it covers: verdicts of HEAD, or names of :mod:`dlprof.compare.verdicts`."""
    times: bool = False
    """Whether it compares times: it needs several processes, and finds nothing without times."""
    other_arrays: bool = False
    """Whether its reproducer needs arrays besides the one that a user's own setup makes."""

    @property
    def severities(self) -> tuple[Severity, ...]:
        """Return all severities of its findings."""
        return (self.severity,) if isinstance(self.severity, str) else tuple(self.severity)

    @property
    def severity_text(self) -> str:
        """Return ``error``, or with conditions ``error where …, else warning``."""
        if isinstance(self.severity, str):
            return self.severity
        return ", ".join(
            f"{severity} {condition}" if condition else f"else {severity}"
            for severity, condition in self.severity.items()
        )

    def findings(self, cases: Cases) -> Iterator[FindingRecord]:
        for record in self.check(cases.timed if self.times else cases):
            severity = record.severity or self.severity
            named = {"rule": self.id, "name": self.name, "severity": severity}
            yield record.model_copy(update=named)

    def expectation(self, result: Result) -> str:
        """Return, in Markdown, what should happen to a case instead, with its sources."""
        case = result.case
        source = self.source if case.protocol in ("dlpack", "dlpack-capsule") else ""
        words = case.protocol, f"{case.consumer} {case.import_}"
        quotes = (QUOTES.get((self.id, word), "") for word in words)
        return " ".join(filter(None, (self.expected, source, *quotes)))


def worst_first(findings: Iterable[FindingRecord]) -> list[FindingRecord]:
    """Sort by severity, then by cost, then by rule and by the first case."""

    def rank(record: FindingRecord) -> tuple[int, float, str, list[int]]:
        cost = record.evidence.get("cost_ns", 0.0)
        return SEVERITIES.index(record.severity), -cost, record.rule, record.results

    return sorted(findings, key=rank)


def finding(  # noqa: PLR0913 - one keyword for each part
    cases: Sequence[CaseView],
    verb: tuple[str, str],
    does: str = "",
    numbers: str = "",
    *,
    evidence: Mapping[str, Any] = MappingProxyType({}),
    brief: str = "",
    more: str = "",
    advice: str = "",
    against: CaseView | None = None,
    severity: Severity | None = None,
    look: Look | None = None,
    subject: str = "",
) -> FindingRecord:
    """Build a finding of ``cases``, the clearest one first, before it has its rule's name.

    ``verb``, for one path and for several, and ``does`` say what the paths do, in at most 20 words.
    ``numbers`` ends that sentence; of several cases they are the first's. ``brief`` is a sentence
    that follows, and ``more`` follows in the summary only. ``evidence`` holds ``cost_ns``, the cost
    per call, and input of the reproducer. ``advice`` names only paths that were measured.
    ``against`` is the case that the first one is compared with. ``severity`` is needed if the
    rule has several. ``look`` adds the number of processes: see :meth:`Cases.groups`.
    ``subject`` is another call of the first case's source than the conversion.
    """
    first, count = cases[0], 1 if subject else len({case.result.case.way for case in cases})
    more_paths = {1: "", 2: " and 1 more path"}.get(count, f" and {count - 1:,} more paths")
    named = f"{subject} of {first.pair[0]}" if subject else f"{code(first)}{more_paths}"
    counted = named if subject else f"{count:,} path{'s' * (count > 1)}"
    arrays_text = "" if subject else _small_arrays(cases)
    action = f"{verb[count > 1]} {does}".strip() + arrays_text
    figures = f": {numbers}" if numbers else ""
    case_text = _numbered_case(cases, count) if numbers and not subject else ""
    how_often = first.how_often(*look) if look else ""
    briefly = " ".join(filter(None, (brief, how_often)))
    fully = " ".join(filter(None, (brief, more, how_often)))
    plural = f"{verb[1]} {does}".strip() + f"{arrays_text}. {briefly}".rstrip()
    return FindingRecord(
        rule="",
        name="",
        severity=severity or "",
        results=[first.index] if subject else [case.index for case in cases],
        headline=f"{counted} {action}{figures}. {briefly}".strip(),
        said=f"{action}." if subject else plural,
        summary=f"{named} {action}{figures}{case_text}. {fully}".strip(),
        evidence={name: value for name, value in evidence.items() if value is not None},
        advice=advice,
        against=None if against is None else against.index,
        subject=subject,
    )


def _small_arrays(cases: Sequence[CaseView]) -> str:
    """Return `` (bool, int8)``, the arrays of a survey; empty if a timed array shows it too."""
    if not all(case.surveyed for case in cases):
        return ""
    names = list(dict.fromkeys(survey_label(case.result.case).name for case in cases))
    shown = listed(names) if len(names) <= MOST_ARRAYS else f"{len(names)} kinds of small arrays"
    return f" ({shown})"


def _numbered_case(cases: Sequence[CaseView], count: int) -> str:
    """Return `` (the first, a to b, 4x4 float32 C)``: the case that the numbers belong to."""
    first = cases[0]
    words = ["the first"] if count > 1 else []
    if len({case.pair for case in cases}) > 1:
        words.append(" to ".join(first.pair))
    if len({case.spec for case in cases}) > 1 or first.surveyed:
        shape, dtype, layout, _ = first.spec
        words.append(f"{shape_text(shape)} {dtype} {layout}")
    return f" ({', '.join(words)})" if words else ""


def code(case: CaseView) -> str:
    return case.code if len(case.code) <= LONGEST_CODE else f"{case.code[: LONGEST_CODE - 1]}…"


def time(case: CaseView) -> str:
    """Format a time: ``5.0 us``, or ``190 to 840 us`` where processes differ."""
    text = plain_time(case.cost_ns) if case.ready is None else brief_text(case.ready)
    return text if text.startswith(MARK) or is_certain(case.ready) else f"{MARK}{text}"


def replacement_text(case: CaseView, other: CaseView, claim: str) -> str:
    """Return ``f(x) is a view: 74 us instead of 400 us.``

    A time is left out if it is not certain, or if the framework keeps the result.
    """
    text = f"{code(other)} {claim}"
    if not is_certain(other.ready) or (other.is_cached and other.kind == "copy"):
        return f"{text}."
    return f"{text}: {time(other)}{f' instead of {time(case)}' * is_certain(case.ready)}."


def replacements(
    cases: Cases,
    group: Sequence[CaseView],
    does: str,
    fits: Callable[[CaseView], bool] = lambda _: True,
    none: str = "",
) -> str:
    """Return ``f(x) keeps the dtype.``, a path that replaces the first case, or ``none``."""
    other = cases.replacement(group[0], fits)
    return none if other is None else f"{producer_prefix(group)}{code(other)} {does}."


def producer_prefix(group: Sequence[CaseView]) -> str:
    """Return ``From torch: `` if the cases have several producers."""
    return f"From {group[0].pair[0]}: " if len({case.pair[0] for case in group}) > 1 else ""


def copy_advice(cases: Cases, case: CaseView, advice: str) -> str:
    """Return ``advice``, with a measured path that gives a safe copy of the array, if any."""
    copies = filter(cases.copies, filter(cases.may_be_advised, cases.arrays[case.array]))
    best = min(copies, key=lambda other: (not other.stays_on_device, other.cost_ns), default=None)
    return advice if best is None else f"{advice} Or: {code(best)} copies it."
