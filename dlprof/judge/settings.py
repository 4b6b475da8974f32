"""Does it leave the rest alone? The rule on settings of a framework and of the process."""

from __future__ import annotations

from collections.abc import Iterator

from dlprof.errors import NoReproducer
from dlprof.judge.case_view import CaseView, seen
from dlprof.judge.cases import Cases, groups
from dlprof.judge.finding import Claim, finding, replacements
from dlprof.judge.rule import Rule, expect
from dlprof.judge.safety import Fault
from dlprof.judge.script import Effect, Subject
from dlprof.runner.evidence import Setting
from dlprof.runner.session import FindingRecord, Result

SHORT = 40
"""Characters of a value that a headline has room for."""


def setting_changed(cases: Cases) -> Iterator[FindingRecord]:
    """After the call, a setting of the framework or of the process is another one."""
    changes = [
        (case, name) for case in cases.looked_at("settings") for name in _changed(case.result)
    ]
    for name in dict.fromkeys(name for _, name in changes):
        changing = [case for case, changed in changes if changed == name]
        yield from _findings(cases, changing, name)


def _findings(cases: Cases, changing: list[CaseView], name: str) -> Iterator[FindingRecord]:
    for found in groups(changing, lambda case: (case.way_in, _how_often(case))):
        first = _changed(found[0].result)[name]
        before, after = first.before or "?", first.after or "?"
        fits = max(len(before), len(after)) <= SHORT
        yield finding(
            found,
            Claim(
                ("changes", "change"),
                f"the {name}",
                f"{before} before, {after} after" if fits else "",
            ),
            {"setting": name, "before": before, "after": after},
            advice=replacements(cases, found, "keeps it", lambda other: _keeps(other, name)),
            how_often=_how_often(found[0]),
        )


def _how_often(case: CaseView) -> str:
    return case.how_often("settings", "changed")


def _changed(result: Result) -> dict[str, Setting]:
    """By name."""
    known = (evidence.changed or () for _, evidence in seen(result.settings))
    return {one.name: one for changed in known for one in changed if one.name}


def _keeps(case: CaseView, name: str) -> bool:
    """Whether the setting was read before and after the call, and is the same."""
    looks = seen(case.result.settings)
    was_read = all(word != "unknown" for word, _ in looks)
    return bool(looks) and was_read and name not in _changed(case.result)


SETTING_CHANGED = """
<create>
before = repr((<setting>))
<call>
try:
    after = repr((<setting>))
except Exception as error:
    after = f"cannot be read: {type(error).__name__}: {error}"
print("before the call:", before)
print("after the call:", after)
return before != after
"""


REFUSED = """
try:
    <convert of y>
except Exception as refusal:
    print("it refuses:", type(refusal).__name__, refusal)
"""


def show_setting_changed(subject: Subject, _: Subject | None, found: FindingRecord) -> Effect:
    name = str(found.evidence.get("setting"))
    first = _changed(subject.result).get(name, Setting())
    if not first.code:
        raise NoReproducer("the session does not say how the setting is read")
    refuses = subject.result.status == "unsupported"  # else an error is no answer
    call = subject.filled(REFUSED if refuses else "<convert of y>")
    return subject.shown(f"changes the {name}", SETTING_CHANGED, setting=first.code, call=call)


RULES = (
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
