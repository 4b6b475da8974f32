"""What does it do to the process? Rules on crashes, refusals and settings."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from dlprof.errors import NoReproducer
from dlprof.judge.case_view import CaseView, seen
from dlprof.judge.cases import Cases, by, groups
from dlprof.judge.rule import DO_NOT_TRY, Rule, code, expect, finding, replacements
from dlprof.judge.safety import Fault
from dlprof.judge.script import CHILD_LIMIT_S, Effect, Subject, expression, in_child
from dlprof.judge.standards import ASARRAY, EXPORT, FROM_DLPACK
from dlprof.runner.evidence import Lost, Refused, Setting
from dlprof.runner.session import FindingRecord, Result
from dlprof.text.clean import first_line
from dlprof.text.source import plain


def crash(cases: Cases) -> Iterator[FindingRecord]:
    """The process died, or gave no answer within the time limit.

    An instrument that needs longer than its limit is no fault of the conversion.
    """
    ended = [
        (one, one.lost) for one in cases.cases if one.lost is not None and one.is_lost_for_sure
    ]
    for found in by(ended, lambda one: (one[0].pair, one[1].how, _returned(one[0]))).values():
        worst, lost = found[0]
        stages = list(dict.fromkeys(one.stage for _, one in found))
        during = f" during {' or '.join(map(str, stages))}" if all(stages) else ""
        other = cases.replacement(worst)
        yield finding(
            [case for case, _ in found],
            ("did not return:", "did not return:"),
            f"{first_line(lost.how)}{during}",
            evidence={"stage": lost.stage},
            advice=f"{code(other)} works." if other else "",
            brief=_returned(worst),
            is_named=True,
        )


def _returned(case: CaseView) -> str:
    """In how many processes it came back before it was lost, in a sentence; empty for none."""
    before = len(case.result.rounds) if case.result.lost is not None else 0
    return f"It returned in {before} process{'es' * (before > 1)} before." if before else ""


CRASH = """
<create>
end = perf_counter() + 20
try:
    for _ in range(100):
        <alarm>
        <convert of y>
        if perf_counter() > end:
            break
except (BufferError, RuntimeError, ValueError) as refusal:
    print("it refuses, which is an answer:", refusal, flush=True)
<no_alarm>
sleep(2)  # a thread may end the process later
"""
IMPORTS_S = 60
"""For imports and the array, where each conversion has a limit of its own."""
SHORTEST_S = 10


def show_crash(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """The process dies of the conversion, or the conversion never returns."""
    if subject.result.status == "ok":
        raise NoReproducer(
            "the process was lost in an instrument, which converts in ways of its own; alone, the"
            " conversion came back"
        )
    lost = subject.result.lost or Lost()
    if lost.limit_s:
        limit_s = math.ceil(max(lost.limit_s, SHORTEST_S))
        alarm = f"signal.alarm({limit_s})  # ends the process if the call has not returned by then"
        does, whole_s = f"gives no answer within {lost.limit_s:g} s", limit_s + IMPORTS_S
    else:
        alarm, whole_s = "", CHILD_LIMIT_S
        does = f"kills the process{f' ({lost.signal})' if lost.signal else ''}"
    no_alarm = "signal.alarm(0)" if alarm else ""
    child = subject.filled(CRASH, create=subject.create(), alarm=alarm, no_alarm=no_alarm)
    return in_child(does, subject, child, whole_s)


NO_COPY = ", copy=False)"


WITHOUT_COPY = {
    "from_dlpack(": ("BufferError", "ValueError"),
    "asarray(": ("ValueError",),
}
"""By function: what ``copy=False`` raises if it would have to copy. The page of from_dlpack names
BufferError under ``copy``, and ValueError under "Raises"."""
OTHER_DEVICE = ("BufferError",)
"""``__dlpack__`` with ``copy=False`` raises BufferError "in case a copy is deemed necessary (e.g.
if a cross-device data movement is requested …)"."""


def wrong_error(cases: Cases) -> Iterator[FindingRecord]:
    """A copy that is forbidden is refused by another error than the standard prescribes."""
    wrong = [case for case in cases.looked_at("refusal") if _is_wrong_error(cases, case)]
    for found in groups(wrong, lambda case: _export(case.result) or case.way_in):
        refused, call = _refused(found[0].result), _export(found[0].result)
        raised, errors = (refused.error or ("?",))[0], " or ".join(_prescribed(found[0].result))
        yield finding(
            found,
            ("refuses", "refuse"),
            f"{'another device' if call else 'to copy'} with {raised}",
            f"the standard requires {errors}",
            evidence={"raised": raised, "prescribed": errors},
            advice=f"Catch {raised}, too.",
            subject=call,
        )


def _export(result: Result) -> str:
    """The call that asked the source for another device; empty if none did."""
    device = _refused(result).other_device
    if not device:
        return ""
    return f"{result.case.source}.__dlpack__(dl_device={tuple(device)}, copy=False)"


def _refused(result: Result) -> Refused:
    """What the first process tells in which the error was seen."""
    return next((one for _, one in seen(result.refusal) if one.error), Refused())


