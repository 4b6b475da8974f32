"""Effects that show in the result: view or copy, values, flags, and how it was asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from dlprof.analysis import changed
from dlprof.analysis.case_view import CaseView, number, seen
from dlprof.errors import NoReproducer
from dlprof.evidence.subject import Effect, Subject
from dlprof.session.evidence import Count, Values
from dlprof.session.model import FindingRecord
from dlprof.text.clean import clean


class Look(NamedTuple):
    """How it is told whether ``y`` shares the memory of ``x``, and what is true if it does."""

    text: str
    is_view: str
    is_copy: str


BY_WRITE = Look(
    """
before = <values of y>
<write of x>
changed = int((before != <values of y>).sum())
print("a write to x changed", changed, "of", before.size, "values of y")
""",
    "changed > 0",
    "changed == 0",
)
BY_ADDRESS = Look(
    """
addresses = <address of x>, <address of y>
print("x is at %#x, y at %#x" % addresses)
""",
    "addresses[0] == addresses[1]",
    "addresses[0] != addresses[1]",
)


def _look(subject: Subject) -> dict[str, str]:
    """What the placeholders of a look stand for."""
    look = BY_WRITE if _can_write(subject) else BY_ADDRESS
    return {**look._asdict(), "look": subject.filled(look.text)}


def _can_write(subject: Subject) -> bool:
    return subject.writable and subject.has("values", "y")


def compared(other: Subject | None) -> Subject:
    """The case that the finding compares with."""
    if other is None:
        raise NoReproducer("the finding does not say what it compares with: measure again")
    return other


NO_COPY_MADE = """
<create>
<convert of y>
<look>
return <is_view>
"""
NO_VIEW_MADE = """
<create>
try:
    y = <code>
except (ValueError, BufferError) as refusal:
    print("it refuses, as documented:", refusal)
    return False
<wait of y>
<look>
return <is_copy>
"""


def promise_broken(subject: Subject, _: Subject | None, finding: FindingRecord) -> Effect:
    """It is documented to copy and is a view, or documented not to copy and copies."""
    look = _look(subject)
    if subject.result.case.promise == "copy":
        at = number(finding.evidence.get("view_alignment_bytes"))
        where = f" if x is aligned to {at:.0f} bytes" if at else ""
        symptom = f"{subject.code} is documented to copy, but is a view{where}"
        body = subject.filled(NO_COPY_MADE, create=subject.create("view"), **look)
    else:
        at = number(finding.evidence.get("copy_alignment_bytes"))
        where = f" if x is only aligned to {at:.0f} bytes" if at else ""
        symptom = f"{subject.code} is documented not to copy, but copies{where}"
        body = subject.filled(NO_VIEW_MADE, create=subject.create("copy"), **look)
    return Effect(symptom, body, subject)


AVOIDABLE_BY_WRITE = """
<create>
<convert of y>
<other>
before = <values of y>, <values of z>
<write of x>
after = <values of y>, <values of z>
y_is_view, z_is_view = (bool((b != a).any()) for b, a in zip(before, after))
print("a write to x shows in y:", y_is_view, "- in z:", z_is_view)
return z_is_view and not y_is_view
"""
AVOIDABLE_BY_ADDRESS = """
<create>
<convert of y>
<other>
addresses = <address of x>, <address of y>, <address of z>
print("x is at %#x, y at %#x, z at %#x" % addresses)
return addresses[2] == addresses[0] != addresses[1]
"""


def avoidable_copy(subject: Subject, other: Subject | None, _: FindingRecord) -> Effect:
    """It copies, and another expression gives a view of the same array."""
    view = compared(other)
    body = subject.filled(
        AVOIDABLE_BY_WRITE if _can_write(subject) else AVOIDABLE_BY_ADDRESS,
        create=subject.create("copy"),
        other=view.filled("<convert of z>"),
    )
    return Effect(f"{subject.code} copies, although {view.code} is a view", body, subject)


LAYOUT = """
def is_view(x):
    <convert of y>
    <look>
    return <is_view>

