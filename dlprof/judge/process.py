"""Rules on crashes, refusals and settings of the process."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator
from functools import partial

from dlprof.errors import NoReproducer
from dlprof.judge import thresholds
from dlprof.judge.case_view import CaseView, all_looks
from dlprof.judge.cases import Cases
from dlprof.judge.rule import (
    ASARRAY,
    DO_NOT_TRY,
    EXPORT,
    FROM_DLPACK,
    Rule,
    code,
    finding,
    replacements,
)
from dlprof.judge.safety import Fault
from dlprof.judge.script import CHILD_LIMIT_S, LOOK, Effect, Subject, child_effect
from dlprof.protocol.messages import AT_EXIT
from dlprof.runner.evidence import Fork, Lost, Refused, Setting
from dlprof.runner.session import FindingRecord, Result
from dlprof.text.clean import first_line, first_words
from dlprof.text.source import plain

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
"""For imports and the array; each conversion has a limit of its own."""
SHORTEST_S = 10


HOLD = """
<create>
held = sys.modules["__main__"].held = [x]
held.append(held)  # in a cycle, as in a model: alive when the interpreter exits
if multiprocessing.current_process().name != "control":
    <convert of y>
    held.append(y)
"""
EXIT = """
def exit_code(name):
    spawn = multiprocessing.get_context("spawn")  # a forked child skips the interpreter's exit
    child = spawn.Process(target=convert, name=name)
    child.start()
    child.join()
    print("exit code of the", name, child.exitcode)
    return child.exitcode

control, conversion = exit_code("control"), exit_code("conversion")
if control != 0 or conversion in (None, 1):
    raise RuntimeError("a process did not come to the exit that is in question")
return conversion != 0
"""


def show_crash(subject: Subject) -> Effect:
    """The process dies of the conversion, or the conversion never returns."""
    case = CaseView(0, subject.result)
    if case.misuse:
        raise NoReproducer("only the simulated driver reports it")
    if case.lost is not None and case.lost.stage == AT_EXIT:
        child = subject.filled(HOLD)
        return Effect("crashes at interpreter exit", subject.filled(EXIT), subject, child)
    if subject.result.status == "ok":
        raise NoReproducer(
            "the process was lost in an instrument, which converts in ways of its own; alone, the"
            " conversion came back"
        )
    loss = subject.result.lost or Lost()
    if loss.limit_s:
        limit_s = math.ceil(max(loss.limit_s, SHORTEST_S))
        alarm = f"signal.alarm({limit_s})  # ends the process if the call has not returned by then"
        does, whole_s = f"gives no answer within {loss.limit_s:g} s", limit_s + IMPORTS_S
    else:
        alarm, whole_s = "", CHILD_LIMIT_S
        does = f"kills the process{f' ({loss.signal})' if loss.signal else ''}"
    no_alarm = "signal.alarm(0)" if alarm else ""
    child = subject.filled(CRASH, create=subject.create(), alarm=alarm, no_alarm=no_alarm)
    return child_effect(does, subject, child, whole_s)


@partial(
    Rule,
    "DLP016",
    "crash",
    "error",
    "The call returns or raises an error, and the process ends normally.",
    show_crash,
    source=f"A consumer that cannot take an array raises `BufferError` ({FROM_DLPACK}).",
    fault=Fault(lambda case: case.is_lost_for_sure or bool(case.misuse)),
)
def crash(cases: Cases) -> Iterator[FindingRecord]:
    """The process died or gave no answer within the time limit, or a simulated driver reports a
    use of memory, a stream or an event that does not exist.

    An instrument that exceeds its time limit proves no fault of the conversion.
    """
    for group in cases.groups(
        lambda case: (
            case.lost
            and case.is_lost_for_sure
            and (case.pair, case.lost.how, case.lost.stage == AT_EXIT)
        )
    ):
        losses = [case.lost for case in group if case.lost is not None]
        stages = list(dict.fromkeys(loss.stage for loss in losses))
        during = f" during {' or '.join(map(str, stages))}" if all(stages) else ""
        other, how = cases.replacement(group[0]), first_line(losses[0].how)
        verb, does, numbers = ("did not return:",) * 2, f"{how}{during}", ""
        if stages == [AT_EXIT]:
            verb, does = ("crashes", "crash"), "at interpreter exit with a result still alive"
            # Python's own report of a fatal error comes last.
            words = (group[0].result.output or "").partition("Fatal Python error")[0].split("\n")
            numbers = ", ".join([how, *[line for line in words if line.strip()][-1:]])
        yield finding(group, verb, does, numbers, advice=f"{code(other)} works." if other else "")
    for group in cases.groups(lambda case: case.misuse and (case.pair, case.misuse)):
        yield finding(
            group,
            ("misuses the driver:", "misuse the driver:"),
            group[0].misuse,
            brief="A GPU may end the process there.",
        )


NO_COPY = ", copy=False)"
PRESCRIBED = {
    "from_dlpack(": ("BufferError", "ValueError"),
    "asarray(": ("ValueError",),
}
"""By function: the errors of ``copy=False`` if it would have to copy. The page of from_dlpack names
BufferError under ``copy``, and ValueError under "Raises"."""
OTHER_DEVICE = ("BufferError",)
"""``__dlpack__`` with ``copy=False`` raises BufferError "in case a copy is deemed necessary (e.g.
if a cross-device data movement is requested …)"."""
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


