"""Two sessions side by side: one word for each case, with its reason, and the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from dlprof.compare.times import (
    FASTER,
    INVALID,
    SAME,
    SLOWER,
    STATEFUL_BYTES,
    UNSURE,
    WIDE,
    Floor,
    SidePair,
    Time,
    judge,
    processes,
)
from dlprof.compare.verdicts import (
    LOST,
    MEASURED,
    RACE_LOOKS,
    SCALES,
    Change,
    Criteria,
    both_measured,
    changes,
    known_measures,
)
from dlprof.errors import UsageError
from dlprof.judge.case_view import CaseView
from dlprof.judge.cases import alignments
from dlprof.measuring.judged import MET, MISSED
from dlprof.runner.axes import NO_TIMES
from dlprof.runner.machine import NOTABLE_CORES, load_text
from dlprof.runner.quantity import plain_time
from dlprof.runner.session import (
    CONDITIONS,
    CaseRecord,
    Environment,
    Header,
    Result,
    Session,
    on_one_machine,
)
from dlprof.text.clean import counted, first_line

WORSE, GONE, NEW, UNMEASURED = "WORSE", "GONE", "NEW", "UNMEASURED"
"""Words of a case that no time has. UNMEASURED is a case that neither side can measure."""
REGRESSIONS = (WORSE, SLOWER, GONE)

DONE, REGRESSION, NOT_KNOWN, NOTHING = 0, 1, 3, 4
"""Exit codes."""
AT_ONCE = timedelta(seconds=5)
"""The sessions of a gate begin within this time."""

Key = tuple[Any, ...]


def key(case: CaseRecord) -> Key:
    """Return what makes a case the same in another session."""
    return (*case.conversion, case.shape, case.survey)


class Pair(NamedTuple):
    """One case on both sides; None for a side that does not have it."""

    base: Result | None
    head: Result | None

    @property
    def case(self) -> CaseRecord:
        found = self.head or self.base
        assert found is not None  # noqa: S101 - a pair has a side
        return found.case


def match(base: Iterable[Result], head: Iterable[Result]) -> list[Pair]:
    """Pair the cases of both sides."""
    bases, heads = ({key(result.case): result for result in side} for side in (base, head))
    return [Pair(bases.get(name), heads.get(name)) for name in dict.fromkeys((*bases, *heads))]


@dataclass(frozen=True)
class Compared:
    """One case on both sides, with its ``word`` and the reason.

    ``statuses`` are None for a side that lacks it; ``requested`` says whether HEAD's request has
    it. ``reasons`` explain a status that is not ok, by side. ``known`` are the measures of
    :data:`~dlprof.compare.verdicts.SCALES` with a verdict on both sides. ``doubt`` is why the case
    as a whole cannot be judged.
    """

    case: CaseRecord
    statuses: tuple[str | None, str | None]
    times: tuple[Time, ...] = ()
    changes: tuple[Change, ...] = ()
    reasons: tuple[str, str] = ("", "")
    requested: bool = True
    known: frozenset[str] = frozenset()
    doubt: str = ""
    word: str = ""
    reason: str = ""

    @property
    def is_measured(self) -> bool:
        """Whether both sides measured it to the end."""
        return set(self.statuses) <= set(MEASURED)


@dataclass(frozen=True)
class Comparison:
    """Two sessions, case by case. ``incomparable`` says why no time can be compared.

    Only a gate has a ``method``, which says how it measured, and ``unfinished``, the reason why it
    had too little time to find a regression.
    """

    base: Header
    head: Header
    cases: tuple[Compared, ...]
    criteria: Criteria
    differences: tuple[Difference, ...] = ()
    incomparable: str = ""
    method: tuple[str, ...] = ()
    unfinished: str = ""

    @property
    def times(self) -> list[tuple[Compared, Time]]:
        return [(case, time) for case in self.cases for time in case.times]

    def having(self, *words: str) -> list[Compared]:
        return [case for case in self.cases if case.word in words]

    @property
    def too_wide(self) -> list[tuple[Compared, Time]]:
        """The times that are WIDE, with a bound above the limit."""
        return [
            (case, time)
            for case, time in self.times
            if time.word == WIDE and not self.criteria.passes(time)
        ]

    @property
    def nothing(self) -> str:
        """The reason why there is nothing to compare; empty if there is something."""
        for place, name in enumerate(("BASE", "HEAD")):
            if not any(case.statuses[place] for case in self.cases):
                return f"{name} holds no case"
        if not any(all(case.statuses) for case in self.cases):
            return "BASE and HEAD have no case in common: they measure different pairs or arrays"
        if any(case.is_measured or case.doubt or case.word in (WORSE, GONE) for case in self.cases):
            return ""
        reason = next((text for case in self.cases for text in case.reasons if text), "")
        return f"no case was measured on both sides: {reason}"

    @property
    def inconclusive(self) -> str:
        """The reason why a regression could have been missed, besides cases that are UNSURE."""
        if self.unfinished:
            return self.unfinished
        if not self.head.complete and not self.method:
            return "HEAD was stopped before its end"
        verdicts = self.criteria.words
        for measure, scale in SCALES.items():
            if verdicts & scale.keys() and not any(measure in case.known for case in self.cases):
                return f"{measure} is not known on both sides"
        words = {time.word for _, time in self.times}
        if words:
            reasons = {time.reason for _, time in self.times}
            few = reasons.pop() if len(reasons) == 1 else ""
            return "" if {SAME, FASTER, SLOWER, WIDE} & words else few or "no time could be judged"
        is_known = any(case.known or case.doubt for case in self.cases)
        is_known = is_known or bool(self.having(WORSE, GONE))
        return "" if is_known else "no verdict is known on both sides"


def exit_code(comparison: Comparison, unsure: int = NOT_KNOWN) -> int:
    """Return the exit code. A case that is UNSURE, or too wide to pass, gives ``unsure``."""
    if comparison.nothing:
        return NOTHING
    expected = {expectation.verdict for expectation in comparison.head.expectations}
    if comparison.having(*REGRESSIONS) or MISSED in expected:
        return REGRESSION
    if comparison.having(INVALID) or comparison.inconclusive or expected - {MET}:
        return unsure or NOT_KNOWN
    return unsure if comparison.having(UNSURE) or comparison.too_wide else DONE


def compare(
    base: Session,
    head: Session,
    criteria: Criteria,
    in_turns: bool = False,
    decided: Mapping[tuple[Key, str], str] | None = None,
    race_looks: int = RACE_LOOKS,
) -> Comparison:
    """Compare all cases of two sessions, which a gate measured ``in_turns``.

    ``decided`` are the words from the looks of a gate, by case and measure, and ``race_looks`` its
    processes that looked for a race. Sessions of simulated devices have verdicts alone. Raises
    :class:`UsageError` for criteria of their times, and if BASE and HEAD are one measurement.
    """
    if (
        not in_turns
        and base.results
        and (base.created, base.results) == (head.created, head.results)
    ):
        raise UsageError(f"BASE and HEAD are the same measurement, of {base.created}")
    simulated = bool(base.simulated and head.simulated)
    if simulated:
        if criteria.floors not in ((), Criteria().floors):
            measures = ", ".join(floor.measure for floor in criteria.floors)
            raise UsageError(f"--fail-on {measures} needs {NO_TIMES}")
        criteria = replace(criteria, floors=())
    incomparable = "" if in_turns or simulated else refusal(base, head)
    surveyed = all(any(one.case.survey for one in side.results) for side in (base, head))
    pairs = [pair for pair in match(base.results, head.results) if surveyed or not pair.case.survey]
    times = _times(pairs, criteria, incomparable, decided or {}, in_turns)
    aligned = alignments(base.results), alignments(head.results)
    requested = in_turns or _request(base) == _request(head)
    cases = []
    for pair, case_times in zip(pairs, times, strict=True):
        case, (old, new) = pair.case, pair
        changed: tuple[Change, ...] = ()
        known = frozenset[str]()
        if old is not None and new is not None:
            path_alignment = aligned[0].get(case.conversion), aligned[1].get(case.conversion)
            # Only a gate looks again for a race that one side showed.
            changed = changes(old, new, path_alignment, race_looks if in_turns else 1)
            known = known_measures(old, new)
        found = Compared(
            case,
            (old.status if old else None, new.status if new else None),
            case_times,
            changed,
            reasons=(_reason(old), _reason(new)),
            requested=requested,
            known=known,
        )
        cases.append(judged(found, criteria))
    return Comparison(base, head, tuple(cases), criteria, differences(base, head), incomparable)


def is_one_gate(base: Header, head: Header) -> bool:
    """Whether a gate measured both in turns: it begins both sessions at once, by one command."""
    if not (base.request.settings.in_turns and head.request.settings.in_turns):
        return False
    with suppress(ValueError):
        begun = [datetime.fromisoformat(header.created) for header in (base, head)]
        return base.command == head.command and abs(begun[1] - begun[0]) <= AT_ONCE
    return False


def _request(header: Header) -> tuple[object, ...]:
    """Return the pairs, paths and arrays that a session was to measure."""
    request = header.request
    globs_of_pairs = request.scenario.pairs if request.scenario is not None else None
    return globs_of_pairs or request.pairs, request.globs, request.axes


def _reason(result: Result | None) -> str:
    return first_line(result.reason) if result is not None and result.reason else ""


def _times(
    pairs: Sequence[Pair],
    criteria: Criteria,
    incomparable: str,
    decided: Mapping[tuple[Key, str], str],
    in_turns: bool,
) -> list[tuple[Time, ...]]:
    """Return the times of each pair."""
    found: list[dict[str, Time | None]] = []
    samples, words = [], []
    for base, head in pairs:
        case_times: dict[str, Time | None] = {}
        if base is not None and head is not None and both_measured(base, head):
            for floor in () if head.case.survey else criteria.floors:
                sample = paired(base, head, floor, in_turns)
                if why := _why_invalid(base, head, sample) or incomparable:
                    case_times[floor.measure] = Time(floor.measure, INVALID, floor, reason=why)
                    continue
                case_times[floor.measure] = None
                samples.append(sample)
                words.append(decided.get((key(head.case), floor.measure)))
        found.append(case_times)
    times = iter(judge(samples, words))
    return [tuple(time or next(times) for time in case_times.values()) for case_times in found]


def _why_invalid(base: Result, head: Result, sample: SidePair) -> str:
    """Return why the times of a case cannot be compared; empty if they can."""
    for name, side, times in (("BASE", base, sample.base), ("HEAD", head, sample.head)):
        if side.status == "invalid":
            return f"{name}: {side.reason or 'not to be trusted'}"
        if not times:
            return f"{name} has no times of single processes"
    return ""


def paired(base: Result, head: Result, floor: Floor, in_turns: bool) -> SidePair:
    """Return the processes of one measure on both sides; none of a side that failed."""
    sides = [
        processes(side, floor.measure) if side.status in MEASURED else () for side in (base, head)
    ]
    if in_turns:
        # In these rounds it was measured again, without the other side.
        alone = {n for side in (base, head) if side.in_company for n in side.in_company.rounds}
        sides = [tuple(process for process in side if process.round not in alone) for side in sides]
    return SidePair(sides[0], sides[1], floor, _is_stateful(base) or _is_stateful(head), in_turns)


def _is_stateful(result: Result) -> bool:
    """Whether a copy is so large that its processes run in states."""
    view = CaseView(0, result)
    return view.kind != "view" and view.size_bytes >= STATEFUL_BYTES


def judged(case: Compared, criteria: Criteria) -> Compared:
    """Return the case with its word: the worst of its times, changes and statuses."""
    word, reason = _word(case, criteria)
    return replace(case, word=word, reason=reason)


def _word(case: Compared, criteria: Criteria) -> tuple[str, str]:
    worse = [str(change) for change in case.changes if criteria.fails(change)]
    if worse:
        return WORSE, "; ".join(filter(None, (*worse, case.reasons[1])))
    if case.doubt:
        return INVALID, case.doubt
    if not case.is_measured:
        return _unmeasured(case)
    words = {time.word for time in case.times}
    unknown = [str(change) for change in case.changes if change.direction == LOST]
    if unknown:
        words.add(UNSURE)
    word = next((word for word in (SLOWER, INVALID, UNSURE, WIDE, FASTER) if word in words), SAME)
    reasons = [f"{time.measure}: {time.reason}" for time in case.times if time.word == word]
    return word, "; ".join(reasons + unknown) if word in (INVALID, UNSURE, WIDE) else ""


def _unmeasured(case: Compared) -> tuple[str, str]:
    """Return the word of a case without a measurement on both sides, and without a change."""
    base, head = case.statuses
    if head in MEASURED:
        return NEW, "BASE has no time of it"
    if "unsupported" in (head, base if head is None else None):
        return UNMEASURED, case.reasons[0 if head is None else 1]
    if head is None and case.requested and base in MEASURED:
        return GONE, "BASE has it, and HEAD was to measure it"
    if head is None:
        return INVALID, f"HEAD {'does not have it' if case.requested else 'was not to measure it'}"
    # A survey has no time that could be slower: what ends alike on both sides is the same.
    if case.case.survey and base == head:
        return UNMEASURED, case.reasons[1]
    return INVALID, f"HEAD: {head}" + (f": {case.reasons[1]}" if case.reasons[1] else "")


# Differences of the machine, the way of measuring, and versions

REFUSED = {
    "machine": "measured on different machines",
    "measuring": "measured in different ways",
    "condition": "measured under different conditions",
}
"""Kinds of differences that times cannot be compared across, in words."""
ABSENT = {"version": "missing", "setting": "unset", "condition": "unset"}
"""The word for a package or a variable that a side lacks. Other facts that it lacks are unknown."""


@dataclass(frozen=True)
class Difference:
    """``what`` is ``base`` in BASE and ``head`` in HEAD. No times across :data:`REFUSED` kinds."""

    what: str
    base: str
    head: str
    kind: str

    def __str__(self) -> str:
        return f"{self.what} {self.base} → {self.head}"


def differences(base: Header, head: Header) -> tuple[Difference, ...]:
    """Return all differences. A fact that either session lacks is not a difference."""
    found = []
    before, after = _facts(base), _facts(head)
    for kind, old in before.items():
        new, absent = after[kind], ABSENT.get(kind)
        for name in dict.fromkeys((*old, *new)):
            sides = old.get(name, absent), new.get(name, absent)
            if None not in sides and sides[0] != sides[1]:
                found.append(Difference(name, str(sides[0]), str(sides[1]), kind))
    if on_one_machine(base.environment, head.environment) is False:
        ids = [str(header.environment.machine_id) for header in (base, head)]
        found.append(Difference("machine id", ids[0], ids[1], "machine"))
    return tuple(found)


def refusal(base: Header, head: Header) -> str:
    """Return why times of two sessions cannot be compared; empty if they can."""
    entries = differences(base, head)
    found = [
        f"{words}: {', '.join(str(entry) for entry in entries if entry.kind == kind)}"
        for kind, words in REFUSED.items()
        if any(entry.kind == kind for entry in entries)
    ]
    is_other_machine = any(entry.kind == "machine" for entry in entries)
    if not is_other_machine and on_one_machine(base.environment, head.environment) is None:
        found.insert(0, "it is not known whether BASE and HEAD were measured on one machine")
    return "; ".join(found)


def machine_name(environment: Environment) -> str:
    """Return the processor, its cores and the GPUs, for people."""
    cores = environment.cores and counted(environment.cores, "core")
    words = [str(word) for word in (environment.cpu, cores, *environment.gpu_names) if word]
    return ", ".join(words) or "unknown machine"


def load_notice(name: str, header: Header) -> str:
    """Return a notice that other programs left a session less than one core; empty if not."""
    foreign, cores = header.foreign_cores, header.environment.cores
    if foreign is None or cores is None or foreign <= max(NOTABLE_CORES, cores - 1):
        return ""
    return f"While {name} was measured, {load_text(foreign, cores)}"


def _facts(header: Header) -> dict[str, dict[str, object]]:
    """Return the facts of a session by kind; None for a fact that it does not know."""
    environment, settings = header.environment, header.request.settings
    gpus, variables = environment.known_gpus, environment.variables or {}
    clocks = [
        f"{gpu.name} ({gpu.sm_clock_max_mhz} MHz, memory {gpu.memory_clock_max_mhz} MHz)"
        for gpu in gpus or ()
    ]
    texts: dict[str, object] = {name: text or "unset" for name, text in variables.items()}
    conditions = {name: texts.pop(name) for name in variables if name.startswith(CONDITIONS)}
    drivers = {str(gpu.driver_version) for gpu in gpus or ()}
    return {
        "machine": {
            "machine": environment.machine,
            "cpu": environment.cpu,
            "cores": environment.cores,
            "platform": environment.platform,
            "cuda_devices": environment.cuda_devices,
            "GPUs": None if gpus is None else ", ".join(clocks) or "none",
            "CUDA device": "simulated" if header.simulated else "real",
        },
        "measuring": {
            "CPU governor": environment.governor,
            "samples of": settings.sample_ns and plain_time(float(settings.sample_ns)),
            "all pairs in one process": settings.together,
            "measured in turns": settings.in_turns,
        },
        "version": {
            "dlprof": environment.dlprof,
            "python": environment.python,
            "implementation": environment.implementation,
            **(environment.packages or {}),
            "driver": ", ".join(sorted(drivers)) or None,
        },
        "condition": conditions,
        "setting": {"setup": settings.setup or "none", **texts},
    }
