"""How does it refuse? Rules on the kind of an error, and on what an error breaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from dlprof.errors import NoReproducer
from dlprof.judge.case_view import CaseView, seen
from dlprof.judge.cases import Cases, groups
from dlprof.judge.finding import DO_NOT_TRY, Claim, finding, finding_of_call, replacements
from dlprof.judge.rule import Rule, expect
from dlprof.judge.safety import Fault
from dlprof.judge.script import Effect, Subject, expression
from dlprof.judge.standards import ASARRAY, EXPORT, FROM_DLPACK
from dlprof.runner.evidence import Refused
from dlprof.runner.session import FindingRecord, Result
from dlprof.text.clean import first_line
from dlprof.text.source import plain

NO_COPY = ", copy=False)"


class Prescribed(NamedTuple):
    """The errors of which a standard asks for one, and where it says so."""

    errors: tuple[str, ...]
    source: str


WITHOUT_COPY = {
    "from_dlpack(": Prescribed(("BufferError", "ValueError"), FROM_DLPACK),
    "asarray(": Prescribed(("ValueError",), ASARRAY),
}
"""By function: what ``copy=False`` raises if it would have to copy. The page of from_dlpack names
BufferError under ``copy``, and ValueError under "Raises"."""
OTHER_DEVICE = Prescribed(("BufferError",), EXPORT)
"""``__dlpack__`` with ``copy=False`` raises BufferError "in case a copy is deemed necessary (e.g.
if a cross-device data movement is requested …)"."""


def wrong_error(cases: Cases) -> Iterator[FindingRecord]:
    """A copy that is forbidden is refused by another error than the standard prescribes."""
    refused = cases.looked_at("refusal")
    wrong = {case.index: one for case in refused if (one := _prescribed(cases, case))}
    deviating = [case for case in refused if case.index in wrong]
    for found in groups(deviating, _place):
        prescribed = wrong[found[0].index]
        raised = (_evidence(found[0].result).error or ("?",))[0]
        errors = " or ".join(prescribed.errors)
        device = _evidence(found[0].result).other_device
        what = "another device" if device else "to copy"
        claim = Claim(
            ("refuses", "refuse"), f"{what} with {raised}", f"the standard requires {errors}"
        )
        evidence, advice = {"raised": raised, "prescribed": errors}, f"Catch {raised}, too."
        if device:
            yield finding_of_call(found[0], _export(found[0].result), claim, evidence, advice)
        else:
            yield finding(found, claim, evidence, advice)


def _place(case: CaseView) -> tuple[str, ...]:
    """Another device is asked of the source, whatever path follows."""
    call = _export(case.result)
    return (case.pair[0], call) if call else case.way_in


def _export(result: Result) -> str:
    """The call that asks the source for another device; empty if none did."""
    device = _evidence(result).other_device
    return (
        f"{result.case.source}.__dlpack__(dl_device={tuple(device)}, copy=False)" if device else ""
    )


def _evidence(result: Result) -> Refused:
    """What the first process tells in which the error was seen."""
    return next((one for _, one in seen(result.refusal) if one.error), Refused())


def _prescribed(cases: Cases, case: CaseView) -> Prescribed | None:
    """What the standard prescribes instead of the error that was seen; None without a deviation."""
    evidence = _evidence(case.result)
    found = _required(case.result)
    if found is None or not evidence.error or {*found.errors} & {*evidence.error}:
        return None
    return found if evidence.other_device or _is_of_the_copy(cases, case) else None


def _required(result: Result) -> Prescribed | None:
    """What the standard prescribes where such a call is refused for its copy."""
    if _evidence(result).other_device:
        return OTHER_DEVICE
    code = result.case.code
    function = code.partition("(")[0] + "("
    named = (one for name, one in WITHOUT_COPY.items() if function.endswith(name))
    return next(named, None) if code.endswith(NO_COPY) else None