def show_wrong_error(subject: Subject) -> Effect:
    device, errors = _refusal(subject.result).other_device, _prescribed_errors(subject.result)
    call = f"y = {subject.code}"
    if device:
        call = f"x.__dlpack__(max_version=(1, 3), dl_device={tuple(device)}, copy=False)"
    does = "refuses by an error that is not prescribed"
    return subject.shown(does, WRONG_ERROR, call=call, prescribed=", ".join(errors))


@partial(
    Rule,
    "DLP024",
    "wrong-error",
    "info",
    "A copy that `copy=False` forbids is refused as prescribed: by BufferError for another device"
    f" ({EXPORT}, 2023.12), else by the error of its function ({FROM_DLPACK}; {ASARRAY}).",
    show_wrong_error,
    instrument="refusal",
)
def wrong_error(cases: Cases) -> Iterator[FindingRecord]:
    """A forbidden copy is refused by another error than the standard prescribes."""

    def call(case: CaseView) -> str:
        """Return the call that asked the source for another device, if any."""
        device = _refusal(case.result).other_device or ()
        source = case.result.case.source
        return f"{source}.__dlpack__(dl_device={tuple(device)}, copy=False)" if device else ""

    def is_wrong(case: CaseView) -> bool:
        evidence, errors = _refusal(case.result), _prescribed_errors(case.result)
        if not evidence.error or not errors or {*errors} & {*evidence.error}:
            return False
        # The same call without copy=False must copy: else the copy is not what was refused.
        same = f"{case.code.removesuffix(NO_COPY)})"
        copies = any(
            other.code == same and other.kind == "copy" for other in cases.arrays[case.array]
        )
        return bool(evidence.other_device) or (copies and case.result.status == "unsupported")

    for group in cases.groups(lambda case: is_wrong(case) and (call(case) or case.entry)):
        export, errors = call(group[0]), " or ".join(_prescribed_errors(group[0].result))
        raised = (_refusal(group[0].result).error or ("?",))[0]
        yield finding(
            group,
            ("refuses", "refuse"),
            f"{'another device' if export else 'to copy'} with {raised}",
            f"the standard requires {errors}",
            advice=f"Catch {raised}, too.",
            subject=export,
        )


def _refusal(result: Result) -> Refused:
    return next((look for _, look in all_looks(result.refusal) if look.error), Refused())


def _prescribed_errors(result: Result) -> tuple[str, ...]:
    if _refusal(result).other_device:
        return OTHER_DEVICE
    code = result.case.code
    function = code.partition("(")[0] + "("
    named = (errors for name, errors in PRESCRIBED.items() if function.endswith(name))
    return next(named, ()) if code.endswith(NO_COPY) else ()


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


def show_broken(subject: Subject) -> Effect:
    evidence = _failure(subject.result)
    if not evidence.plain_create or not evidence.plain_code:
        raise NoReproducer("the session does not say which plain array was converted")
    return subject.shown(
        "fails for plain arrays after a refusal",
        BROKEN,
        plain_create=plain(evidence.plain_create),
        plain_code=evidence.plain_code,
    )


