"""Rules on values, dtype, device, order and the read-only flag of the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from dlprof.errors import NoReproducer
from dlprof.judge.case_view import ORDERS, WORDS, CaseView, all_looks
from dlprof.judge.cases import Cases
from dlprof.judge.rule import (
    NONE_INSTEAD,
    READ_ONLY,
    SAME_DATA,
    SAME_DEVICE,
    SAME_ORDER,
    Rule,
    Severities,
    Severity,
    copy_advice,
    finding,
    replacements,
)
from dlprof.judge.safety import Fault
from dlprof.judge.script import LOOK, WRITE_SHOWS, Effect, Subject, shows
from dlprof.probes.base import ANY_DEVICE
from dlprof.probes.list import NESTED
from dlprof.runner.axes import shape_text
from dlprof.runner.evidence import Count, Values
from dlprof.runner.session import FindingRecord

WRONG = ("values", "wrong")
DTYPE = """
<create>
<convert of y>
dtypes = <dtype of x>, <dtype of y>
print("x is %s, y is %s" % dtypes)
return dtypes[0] != dtypes[1]
"""


def show_dtype_changed(subject: Subject) -> Effect:
    before, after = CaseView(0, subject.result).changed.dtype or ("?", "?")
    return subject.shown(f"makes {after} of {before}", DTYPE)


RECAST: Severities = MappingProxyType({"info": "for a statement of your own", "error": ""})
"""Whoever writes ``x.float()`` or ``x.T`` knows that it makes another dtype or shape."""


def _severity(group: Sequence[CaseView]) -> Severity:
    return "info" if all(case.recasts for case in group) else "error"


@partial(
    Rule,
    "DLP007",
    "dtype-changed",
    RECAST,
    "The result has the dtype of its source.",
    show_dtype_changed,
    source=SAME_DATA,
    instrument="values",
    fault=Fault(lambda case: "dtype" in case.changed.kinds),
    changes=("wrong",),
)
def dtype_changed(cases: Cases) -> Iterator[FindingRecord]:
    """The result has another dtype than the source.

    In a survey, the dtype that the documentation names is no finding.
    """

    def cause(case: CaseView) -> tuple[str, str] | None:
        _, after = case.changed.dtype or ("", "")
        is_documented = case.surveyed and case.result.case.narrows_to == after
        return (case.pair[1], after) if after and not is_documented else None

    for group in cases.groups(cause, look=WRONG):
        before, after = group[0].changed.dtype or ("", "")
        first = group[0].result.case
        dtypes = {case.changed.dtype[0] for case in group if case.changed.dtype}
        source = before if len(dtypes) == 1 else f"{len(dtypes)} other dtypes"
        verb, does = ("converts", "convert"), f"{source} to {after}"
        if first.layout == NESTED:  # it has no dtype: another statement chose one
            verb, does = ("makes", "make"), f"{after} of numbers, not {before}"
        elif all(case.reinterprets for case in group):
            verb, does = ("reads", "read"), f"the bytes of {source} as {after}"
        yield finding(
            group,
            verb,
            does,
            _count_text(group[0].changed.values),
            brief=first.narrows_why if first.narrows_to == after else "",
            advice=replacements(cases, group, "keeps the dtype", none=NONE_INSTEAD),
            severity=_severity(group),
            look=WRONG,
        )


def _count_text(count: Count | None) -> str:
    """Return ``3 of 16 values changed``; empty if that is not known."""
    if count is None or count.different is None or count.of is None:
        return ""
    return f"{count.different:,} of {count.of:,} values changed"


class SideEffect(NamedTuple):
    """A change that a call makes besides its result, and the body of a script."""

    verb: tuple[str, str]
    script: str


SIDE_EFFECTS = {
    "source": SideEffect(
        ("changes its source", "change their source"),
        """
<create>
before = <values of x>
<convert of y>
after = <values of x>
wrong = <differing>
print(wrong, "of", before.size, "values of x were changed by the call")
return wrong > 0
""",
    ),
    "earlier_result": SideEffect(
        ("overwrites its earlier result", "overwrite their earlier results"),
        """
<create>
<convert of y>
before = <values of y>
held, later = x, []
# another array, of other values
<other>
for _ in range(4):
    <convert of z>
    later.append(z)
after = <values of y>
wrong = <differing>
print(wrong, "of", before.size, "values of y changed when others were made")
return held is not x and wrong > 0
""",
    ),
    "after_write": SideEffect(
        (
            "gives old values of a source that was written since an earlier call",
            "give old values of a source that was written since an earlier call",
        ),
        """
<create>
<convert of y>
<write of x>
<convert of z>
before, after = <values of x>, <flat_values of z>
wrong = <differing>
print(wrong, "values of z are not those that were written to x")
return wrong > 0
""",
    ),
    "freed": SideEffect(
        ("frees the memory of its result", "free the memory of their results"),
        """