<copied>
print("x begins", <address of x> % 64, "bytes after a multiple of 64:")
first = is_view(x)
<viewed>
print("x begins", <address of x> % 64, "bytes after a multiple of 64:")
second = is_view(x)
return second and not first
"""


def layout_copy(subject: Subject, other: Subject | None, _: FindingRecord) -> Effect:
    """It is a view of one layout or alignment, and a silent copy of another."""
    layout = subject.result.case.layout
    if other is not None and other.result.case.layout != layout:
        copied, viewed = subject.create("copy"), other.create("view")
        what, instead = f"a {layout} array", f"a {other.result.case.layout} array"
    else:
        copied, viewed = subject.create_as("sliced"), subject.create_as("aligned")
        what, instead = "an array that is not 64-byte aligned", "an aligned array"
    body = subject.filled(LAYOUT, copied=copied, viewed=viewed, **_look(subject))
    return Effect(f"{subject.code} copies {what}, but is a view of {instead}", body, subject)


READ_ONLY = """
<create>
<convert of y>
print(<told>)
<unless_writable>
<proof>
"""
OVERWRITTEN = """
before = <values of x>
<write of y>
changed = int((before != <values of x>).sum())
print(changed, "of", before.size, "values of x were overwritten through y")
return changed > 0
"""


def read_only_lost(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """The result lets memory be written that its owner calls read-only.

    The addresses are compared where a write would end the process, or change what others have
    mapped. A framework whose arrays are all immutable, or never, has no flag to ask for: then it is
    as its probe says, and a result without a flag is written.
    """
    owned, known = subject.result.ownership, CaseView(0, subject.result).writable
    not_written = subject.is_own or (owned is not None and owned.evidence.not_written)
    if known.source is False and not subject.has("writable", "x"):
        producer = clean(subject.result.case.producer, 40)
        told = json.dumps(f"{producer} does not let x be written")
    else:
        told = f'"x can be written:", {subject.said("writable", "x")}'
    unless = ""
    if known.result is not True or subject.has("writable", "y"):
        asked = subject.said("writable", "y")
        told += f', "- y can be written:", {asked}'
        unless = f"if not {asked}:\n    return False"
    proof = f"{BY_ADDRESS.text}return {BY_ADDRESS.is_view}" if not_written else OVERWRITTEN
    body = subject.filled(
        READ_ONLY,
        create=subject.create("view"),
        told=told,
        unless_writable=unless,
        proof=subject.filled(proof),
    )
    return Effect(f"{subject.code} makes a writable view of a read-only array", body, subject)


DTYPE = """
<create>
<convert of y>
dtypes = <dtype of x>, <dtype of y>
print("x is %s, y is %s" % dtypes)
return dtypes[0] != dtypes[1]
"""


def dtype_changed(subject: Subject, _: Subject | None, finding: FindingRecord) -> Effect:
    """The result has another dtype than the source."""
    before, after = (finding.evidence.get(name, "?") for name in ("before", "after"))
    body = subject.filled(DTYPE, create=subject.create())
    return Effect(f"{subject.code} makes {after} of {before}", body, subject)


VALUES = """
<create>
<convert of y>
expected, values = <values of x>, <flat_values>
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
CHANGES: Mapping[str, str] = {
    changed.SOURCE: """
<create>
expected = <values of x>
<convert of y>
values = <values of x>
wrong = <differing>
print(wrong, "of", expected.size, "values of x were changed by the call")
return wrong > 0
""",
    changed.SOURCE_WRITABLE: """
<create>
before = <writable of x>
<convert of y>
after = <writable of x>
print("x can be written:", before, "before the call,", after, "after it")
return before != after
""",
    changed.EARLIER_RESULT: """
<create>
<convert of y>
before = <values of y>
held = x
# another array, of other values
<create>
<write of x>
<convert of z>
wrong = int((before != <values of y>).sum())
print(wrong, "of", before.size, "values of y changed when z was made")
return held is not x and wrong > 0
""",
    changed.AFTER_WRITE: """
<create>
<convert of y>
<write of x>
<convert of z>
wrong = int((<values of x> != <flat_values>).sum())
print(wrong, "values of z are not those that were written to x")
return wrong > 0
""",
}
"""By what a call changed besides making its result."""
ONE_ADDRESS = """
<create>
<convert of y>
held = x
# another array
<create>
<convert of z>
results = <address of y>, <address of z>
sources = <address of held>, <address of x>
print("y is at %#x, z at %#x" % results)
return results[0] == results[1] and results[0] not in sources
"""


def wrong_values(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """The result has other values or another shape, or more than the result changed."""
    wrong = CaseView(0, subject.result).changed
    evidence = Values()
    symptom, template = "gives wrong values", VALUES
    kind = changed.first(wrong)
    if kind is not None:
        evidence = next(e for word, e in seen(subject.result.values) if word == "wrong")
        subject = subject.as_made(evidence)
        symptom = changed.CHANGES[kind].does
        one_address = isinstance(count := getattr(wrong, kind), Count) and count.same_address
        template = ONE_ADDRESS if one_address else CHANGES[kind]
        if subject.is_own and kind == changed.EARLIER_RESULT:
            raise NoReproducer("it takes two arrays, and the setup of your own makes one")
    elif "shape" in wrong.kinds:
        symptom, template = "loses the shape", SHAPE
    differ = "expected != values"
    if subject.is_own:  # its values may be NaN, which differ from themselves
        differ = f"({differ}) & ((expected == expected) | (values == values))"
    body = subject.filled(
        template,
        create=subject.create_by(evidence),
        differing=f"int(({differ}).sum())",
        flat_values=_flat_values(subject, "z" if kind == changed.AFTER_WRITE else "y"),
    )
    return Effect(f"{subject.code} {symptom}", body, subject)


def _flat_values(subject: Subject, name: str) -> str:
    """The values of a result in the form of the source's, which may be plain memory."""
    if not subject.has("values", name):
        return ""
    values = subject.said("values", name)
    return values if subject.has("shape", "x") else f"({values}).ravel()"


RECORDERS = {
    "dlpack": """
class Recorder:
    def __dlpack_device__(self):
        return array.__dlpack_device__()

    def __dlpack__(self, **asked):
        try:
            capsule = array.__dlpack__(**asked)
        except Exception as refusal:
            calls.append(f"asked for {asked}: refused, {type(refusal).__name__}: {refusal}")
            raise
        calls.append(f"asked for {asked}: answered")
        return capsule
""",
    "cuda-array-interface": """
class Recorder:
    @property
    def __cuda_array_interface__(self):
        try:
            interface = array.__cuda_array_interface__
        except Exception as refusal:
            calls.append(f"asked: refused, {type(refusal).__name__}: {refusal}")
            raise
        calls.append("asked: answered")
        return interface
""",
}
"""By protocol: what stands in for the source and writes down what it is asked."""
HANDSHAKE = """
calls = []

<recorder>

<create>
array, x = x, Recorder()
y = <code>
print(*calls, sep="\\n")
return len(calls) > 1 and "refused" in calls[0]
"""


def retry(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """The producer refuses what it is asked first, and the consumer asks again."""
    case = subject.result.case
    recorder = RECORDERS.get(case.protocol)
    if recorder is None:
        raise NoReproducer("only DLPack and the CUDA Array Interface can be stood in for")
    body = subject.filled(HANDSHAKE, recorder=recorder.strip("\n"), create=subject.create())
    return Effect(f"{subject.code} asks twice: {case.producer} refuses at first", body, subject)