@partial(
    Rule,
    "DLP026",
    "broken-by-refusal",
    "error",
    "A refusal leaves the process as it was.",
    show_broken,
    instrument="refusal",
    fault=Fault(lambda case: bool(_failure(case.result).after)),
)
def broken_by_refusal(cases: Cases) -> Iterator[FindingRecord]:
    """After it has refused an array, it fails for a plain one too."""
    look = "refusal", "broken"
    for group in cases.groups(lambda case: _failure(case.result).after and case.entry, look=look):
        after = first_line(_failure(group[0].result).after or "")
        yield finding(
            group,
            ("fails", "fail"),
            "for plain arrays after a refusal",
            more=f"Afterwards a plain array gives: {after}. One like it was converted before.",
            advice=f"{replacements(cases, group, 'takes it')} {DO_NOT_TRY}".strip(),
            look=look,
        )


def _failure(result: Result) -> Refused:
    return (result.refusal.first("broken") if result.refusal else None) or Refused()


HANGS = ("fork", "hangs")
AFTER_FORK = """
def child_returns():
    child = os.fork()
    if child == 0:
        <convert of y>
        os._exit(0)
    for _ in range(100):
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        sleep(0.1)
    os.kill(child, signal.SIGKILL)
    return False

<array>
if not child_returns():
    print("it hangs without a conversion before the fork, too", flush=True)
    sys.exit(1)
<convert of y>
sys.exit(0 if child_returns() else 3)
"""


def show_hang(subject: Subject) -> Effect:
    evidence = _hang(CaseView(0, subject.result)) or Fork()
    subject = subject.with_array(evidence)
    child = subject.filled(AFTER_FORK, array=subject.recreate(evidence))
    verb = "never becomes ready" if evidence.returned else "hangs"
    return child_effect(f"{verb} in a forked child", subject, child)


def _hang(case: CaseView) -> Fork | None:
    return case.result.fork.first("hangs") if case.result.fork is not None else None


@partial(
    Rule,
    "DLP032",
    "hangs-after-fork",
    "info",
    "The result is ready in a forked child, too.",
    show_hang,
    instrument="fork",
)
def hangs_after_fork(cases: Cases) -> Iterator[FindingRecord]:
    """The call, or a wait for its result, hangs in a forked child, after its parent converted."""

    def cause(case: CaseView) -> Hashable:
        hang = _hang(case)
        return hang is not None and (case.pair[1], hang.returned)

    def returns(case: CaseView) -> bool:
        return case.result.fork is not None and case.result.fork.says("returns")

    for group in cases.groups(cause, look=HANGS):
        advice, hang = "Start processes by spawn or forkserver.", _hang(group[0])
        is_late = hang is not None and hang.returned
        yield finding(
            group,
            ("never becomes ready", "never become ready") if is_late else ("hangs", "hang"),
            "in a forked child, after its parent converted",
            advice=f"{advice} {replacements(cases, group, 'returns', returns)}".strip(),
            look=HANGS,
        )


SETTING = ("settings", "changed")
MOST_WORDS = 30
"""Of a warning."""
SHORT = 40
"""Most characters of a value in a headline."""
SETTING_CHANGED = """
<create>
before = repr((<setting>))
end = perf_counter() + 10
for _ in range(1000):
    try:
        <convert of y>
    except Exception as refusal:
        print("it refuses:", type(refusal).__name__, refusal)
        break
    if repr((<setting>)) != before or perf_counter() > end:
        break
after = repr((<setting>))
print("before the calls:", before)
print("after the calls:", after)
return before != after
"""


def show_setting_changed(subject: Subject) -> Effect:
    name = str(subject.finding.evidence.get("setting"))
    first = _changed_settings(subject.result).get(name, Setting())
    if not first.code:
        raise NoReproducer("the session does not say how the setting is read")
    return subject.shown(f"changes the {name}", SETTING_CHANGED, setting=first.code)