<create>
<convert of y>
before = <values of y>
blocks = [numpy.full(before.nbytes, 0xA5, "uint8") for _ in range(16)]  # take freed memory
after = <values of y>
wrong = <differing>
print(wrong, "of", before.size, "values of y changed when other memory was filled, with x kept")
return wrong > 0
""",
    ),
    "in_thread": SideEffect(
        ("gives other values in another thread", "give other values in another thread"),
        """
from threading import Thread
<create>
<convert of y>
before, found = <values of y>, []
def convert():
    <convert of z>
    found.append(<values of z>)

thread = Thread(target=convert)
thread.start()
thread.join()
after = found[0]
wrong = <differing>
convert()
after = found[1]
control = <differing>
print("values that changed in another thread:", wrong, "- in this one, as a control:", control)
return wrong > 0 and not control
""",
    ),
    "unfinished": SideEffect(
        ("returns before its values are there", "return before their values are there"),
        """
seen = []
for _ in range(5):
    <create>
    <convert of y>
    after, before = <flat_values of y>, <values of x>
    early = <differing>
    sleep(1)
    after = <flat_values of y>
    seen.append((early, <differing>))
print("values of y that differ from x at once, and after a second:", seen)
return any(early and not later for early, later in seen)
""",
    ),
}
"""Worst first."""
VALUES = """
<create>
<convert of y>
before, after = <values of x>, <flat_values of y>
wrong = <differing>
print(wrong, "values of y differ from those of x")
return wrong > 0
"""
SHAPE = """
<create>
<convert of y>
shapes = <shape of x>, <shape of y>
print("x has the shape %s, y has %s" % shapes)
return shapes[0] != shapes[1]
"""


DEVICE = """
<create>
<convert of y>
numbers = x.__dlpack_device__()[1], y.__dlpack_device__()[1]
places = <address of x>, <address of y>
print("x names device %d, y names %d" % numbers, "for the same memory" * (places[0] == places[1]))
return numbers[0] != numbers[1] and places[0] == places[1]
"""


def show_wrong_values(subject: Subject) -> Effect:
    kind = _symptom(CaseView(0, subject.result))
    evidence = (subject.result.values.first("wrong") if subject.result.values else None) or Values()
    subject = subject.with_array(evidence)
    does, template = "gives wrong values", VALUES
    if kind in SIDE_EFFECTS:
        does, template = SIDE_EFFECTS[kind].verb[0], SIDE_EFFECTS[kind].script
        if subject.is_own and kind == "earlier_result":
            raise NoReproducer("it takes two arrays, and the setup of your own makes one")
    elif kind == "shape":
        does, template = "loses the shape", SHAPE
    elif kind == "device":
        does, template = "names a wrong device", DEVICE
    create = subject.recreate(evidence)
    other = f"{create}\n{subject.idiom('write', 'x')}" if "<other>" in template else ""
    return subject.shown(does, template, create=create, other=other)


def _symptom(case: CaseView) -> str:
    """Return the worst change; empty if nothing is wrong.

    Values that a narrower dtype cannot hold are the dtype's fault.
    """
    worst = (*SIDE_EFFECTS, "device", *(["shape"] if "values" not in case.changed.kinds else []))
    kinds = [str(kind) for kind in worst if kind in case.changed.kinds]
    if kinds or not case.is_wrong:  # also a shape that the user's own statement makes
        return (*kinds, "")[0]
    # A statement that makes another dtype is compared by value.
    is_narrow = "dtype" in case.changed.kinds and not case.result.case.is_statement
    return "" if is_narrow else "values"


@partial(
    Rule,
    "DLP008",
    "wrong-values",
    RECAST,
    "The result has the shape and the values of its source. A conversion changes neither its"
    " source nor earlier results.",
    show_wrong_values,
    source=SAME_DATA,
    instrument="values",
    fault=Fault(lambda case: bool(_symptom(case))),
    changes=("wrong",),
)
def wrong_values(cases: Cases) -> Iterator[FindingRecord]:
    """The result has another shape, or other values in the same dtype; or the call changes its
    source or an earlier result.
    """
    for group in cases.groups(
        lambda case: _symptom(case) and (case.entry, _symptom(case)), look=WRONG
    ):
        changed, kind = group[0].changed, _symptom(group[0])
        verb, does, numbers = ("gives", "give"), "wrong values", _count_text(changed.values)
        if kind in SIDE_EFFECTS:
            verb, does = SIDE_EFFECTS[kind].verb, ""
            numbers = _count_text(getattr(changed, kind))
        elif kind == "device" and changed.device:
            does, numbers = "a wrong device", "{1} for memory of {0}".format(*changed.device)
        elif kind == "shape" and changed.shape:
            before, after = map(shape_text, changed.shape)
            does, numbers = "a result of another shape", f"shape {after} instead of {before}"
        yield finding(
            group,
            verb,
            does,
            numbers,
            advice=replacements(cases, group, "gives the right result", none=NONE_INSTEAD),
            severity=_severity(group),
            look=WRONG,
        )


READ_ONLY_LOST = "DLP009"
NO_FLAG = "No measured view of the pair stays read-only."
READ_ONLY_VIEW = f"""
<create of view>
<convert of y>
<unless_writable>
{LOOK.strip()}
return addresses[0] == addresses[1]
"""


def show_read_only_lost(subject: Subject) -> Effect:
    """A framework without read-only arrays has no flag to read."""
    unless = ""
    if subject.has("writable", "y"):
        unless = f"if not {subject.idiom('writable', 'y')}:\n    return False"
    return subject.shown(
        "makes a writable view of a read-only array",
        READ_ONLY_VIEW,
        unless_writable=unless,
    )


def _keeps_read_only(case: CaseView) -> bool:
    return (case.kind, case.writable.source, case.writable.result) == ("view", False, False)


@partial(
    Rule,
    READ_ONLY_LOST,
    "read-only-lost",
    {"error": "where another measured view keeps the flag", "warning": ""},
    "The result of a read-only array is read-only or a copy.",
    show_read_only_lost,
    source=READ_ONLY,
    instrument="ownership",
    fault=Fault(
        lambda case: case.loses_read_only,
        is_avoided=_keeps_read_only,
        condition="do not write to the result",
    ),
    changes=("read-only flag",),
)
def read_only_lost(cases: Cases) -> Iterator[FindingRecord]:
    """A writable view of memory that its owner calls read-only.

    An error if another view of the array keeps the flag. A consumer without read-only arrays has
    no choice.
    """

    def cause(case: CaseView) -> tuple[str, ...]:
        if not case.loses_read_only:
            return ()
        return case.entry if cases.breaks(case, READ_ONLY_LOST) else (*case.pair, "")

    for group in cases.groups(cause):
        is_dropped = cases.breaks(group[0], READ_ONLY_LOST)
        between = group[0].writable.read_only
        advice = copy_advice(cases, group[0], "Do not write to the result.")
        if is_dropped:
            advice = replacements(cases, group, "keeps the flag", _keeps_read_only, advice)
        yield finding(
            group,
            ("makes a writable view", "make writable views"),
            "of a read-only array",
            brief="A write changes x or ends the process.",
            more="" if is_dropped else f"{between} is read-only." if between else NO_FLAG,
            advice=advice,
            severity="error" if is_dropped else "warning",
        )


READ_ONLY_GAINED = """
<create>
<write of x>
<convert of y>
print("x was written, y can be written:", <writable of y>)
return not <writable of y>
"""


@partial(
    Rule,
    "DLP022",
    "read-only-gained",
    "info",
    "The result of a writable array can be written.",
    shows("makes a read-only array of a writable one", READ_ONLY_GAINED),
    source=READ_ONLY,
    instrument="values",
)
def read_only_gained(cases: Cases) -> Iterator[FindingRecord]:
    """A result cannot be written, although its source can.

    A consumer whose arrays are all immutable has no choice.
    """

    def cause(case: CaseView) -> tuple[object, ...]:
        flags = case.writable.source, case.writable.result, case.writable.immutable
        is_locked = case.kind in WORDS and flags == (True, False, False)
        return (case.entry, case.kind) if is_locked else ()

    def is_writable(kind: str, case: CaseView) -> bool:
        return (case.writable.source, case.writable.result, case.kind) == (True, True, kind)

    for group in cases.groups(cause):
        kind = group[0].kind or ""
        yield finding(
            group,
            (f"makes a read-only {kind}", f"make a read-only {kind}"),
            "of a writable array",
            advice=replacements(cases, group, "can be written", partial(is_writable, kind)),
        )


MASK_LOST = """
<create>
<convert of y>
before, after = <before>, <after>
print("x has a mask:", before, "- y has a mask:", after)
return before and not after
"""


def show_property_lost(subject: Subject) -> Effect:
    before, after = (
        subject.idiom("masked", name) if subject.has("masked", name) else f'hasattr({name}, "mask")'
        for name in "xy"
    )
    return subject.shown("loses the mask of x", MASK_LOST, before=before, after=after)


def _drops_mask(case: CaseView) -> bool:
    return any(evidence.dropped for _, evidence in all_looks(case.result.values))


@partial(
    Rule,
    "DLP021",
    "property-lost",
    "info",
    "The result is masked as its source is, or the call refuses it.",
    show_property_lost,
    instrument="values",
)
def property_lost(cases: Cases) -> Iterator[FindingRecord]:
    """The result lacks the mask of its source."""
    for group in cases.groups(lambda case: _drops_mask(case) and case.pair):
        advice = replacements(cases, group, "keeps it", lambda other: not _drops_mask(other))
        yield finding(group, ("loses", "lose"), "the mask of the source", advice=advice)


MOVED = """
def device_type(array):  # DLPack's: 1 for the host, 2 for CUDA
    if hasattr(array, "__dlpack_device__"):
        return array.__dlpack_device__()[0]
    return 2 if hasattr(array, "__cuda_array_interface__") else 1