def _is_wrong_error(cases: Cases, case: CaseView) -> bool:
    """Whether another error was seen than the standard prescribes.

    The same call without ``copy=False`` must copy: else the copy is not what was refused.
    """
    evidence, errors = _refused(case.result), _prescribed(case.result)
    if not evidence.error or not errors or {*errors} & {*evidence.error}:
        return False
    same = f"{case.code.removesuffix(NO_COPY)})"
    copies = any(one.code == same and one.kind == "copy" for one in cases.arrays[case.array])
    return bool(evidence.other_device) or (copies and case.result.status == "unsupported")


def _prescribed(result: Result) -> tuple[str, ...]:
    """The errors of which the standard asks for one where a copy is forbidden; empty if none."""
    if _refused(result).other_device:
        return OTHER_DEVICE
    code = result.case.code
    function = code.partition("(")[0] + "("
    named = (errors for name, errors in WITHOUT_COPY.items() if function.endswith(name))
    return next(named, ()) if code.endswith(NO_COPY) else ()


def prescribed(_: FindingRecord, result: Result) -> str:
    if _refused(result).other_device:
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
    device, errors = _refused(subject.result).other_device, _prescribed(subject.result)
    call, does = f"y = {subject.code}", "refuses by an error that is not prescribed"
    if device:
        call = f"x.__dlpack__(max_version=(1, 3), dl_device={tuple(device)}, copy=False)"
    shown = subject.shown(does, WRONG_ERROR, call=call, prescribed=", ".join(errors))
    return replace(shown, own_call=_export(subject.result))


def broken_by_refusal(cases: Cases) -> Iterator[FindingRecord]:
    """Once it has refused an array, it converts a plain one no more."""
    broken = [case for case in cases.looked_at("refusal") if _is_broken(case)]
    for found in groups(broken, lambda case: case.way_in, look=("refusal", "broken")):
        evidence = _broken(found[0].result)
        after = first_line(evidence.after or "")
        yield finding(
            found,
            ("fails", "fail"),
            "for plain arrays after a refusal",
            more=f"Afterwards a plain array gives: {after}. One like it was converted before.",
            evidence={"refused_by": (evidence.error or ("?",))[0], "after": after},
            advice=f"{replacements(cases, found, 'takes it')} {DO_NOT_TRY}".strip(),
            look=("refusal", "broken"),
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


SETTING = ("settings", "changed")
SHORT = 40
"""Characters of a value that a headline has room for."""


def setting_changed(cases: Cases) -> Iterator[FindingRecord]:
    """After the call, a setting of the framework or of the process is another one."""
    changes = [
        (case, name) for case in cases.looked_at("settings") for name in _changed(case.result)
    ]
    by_name = by(changes, lambda change: change[1])
    for name, changing in by_name.items():
        changing_cases = [case for case, _ in changing]
        for found in groups(changing_cases, lambda case: case.way_in, look=SETTING):
            first = _changed(found[0].result)[name]
            before, after = first.before or "?", first.after or "?"
            fits = max(len(before), len(after)) <= SHORT
            yield finding(
                found,
                ("changes", "change"),
                f"the {name}",
                f"{before} before, {after} after" if fits else "",
                evidence={"setting": name, "before": before, "after": after},
                advice=replacements(cases, found, "keeps it", partial(_keeps, name)),
                look=SETTING,
            )


def _changed(result: Result) -> dict[str, Setting]:
    """By name."""
    known = (evidence.changed or () for _, evidence in seen(result.settings))
    return {one.name: one for changed in known for one in changed if one.name}


def _keeps(name: str, case: CaseView) -> bool:
    """Whether the setting was read before and after the call, and is the same."""
    looks = seen(case.result.settings)
    was_read = all(word != "unknown" for word, _ in looks)
    return bool(looks) and was_read and name not in _changed(case.result)


SETTING_CHANGED = """
<create>
before = repr((<setting>))
try:
    <convert of y>
except Exception as refusal:
    print("it refuses:", type(refusal).__name__, refusal)
after = repr((<setting>))
print("before the call:", before)
print("after the call:", after)
return before != after
"""


def show_setting_changed(subject: Subject, _: Subject | None, found: FindingRecord) -> Effect:
    name = str(found.evidence.get("setting"))
    first = _changed(subject.result).get(name, Setting())
    if not first.code:
        raise NoReproducer("the session does not say how the setting is read")
    return subject.shown(f"changes the {name}", SETTING_CHANGED, setting=first.code)


RULES = (
    Rule(
        "DLP016",
        "crash",
        "error",
        crash,
        expect(
            "The call returns or raises an error.",
            f"A consumer that cannot take an array raises `BufferError` ({FROM_DLPACK}).",
        ),
        show_crash,
        fault=Fault(lambda case: case.is_lost_for_sure),
    ),
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
    Rule(
        "DLP025",
        "setting-changed",
        "warning",
        setting_changed,
        expect("A conversion leaves the settings of its framework and of the process as they are."),
        show_setting_changed,
        "settings",
        Fault(lambda case: bool(_changed(case.result))),
    ),
)