@partial(
    Rule,
    "DLP025",
    "setting-changed",
    "warning",
    "A conversion leaves the settings of its framework and of the process as they are.",
    show_setting_changed,
    instrument="settings",
    fault=Fault(lambda case: bool(_changed_settings(case.result))),
)
def setting_changed(cases: Cases) -> Iterator[FindingRecord]:
    """The call changes a setting of the framework or of the process."""

    def keeps(name: str, case: CaseView) -> bool:
        """Whether the setting was read before and after the call, and is the same."""
        looks = all_looks(case.result.settings)
        was_read = all(word != "unknown" for word, _ in looks)
        return bool(looks) and was_read and name not in _changed_settings(case.result)

    def cause(name: str, case: CaseView) -> Hashable:
        return name in _changed_settings(case.result) and case.entry

    names = dict.fromkeys(name for case in cases.cases for name in _changed_settings(case.result))
    for name in names:
        for group in cases.groups(partial(cause, name), look=SETTING):
            first = _changed_settings(group[0].result)[name]
            before, after = first.before or "?", first.after or "?"
            fits = max(len(before), len(after)) <= SHORT
            yield finding(
                group,
                ("changes", "change"),
                f"the {name}",
                f"{before} before, {after} after" if fits else "",
                evidence={"setting": name},
                advice=replacements(cases, group, "keeps it", partial(keeps, name)),
                look=SETTING,
            )


WARNS = """
<create>
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    <convert of y>
for one in caught:
    print(f"{one.category.__name__}: {one.message}")
<look>
return any(one.category.__name__ == <kind> for one in caught)
"""
OF_WRITING = re.compile(r"not writ(e)?able|non-writ(e)?able|read-?only", re.IGNORECASE)


def show_warns(subject: Subject) -> Effect:
    text, is_false = _warning(CaseView(0, subject.result))
    look = ""
    if is_false and subject.has("address", "x") and subject.has("address", "y"):
        look = f"{LOOK.strip()}\nif addresses[0] == addresses[1]:\n    return False"
    does = "warns of writes although it copies" if is_false else "warns"
    return subject.shown(does, WARNS, kind=repr(text.partition(":")[0]), look=subject.filled(look))


def _warning(case: CaseView) -> tuple[str, bool]:
    """Return a warning, and whether the result contradicts it; an empty one for none.

    A copy is the user's own: whether its source may be written does not matter.
    """
    is_right = case.is_right or case.recasts
    is_own = case.kind == "copy" and is_right and case.writable.result is not False
    looks = (evidence.texts or () for _, evidence in all_looks(case.result.warnings))
    texts = [text for look in looks for text in look]
    false = next((text for text in texts if is_own and OF_WRITING.search(text)), "")
    return false or (*texts, "")[0], bool(false)


@partial(
    Rule,
    "DLP031",
    "warns",
    {"warning": "if it warns of writes and the result is a copy", "info": ""},
    "A warning is true of the result.",
    show_warns,
    instrument="warnings",
)
def warns(cases: Cases) -> Iterator[FindingRecord]:
    """The call gives a warning."""

    def cause(case: CaseView) -> Hashable:
        text, is_false = _warning(case)
        return text and (case.pair, first_words(text, MOST_WORDS), is_false)

    def is_quiet(case: CaseView, other: CaseView) -> bool:
        """Whether the other case gives no warning, and is not slow in its place."""
        return not _warning(other)[0] and other.cost_ns <= thresholds.SLOW_RATIO * case.cost_ns

    for group in cases.groups(cause):
        text, is_false = _warning(group[0])
        kind, _, message = text.partition(": ")
        contradiction = " of writes although the result is a copy" if is_false else ""
        yield finding(
            group,
            ("warns", "warn"),
            f"with a {kind}{contradiction}",
            f'"{_sentences(message).rstrip(".")}"',
            advice=replacements(cases, group, "does not warn", partial(is_quiet, group[0])),
            severity="warning" if is_false else "info",
        )


def _sentences(text: str) -> str:
    """Return the first words, up to the end of a sentence if there is one."""
    words = first_words(text, MOST_WORDS)
    whole, end, _ = words.rpartition(". ")
    return f"{whole}. …" if end and words.endswith("…") else words


def _changed_settings(result: Result) -> dict[str, Setting]:
    known = (evidence.changed or () for _, evidence in all_looks(result.settings))
    return {setting.name: setting for changed in known for setting in changed if setting.name}