<create>
<convert of y>
devices = device_type(x), device_type(y)
print("DLPack's device type of x is %d, that of y is %d" % devices)
return devices[0] != devices[1]
"""


@partial(
    Rule,
    "DLP027",
    "device-changed",
    "warning",
    "The result is on the device of its source.",
    shows("moves the array to another device", MOVED),
    source=SAME_DEVICE,
    instrument="ownership",
    changes=("device of the result",),
)
def device_changed(cases: Cases) -> Iterator[FindingRecord]:
    """The result is on another device than the source, and no code asks for that."""
    places = {"cpu": "the host", "cuda": "the device"}

    def cause(case: CaseView) -> tuple[object, ...]:
        declared = {evidence.declared_device for _, evidence in case.kinds}
        device = case.result.case.device
        is_moved = declared == {device} and case.result_device not in (None, device)
        return (case.entry, case.result_device) if is_moved and device in ANY_DEVICE else ()

    for group in cases.groups(cause):
        result, source = group[0].result_device or "", group[0].result.case.device
        yield finding(
            group,
            ("moves", "move"),
            f"the array from {places[source]} to {places[result]}",
            advice=replacements(cases, group, "stays there", lambda other: other.stays_on_device),
        )


def _order_change(case: CaseView) -> str:
    (other,) = {*ORDERS.values()} - {case.new_order}
    return f"{case.new_order} order of {other} order"


STRIDES = """
def strides(array):
    if hasattr(array, "stride"):
        return tuple(array.stride())
    return tuple(stride // array.itemsize for stride in array.strides)

<create>
<convert of y>
print("strides in elements: x %s, y %s" % (strides(x), strides(y)))
return strides(x) != strides(y)
"""


def show_order_changed(subject: Subject) -> Effect:
    case = CaseView(0, subject.result)
    does = "has other strides" if case.new_strides else f"makes {_order_change(case)}"
    return subject.shown(does, STRIDES)


@partial(
    Rule,
    "DLP028",
    "order-changed",
    "info",
    f"The result has the order of its source, and a view its strides. {SAME_ORDER}",
    show_order_changed,
    instrument="values",
)
def order_changed(cases: Cases) -> Iterator[FindingRecord]:
    """It copies into another order, and another path is a view that keeps the order."""

    def is_view_in_order(case: CaseView) -> bool:
        return case.kind == "view" and case.orders in (("F", "F"), ("C", "C"))

    for group in cases.groups(
        lambda case: (
            case.new_order
            and any(map(is_view_in_order, cases.arrays[case.array]))
            and (case.entry, case.new_order)
        )
    ):
        yield finding(
            group,
            ("makes", "make"),
            _order_change(group[0]),
            advice=replacements(cases, group, "keeps the order", is_view_in_order),
        )
    views = {case.result.case.way for case in cases.cases if case.kind == "view"}
    for group in cases.groups(
        lambda case: case.new_strides and case.result.case.way in views and case.pair,
        lambda case: len(case.result.case.shape),
    ):
        before, after = group[0].new_strides or ((), ())
        yield finding(
            group,
            ("has", "have"),
            "other strides",
            f"{before} becomes {after}",
            more="Some consumers check strides and refuse such arrays (onnxruntime#27450).",
        )


def _shares_immutable(case: CaseView) -> bool:
    is_shared = case.writable.source is True and case.kind == "view"
    return is_shared and case.writable.immutable is True and case.promise != "copy"


@partial(
    Rule,
    "DLP029",
    "immutable-shared",
    "info",
    "The values of an immutable array do not change.",
    shows("is immutable and changes with a write to x", WRITE_SHOWS),
    instrument="ownership",
    fault=Fault(
        _shares_immutable,
        is_avoided=lambda _: False,  # the user avoids it
        condition="do not write the source while the result is in use",
    ),
)
def immutable_shared(cases: Cases) -> Iterator[FindingRecord]:
    """An immutable array shares memory that the source can write."""
    for group in cases.groups(lambda case: _shares_immutable(case) and case.pair):
        yield finding(
            group,
            ("returns an immutable array that shares", "return immutable arrays that share"),
            "writable memory with x",
            more="A write to x changes the result.",
            advice=copy_advice(cases, group[0], "Do not write x while the result is in use."),
        )