def _is_of_the_copy(cases: Cases, case: CaseView) -> bool:
    """Whether the same call without ``copy=False`` copies, so that the copy is the cause."""
    same = f"{case.code.removesuffix(NO_COPY)})"
    copies = any(one.code == same and one.kind == "copy" for one in cases.arrays[case.array])
    return copies and case.result.status == "unsupported"


def prescribed(_: FindingRecord, result: Result) -> str:
    if _evidence(result).other_device:
        return f"A copy that `copy=False` forbids is refused by BufferError ({EXPORT}, 2023.12)."
    return f"A copy that `copy=False` forbids is refused as prescribed ({FROM_DLPACK}; {ASARRAY})."


WRONG_ERROR = """
<create>
try:
    <call>
except (<prescribed>) as refusal:
    print("as prescribed:", type(refusal).__name__, refusal)
    return False
except Exception as refusal:
    print("not <prescribed>:", type(refusal).__name__, refusal)
    return True
print("not refused")
return False
"""


def show_wrong_error(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    device = _evidence(subject.result).other_device
    required = _required(subject.result)
    if required is None:
        raise NoReproducer("the session does not say which error is prescribed")
    call, does = f"y = {subject.code}", "refuses by an error that is not prescribed"
    if device:
        call = f"x.__dlpack__(max_version=(1, 3), dl_device={tuple(device)}, copy=False)"
    shown = subject.shown(does, WRONG_ERROR, call=call, prescribed=", ".join(required.errors))
    return replace(shown, own_call=_export(subject.result))


def broken_by_refusal(cases: Cases) -> Iterator[FindingRecord]:
    """Once it has refused an array, it converts a plain one no more."""
    broken = [case for case in cases.looked_at("refusal") if _is_broken(case)]
    for found in groups(broken, lambda case: (case.way_in, case.how_often("refusal", "broken"))):
        evidence = _broken(found[0].result)
        after = first_line(evidence.after or "")
        yield finding(
            found,
            Claim(
                ("fails", "fail"),
                "for plain arrays after a refusal",
                more=f"Afterwards a plain array gives: {after}. One like it was converted before.",
            ),
            {"refused_by": (evidence.error or ("?",))[0], "after": after},
            advice=f"{replacements(cases, found, 'takes it')} {DO_NOT_TRY}".strip(),
            how_often=found[0].how_often("refusal", "broken"),
        )


def _is_broken(case: CaseView) -> bool:
    """What became of a plain array is evidence also where no other process showed it again."""
    return bool(_broken(case.result).after)


def _broken(result: Result) -> Refused:
    """What a process tells that converted plain arrays no more."""
    return (result.refusal.of("broken") if result.refusal else None) or Refused()


BROKEN = """
def plain():
    <plain_create>
    y = <plain_code>
    <wait of y>
    return <values of y>

before = plain()
end = perf_counter() + 10
for count in range(1000):
    try:
        <create>
        y = <code>
    except Exception as refusal:
        if count == 0:
            print("it refuses:", type(refusal).__name__, refusal)
    if perf_counter() > end:
        break
try:
    after = plain()
except Exception as error:
    print("a plain array, as it was converted before:", type(error).__name__, error)
    return True
wrong = <differing>
print(wrong, "values of a plain array differ from those before the refusal")
return wrong > 0
"""


def show_broken(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    evidence = _broken(subject.result)
    if not evidence.plain_create or not evidence.plain_code:
        raise NoReproducer("the session does not say which plain array was converted")
    return subject.shown(
        "fails for plain arrays after a refusal",
        BROKEN,
        plain_create=plain(evidence.plain_create),
        plain_code=expression(evidence.plain_code),
    )


RULES = (
    Rule(
        "DLP024",
        "wrong-error",
        "info",
        wrong_error,
        prescribed,
        show_wrong_error,
        "refusal",
    ),
    Rule(
        "DLP026",
        "broken-by-refusal",
        "error",
        broken_by_refusal,
        expect("A refusal leaves the process as it was."),
        show_broken,
        "refusal",
        Fault(_is_broken),
    ),
)
