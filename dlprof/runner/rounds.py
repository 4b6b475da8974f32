"""The rounds: fresh workers and shuffled cases, whatever a framework does to its process."""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dlprof.protocol.messages import OTHER_VALUES, SAME_ERROR, verdict
from dlprof.runner.case_client import CaseClient, Turns, imports_of, status_of
from dlprof.runner.diagnosis import (
    IN_COMPANY,
    Diagnosis,
    changed_settings,
    died_before,
    serves_no_more,
)
from dlprof.runner.interrupts import uninterrupted
from dlprof.runner.pairing import Case
from dlprof.runner.parallel import CASES_OF_LANE, Lane, finish, lanes, processors
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Settings
from dlprof.runner.schedule import (
    OWN_PROCESS_BYTES,
    Group,
    Round,
    Stop,
    grouped,
    offset_of,
    process_of,
    shuffled,
)
from dlprof.runner.session import INTERRUPTED
from dlprof.runner.session_file import SessionFile
from dlprof.runner.survey import PLAINEST, is_looked_at_once, is_plainest
from dlprof.runner.worker_client import Outcome, WorkerClient, WorkerPool

MOST_SPOILED = 3
"""A path that ended so many processes, or changed their settings, is tried with no other array of
the survey."""
SPARES = 2
"""Where a path ends processes: one to try its case alone, and one to go on with."""
Answered = Generator[Any, int | None, None]
"""In turns a :data:`~dlprof.runner.schedule.Round`, else a :data:`~dlprof.runner.parallel.Lane`."""
Kind = tuple[Any, ...]
"""What cases that share a process have in common: see :func:`process_of`."""
CONTROL = ("lifetime",)
"""What converts an array hundreds of times."""
NOT_BROKEN = "not in a process without other conversions"
NO_PLAIN = "the survey has no plain array of the path to try that again with"
UNTRIED = "a process without other conversions did not come to that: {}"
REFUSED_AT_ONCE = "a process without other conversions refused a plain array at once: {}"
"""Why refusals alone are not the cause, or are not known to be."""
STOPPED = "stopped before another process showed the same: "
UNMAKES = "not tried: its array cannot be made after other conversions"
SPOILS = f"not tried: the path ended or changed {MOST_SPOILED} processes before"
ENDS = f"not tried: such an array of {PLAINEST.name} ended the process"


class Doubt(NamedTuple):
    """A case that was refused or blamed after others. ``before`` are those that came before it each
    time; those of its own path excuse no blame.
    """

    refused: Outcome
    round: int
    before: set[int]
    blame: str = ""
    """What a rule would blame it for, if it was not refused."""


class Runner:
    """Measures cases in one interpreter, and keeps every answer in the session file ``file``.

    ``variables`` are environment variables of the frameworks. A round that the file holds
    already is not measured again.
    """

    def __init__(
        self,
        python: str,
        variables: Mapping[str, str],
        cases: Sequence[Case],
        settings: Settings,
        file: SessionFile,
        watcher: Watcher,
    ) -> None:
        self.cases = cases
        self.settings = settings
        self.file = file
        self.watcher = watcher
        self.rounds_done = 0
        self.out_of_time = False
        self.undiagnosed = 0, 0
        """Paths without a diagnosis when the time was over, and all paths."""
        self._doubts: dict[int, Doubt] = {}
        self._doubted: set[int] = set()
        """All that were ever in doubt."""
        self._surveying = 0
        """How many lanes are surveying."""
        self._asked: Counter[Kind] = Counter()
        """How many workers of a kind are asked for a case for the first time."""
        self._shared: deque[Group] | None = None
        """The cases that they survey, those of one path together."""
        self._spoiled: Counter[Any] = Counter()
        """How many processes each path ended, or changed the settings of."""
        self._crashing: set[Any] = set()
        """Pairs of which a case of the survey ended a process."""
        self._ended: set[Any] = set()
        """Paths, shapes and layouts of which the plainest dtype ended a process."""
        self._unmade: dict[Kind, str] = {}
        """The arrays of the survey that a producer cannot make, and why."""
        self._makes: set[Kind] = set()
        """The arrays of the survey that a new process made."""
        self._tried: set[str] = set()
        """The producers that were asked for that."""
        self._retained: defaultdict[Kind, set[str]] = defaultdict(set)
        """How refusals of a path begin that are known to leave something behind."""
        self._of_numpy: defaultdict[Kind, set[str]] = defaultdict(set)
        """How those of an import begin that leave nothing behind of any export's NumPy array."""
        self._blamed: set[Kind] = set()
        """Paths, and what a rule would blame them for, which two processes saw of an array."""
        self._converting: dict[WorkerClient, Case] = {}
        """What each worker is asked for."""
        self._kept_from: Counter[str] = Counter()
        """How many processes could not make an array any more that a new one makes."""
        self._pool = WorkerPool(python, variables)
        self._client = CaseClient(self._pool, settings, file, watcher)
        own = WorkerPool(python, variables)  # what is loaded ahead for another pair is not for it
        self._diagnosis = Diagnosis(cases, CaseClient(own, settings, file, watcher))

    def leave_out_traces(self) -> None:
        """CUPTI is missing: no worker is asked for a trace."""
        self._diagnosis.can_trace = False

    def run(self) -> None:
        """All rounds, or as many as the budget allows; at least one."""
        timed = [index for index, case in enumerate(self.cases) if not case.surveyed]
        surveyed = [index for index, case in enumerate(self.cases) if case.surveyed]
        started, rounds = time.monotonic(), self.settings.rounds if timed else 0
        paths = self._diagnosis.paths
        self.watcher.start(len(timed) * rounds + len(surveyed) + paths)
        for round_ in range(rounds):
            if round_ and self._over_budget(started):
                break
            groups = list(self._groups(round_, set(timed)))
            for place, group in enumerate(groups):
                after = groups[place + 1 : place + 2]
                if not after and len(groups) == 1 and (surveyed or round_ + 1 < rounds):
                    after = groups  # other cases of the same frameworks
                self._import_together([group, *after], round_)
                finish([self._run_group(self._doubtful_early(group), round_)])
            self.rounds_done = round_ + 1
        self._settle_doubts()
        self.out_of_time = self._over_budget(started)
        if not self.out_of_time and self.rounds_done == rounds:
            try:
                self._look_wider(surveyed, lambda: self._over_budget(started))
            except BaseException:
                with uninterrupted():
                    self._keep_blamed()
                raise
        self.undiagnosed = len(self._diagnosis.left()), paths

    def _keep_blamed(self) -> None:
        """What the user stopped before another process could see the same; it is asked again."""
        for index, doubt in self._doubts.items():
            if doubt.blame:
                found = replace(doubt.refused, status=INTERRUPTED, reason=f"{STOPPED}{doubt.blame}")
                self._client.record(index, doubt.round, found)

    def _import_together(self, groups: Sequence[Group], round_: int) -> None:
        """Have the worker of the first group import, and meanwhile that of the next, unless a
        worker for the first one is there. An import takes one processor, and no time is taken.

        A setup of the user's own may do anything, and runs in one process at a time.
        """
        index, case = groups[0][0]
        is_ready = self._pool.loaded(process_of(index, case, self.settings))
        of_all = [case for group in groups for _, case in group]
        fit = all(
            one.device == "cpu"
            and one.size_bytes < OWN_PROCESS_BYTES
            and not one.producer.source.startswith("code:")
            for one in of_all
        )
        if is_ready or not fit or len(groups) == 1 or processors() == 1:
            return
        self._pool.close()
        self.watcher.case(case, round_, "import")
        for group in groups:
            self._load(group)
        self.wait()

    def _load(self, group: Group) -> None:
        kind = process_of(*group[0], self.settings)
        self._pool.load(kind, [imports_of(case) for _, case in group])

    def _doubtful_early(self, group: Group) -> Group:
        """Doubtful cases in reversed order, but after the first case: its first call is timed."""
        first, *rest = group
        ranks = {index: -rank for rank, index in enumerate(self._doubts)}
        return [first, *sorted(rest, key=lambda entry: ranks.get(entry[0], 1))]

    def _settle_doubts(self) -> None:
        """Ask for all that no other round settled; what works then has all its rounds."""
        finish([self._again(0)])
        for round_ in range(self.rounds_done):
            left = [index for index in sorted(self._doubted) if self.file.needs(index, round_)]
            for group in self._grouped(left):
                finish([self._run_group(group, round_)])

    def _look_wider(self, surveyed: Sequence[int], is_over: Callable[[], bool]) -> None:
        """The survey and the diagnosis. They take no times, so several workers share the machine.

        Not on a device: there a worker tells by its queues whether a conversion waits.
        """
        left = sorted(self._diagnosis.left())
        for _ in range(self._diagnosis.paths - len(left)):
            self.watcher.step()  # refused, crashed, or diagnosed before the run was resumed
        on_host = all(self.cases[index].device == "cpu" for index in (*left, *surveyed))
        count = lanes(len(left) + len(surveyed)) if on_host else 1
        surveys = deque(map(_by_path, self._needed(0, surveyed)))
        diagnoses = deque(shuffled(self._grouped(left), self.settings.seed, self.settings.rounds))
        finish([self._lane(surveys, diagnoses, is_over) for _ in range(count)])

    def _lane(
        self,
        surveys: deque[deque[Group]],
        diagnoses: deque[Group],
        is_over: Callable[[], bool],
    ) -> Lane:
        """Survey, then diagnose. Lanes share the paths of a pair: so most of what a process refused
        after other cases is settled by a process that was not asked for those.
        """
        self._surveying += 1
        before = None
        while (paths := self._to_survey(surveys)) is not None:
            if before is not None and before is not paths and self._surveying == 1:
                self._pool.close()  # what was loaded for the pair before
            before = paths
            yield from self._run(paths, 0)
        self._surveying -= 1
        if not self._surveying:
            yield from self._again(0)
            self._pool.close()  # a diagnosis measures waits: nothing imports beside it
        yield from self._diagnosis.lane(diagnoses, is_over)

    def _to_survey(self, surveys: deque[deque[Group]]) -> deque[Group] | None:
        """What the lanes share; the next, if what is left of it is not worth an import."""
        if surveys and surveys[0] is self._shared and sum(map(len, surveys[0])) < CASES_OF_LANE:
            surveys.popleft()
        self._shared = surveys[0] if surveys else None
        return self._shared

    def round(self, round_: int, only: set[int]) -> None:
        for group in self._groups(round_, only):
            finish([self._run_group(group, round_)])
            finish([self._again(round_)])
        self.rounds_done = max(self.rounds_done, round_ + 1)

    def turns(self, round_: int, order: Sequence[int], cpu: int | None) -> Round:
        """One round of some cases, in turns with another runner; samples are on ``cpu``."""
        for group in self._needed(round_, order):
            turns = {"cpu": cpu, "offset_bytes": offset_of(round_)}
            yield from self._run_group(group, round_, turns)
            yield from self._again(round_, turns)
        self.rounds_done = max(self.rounds_done, round_ + 1)

    def diagnose(self, only: set[int], is_over: Callable[[], bool]) -> set[int]:
        """Diagnose the paths of some cases until the time ``is_over``. The cases that are left."""
        chosen = sorted(self._diagnosis.left() & only)
        groups = shuffled(self._grouped(chosen), self.settings.seed, self.settings.rounds)
        finish([self._diagnosis.lane(deque(groups), is_over)])
        return self._diagnosis.left() & only

    def look_again(self, only: set[int], instrument: str, look: int) -> None:
        """See :meth:`~dlprof.runner.diagnosis.Diagnosis.look_again`."""
        for group in self._grouped(sorted(only)):
            self._diagnosis.look_again(group, instrument, look)

    def measure_later(self, instruments: tuple[str, ...]) -> None:
        """Ask for these instruments in all rounds but the first."""
        self._client.later_rounds = instruments

    def load(self, round_: int, order: Sequence[int]) -> None:
        """Start the first worker of :meth:`turns`, which imports meanwhile."""
        self._pool.close()
        for group in self._needed(round_, order):
            self.watcher.case(group[0][1], round_, "import")
            self._load(group)
            return

    def wait(self) -> None:
        """Wait until the worker of :meth:`load` has imported. A worker that died is dropped."""
        self._pool.wait(self.settings.limit_s)

    def close(self) -> None:
        self._pool.close()

    def _over_budget(self, started: float) -> bool:
        budget_s = self.settings.budget_s
        return budget_s is not None and time.monotonic() - started > budget_s

    def _groups(self, round_: int, only: set[int]) -> Iterator[Group]:
        """The cases that a round still needs, grouped for one worker each, in random order."""
        return shuffled(self._needed(round_, sorted(only)), self.settings.seed, round_)

    def _needed(self, round_: int, order: Iterable[int]) -> list[Group]:
        """The cases that a round still needs, grouped for one worker each."""
        needed = []
        for index in order:
            if self.file.needs(index, round_):
                needed.append(index)
            else:
                self.watcher.step()
        return self._grouped(needed)

    def _grouped(self, indices: Iterable[int]) -> list[Group]:
        return grouped(((index, self.cases[index]) for index in indices), self.settings)

    def _run_group(self, group: Group, round_: int, turns: Turns | None = None) -> Answered:
        """One round of a group."""
        return self._run(deque([group]), round_, turns)

    def _run(self, shared: deque[Group], round_: int, turns: Turns | None = None) -> Answered:
        """One round of the ``shared`` groups of one kind. Other lanes may take from them, too.

        A case may have broken the process for those after it. So what was refused after other
        cases is in doubt, until a process refuses it in which none of them came before.
        """
        alone = sum(map(len, shared)) == 1
        waiting: Group = []
        while waiting or shared:
            first = (waiting or shared[0])[0]
            if turns:  # before a process starts that would disturb the other side
                yield Stop(first[0])
            kind = process_of(*first, self.settings)
            with self._pool.worker(kind) as worker:
                yield from self._serve(worker, kind, waiting, shared, round_, turns, alone)

    def _serve(
        self,
        worker: WorkerClient,
        kind: Kind,
        waiting: Group,
        shared: deque[Group],
        round_: int,
        turns: Turns | None,
        alone: bool,
    ) -> Answered:
        """Ask one worker for all that is waiting, as long as it lives."""
        served: dict[int, Case] = {}
        first = (waiting or shared[0])[0][1]
        if not (yield from self._try_arrays(worker, first)):
            return
        if first.pair in self._crashing:
            self._load_beside(kind, first, SPARES)
        while entry := (yield from self._take(waiting, shared, served, kind, worker)):
            index, case = entry
            if served and turns:
                yield Stop(index)
            doubt = self._doubts.pop(index, None)
            if self._is_blamed(index, round_, doubt) or self._is_known(index, round_, doubt):
                continue
            self._asked[kind] += doubt is None
            with self._client.kept_if_stopped(index, round_, _name(round_), worker.heard):
                known = self._known(case)
                self._converting[worker] = case
                outcome = yield from self._client.in_turns(
                    worker, index, case, round_, turns, alone, known
                )
                del self._converting[worker]
            self._asked[kind] -= doubt is None
            self._note_of_numpy(case, outcome)
            if served and self._needs_another(case, outcome, served):
                waiting.insert(0, entry)
                self._doubts |= {index: doubt} if doubt else {}
                return
            if self._is_kept_from(case, outcome):
                self._client.keep(index, round_, Outcome("skipped", UNMAKES))
            elif self._is_doubtful(index, round_, outcome, doubt, served):
                self._load_beside(kind, case)
            else:
                self._asked[kind] += doubt is None
                blames = alone or self._is_its_own(case, outcome, served)
                yield from self._settle(index, round_, outcome, turns, blames)
                self._asked[kind] -= doubt is None
            served[index] = case
            if serves_no_more(outcome):
                return

    def _take(
        self,
        waiting: Group,
        shared: deque[Group],
        served: Mapping[int, Case],
        kind: Kind,
        worker: WorkerClient,
    ) -> Generator[Any, int | None, tuple[int, Case] | None]:
        """What to ask the worker next. If nothing is waiting, lanes of a survey settle what others
        doubt: a worker that ``served`` none of the cases before it need not be a new one. In
        reversed order none comes before another.
        """
        while (place := self._place(waiting)) is None:
            if shared:
                waiting += shared.popleft()
                continue
            if not self._surveying:
                return None
            if self._asked[kind]:  # who settles now could not settle what is doubted next
                yield worker
                continue
            for index, doubt in reversed(self._doubts.items()):
                entry = index, self.cases[index]
                if doubt.before.isdisjoint(served) and process_of(*entry, self.settings) == kind:
                    return entry
            if not waiting:
                return None
            yield worker
        return waiting.pop(place)

    def _place(self, waiting: Group) -> int | None:
        """Where the case is to ask for next: the first whose refusal no other worker repeats just
        now, or is about to tell of. What that shows may stand for this worker, too.
        """
        refusing = [
            _same_refusal(case)
            for worker, case in self._converting.items()
            if worker.is_at("refusal")
        ]
        for place, (_, case) in enumerate(waiting):
            if is_plainest(case) or _same_refusal(case) not in refusing:
                return place
        return None

    def _known(self, case: Case) -> dict[str, set[str]]:
        retained = self._retained[case.pair, case.path]
        return {"retained": retained, "of_numpy": self._of_numpy[_import(case)]}

    def _note_of_numpy(self, case: Case, outcome: Outcome) -> None:
        if case.surveyed and _evidence_of_refusal(outcome).get("of_numpy"):
            self._of_numpy[_import(case)].add(_begins(outcome))

    def _is_doubtful(
        self,
        index: int,
        round_: int,
        outcome: Outcome,
        doubt: Doubt | None,
        served: Mapping[int, Case],
    ) -> bool:
        """Whether a refusal, or what a rule would blame, may be due to what the process ``served``
        before.
        """
        case = self.cases[index]
        is_refused, blame = _was_refused(outcome), _blame(case, outcome)
        if not is_refused and not blame:
            _compare(outcome, doubt)
            return False
        others = {
            at for at, one in served.items() if is_refused or (one.pair, one.path) != _path(case)
        }
        if doubt is None or doubt.blame != blame:
            doubt = Doubt(outcome, round_, others, blame)
        before = others & doubt.before
        if blame and not before:
            self._blamed.add((_path(case), blame))
        if before:
            self._doubts[index] = doubt._replace(before=before)
            self._doubted.add(index)
            return True
        for _ in range(doubt.round, round_):
            self.watcher.step()  # it needs those rounds no more
        if is_refused and _begins(outcome) == _begins(doubt.refused):
            # A process looks once at what refusals of a kind leave behind; what they break shows
            # only where a plain array came before; and what one process saw, another may not see.
            is_first = _refusal_of(doubt.refused) in ("broken", "retained")
            seen = ("refusal",) if is_first or _evidence_of_refusal(outcome).get("moot") else ()
            outcome.parts = doubt.refused.parts | {
                name: part for name, part in outcome.parts.items() if name not in seen
            }
        return False

    def _is_blamed(self, index: int, round_: int, doubt: Doubt | None) -> bool:
        """Whether another array of the path was blamed for the same in two processes: then what the
        first one saw of this one is kept.
        """
        if doubt is None or (_path(self.cases[index]), doubt.blame) not in self._blamed:
            return False
        self._client.keep(index, round_, doubt.refused)
        return True

    def _is_known(self, index: int, round_: int, doubt: Doubt | None) -> bool:
        """Whether what others showed answers for a case of the survey, which is kept then."""
        case = self.cases[index]
        if not case.surveyed or (doubt is not None and doubt.blame):
            return False
        if self._spoiled[case.pair, case.path] >= MOST_SPOILED:
            found = Outcome("skipped", SPOILS)
        elif is_looked_at_once(case) and _but_dtype(case) in self._ended:
            found = Outcome("skipped", ENDS)
        elif (why := self._unmade.get(_array(case))) is not None:
            found = Outcome("unsupported", why, {"refused_at": "create"})
        else:
            return False
        self._client.keep(index, round_, found)
        return True

    def _load_beside(self, kind: Kind, case: Case, workers: int = 1) -> None:
        """Let workers for what is in doubt import beside the others of a survey, which takes no
        time.
        """
        # Together, a worker serves cases of all pairs, and would import for this one alone.
        if self._surveying == 1 and not self.settings.together:
            for _ in range(min(workers, processors()) - self._pool.loaded(kind)):
                self._pool.load(kind, [imports_of(case)])

    def _needs_another(self, case: Case, outcome: Outcome, served: Mapping[int, Case]) -> bool:
        """Whether a worker died before it began, or cannot make an array any more."""
        if died_before(outcome):
            last = [*served.values()][-1]
            self._spoiled[last.pair, last.path] += 1
            return True
        producer = case.pair[0]
        if not self._is_kept_from(case, outcome) or self._kept_from[producer] >= MOST_SPOILED:
            return False
        self._kept_from[producer] += 1
        return True

    def _is_kept_from(self, case: Case, outcome: Outcome) -> bool:
        """Whether a producer did not make an array of the survey that a new process makes."""
        refused_at = outcome.parts.get("refused_at") if _was_refused(outcome) else None
        return case.surveyed and _array(case) in self._makes and bool(refused_at == "create")

    def _try_arrays(self, worker: WorkerClient, case: Case) -> Generator[WorkerClient, Any, bool]:
        """Ask a worker that has converted nothing which arrays of the survey the producer cannot
        make: no path is asked for those. Whether the worker lives.

        After a conversion the answer might be another one: a changed default dtype is enough.
        """
        if not case.surveyed or case.pair[0] in self._tried:
            return True
        of_producer = (one for one in self.cases if one.surveyed and one.pair[0] == case.pair[0])
        arrays = {_array(one): one for one in of_producer}
        outcome = yield from self._client.unmade(worker, [*arrays.values()])
        self._tried.add(case.pair[0])
        found = outcome.parts.get("unmade")
        told = found if isinstance(found, dict) else {}
        for at, array in enumerate(arrays):
            if why := told.get(str(at)):
                self._unmade[array] = str(why)
            elif str(at) in told:
                self._makes.add(array)
        return outcome.alive

    def _again(self, round_: int, turns: Turns | None = None) -> Answered:
        """Ask for what is in doubt, in new processes and reversed order, until nothing is: then
        what came before a case comes after it.
        """
        while self._doubts:
            for group in self._grouped(reversed(self._doubts)):
                yield from self._run_group(group, round_, turns)

    def _is_its_own(self, case: Case, outcome: Outcome, served: Mapping[int, Case]) -> bool:
        """Whether the end of a worker is due to a timed case: none came before it, or it hung and
        had the whole time limit.
        """
        is_timed = not (case.surveyed or self.settings.together)
        return is_timed and (not served or outcome.status == "timeout")

    def _settle(
        self, index: int, round_: int, outcome: Outcome, turns: Turns | None, alone: bool
    ) -> Answered:
        """Keep the outcome of a case; of the case alone if it broke a worker of many cases."""
        case = self.cases[index]
        if _broke(outcome) and not alone:
            if case.surveyed:
                self._crashing.add(case.pair)
                self._load_beside(process_of(index, case, self.settings), case, SPARES)
            outcome = yield from self._alone(index, round_, outcome, turns)
        elif _breaks_plain(outcome) and (doubt := (yield from self._unconfirmed(case, round_))):
            kept = _evidence_of_refusal(outcome)
            does = "gave other values" if kept.get("after") == OTHER_VALUES else "was refused"
            reason = f"a plain array {does} later, but {doubt}"
            outcome.parts["refusal"] = verdict("unknown", kept, reason)
        elif _was_refused(outcome) and "left_open" in outcome.parts:
            yield from self._look_at_files(case, round_, outcome)
        self._client.keep(index, round_, outcome)
        if case.surveyed and outcome.reason and _refusal_of(outcome) == "retained":
            self._retained[case.pair, case.path].add(_begins(outcome))
        # What changes a setting in the timed rounds is surveyed all the same.
        ended = _ended_worker(outcome)
        spoils = ended or (case.surveyed and changed_settings(outcome))
        self._spoiled[case.pair, case.path] += spoils
        if case.dtype == PLAINEST.name and ended:
            self._ended.add(_but_dtype(case))

    def _alone(
        self, index: int, round_: int, broken: Outcome, turns: Turns | None
    ) -> Generator[Any, int | None, Outcome]:
        """Try a case that broke a worker of several cases once more in a process of its own."""
        case = self.cases[index]
        with (
            self._pool.worker(process_of(index, case, self.settings)) as worker,
            self._client.kept_if_stopped(
                index, round_, _name(round_), lambda: in_company(worker.heard(), broken)
            ),
        ):
            outcome = yield from self._client.in_turns(
                worker, index, case, round_, turns, alone=True
            )
        if outcome.alive:
            _note_company(outcome, broken)
            outcome.output = broken.output
        return in_company(outcome, broken)

    def _look_at_files(self, case: Case, round_: int, outcome: Outcome) -> Answered:
        """Whether a case was refused because its conversions had left too many files open: a new
        process looks at what a few of them leave behind.
        """
        with self._pool.worker() as worker:
            found = yield from self._client.beside(worker, case, round_, CONTROL)
        lifetime = found.parts.get(*CONTROL, {})
        if lifetime.get("verdict") == "retained":
            outcome.parts |= {"lifetime": lifetime}

    def _unconfirmed(self, case: Case, round_: int) -> Generator[Any, int | None, str]:
        """Why refusals of the case alone are not shown to make its path fail for a plain array;
        empty if they are.

        A new process converts that array hundreds of times, and once more. Then it is asked for the
        case. If the array fails only afterwards, neither other arrays nor many calls are the cause.
        """
        alike = (one for one in self.cases if (one.pair, one.path) == (case.pair, case.path))
        plain = next(filter(is_plainest, alike), None)
        if plain is None:
            return NO_PLAIN
        with self._pool.worker() as worker:
            for array, instruments in ((plain, CONTROL), (plain, ()), (case, ())):
                found = yield from self._client.beside(worker, array, round_, instruments)
                why = found.reason or found.status
                if array is plain and _was_refused(found):
                    return REFUSED_AT_ONCE.format(why)
                if not found.alive or (_was_refused(found) and "refusal" not in found.parts):
                    return UNTRIED.format(why)
                if instruments == CONTROL and found.failures:  # the plain array was refused, too
                    return UNTRIED.format(found.failures[0]["reason"])
        return "" if _breaks_plain(found) else NOT_BROKEN


def _by_path(group: Group) -> deque[Group]:
    """A process that a path breaks shows that only after it converted a plain array by it."""
    paths: dict[Any, Group] = {}
    for index, case in group:
        paths.setdefault((case.pair, case.path), []).append((index, case))
    return deque(paths.values())


def _path(case: Case) -> Kind:
    return case.pair, case.path


def _but_dtype(case: Case) -> tuple[object, ...]:
    return case.pair, case.path, case.shape, case.layout


def _array(case: Case) -> Kind:
    """The array that a case of a survey converts."""
    return case.pair[0], case.shape, case.dtype, case.layout, case.device


def _import(case: Case) -> Kind:
    return case.pair, case.path.import_.name


def _same_refusal(case: Case) -> Kind:
    """What cases have in common that a compiler refuses alike: the import and the array."""
    return _import(case), _array(case)


def _name(round_: int) -> str:
    return f"round {round_ + 1}"


def _broke(outcome: Outcome) -> bool:
    """Whether earlier cases may have broken a worker. They do not make an import hang."""
    hung = outcome.status == "timeout" and outcome.stage in ("start", "import")
    return _ended_worker(outcome) and not hung


def _ended_worker(outcome: Outcome) -> bool:
    """Whether a conversion ended its worker, and no experiment after its refusal did."""
    return not outcome.alive and outcome.status != "unsupported"


def _breaks_plain(outcome: Outcome) -> bool:
    """Whether a plain array was refused after the case, which was converted before it."""
    return _refusal_of(outcome) == "broken"


def _answer(outcome: Outcome, instrument: str) -> tuple[str, dict[str, Any]]:
    """The verdict of an instrument and its evidence; both empty where nothing looked."""
    found = outcome.parts.get(instrument)
    if not isinstance(found, dict):
        return "", {}
    evidence = found.get("evidence")
    return str(found.get("verdict", "")), evidence if isinstance(evidence, dict) else {}


def _refusal_of(outcome: Outcome) -> str:
    """What refusals leave behind, in one word; empty where nothing looked."""
    return _answer(outcome, "refusal")[0]


def _evidence_of_refusal(outcome: Outcome) -> dict[str, Any]:
    return _answer(outcome, "refusal")[1]


def _blame(case: Case, outcome: Outcome) -> str:
    """What a rule would blame a conversion of the survey for, in words; empty for nothing."""
    if not case.surveyed or outcome.status != "ok":
        return ""
    words, evidence = _answer(outcome, "values")
    narrowed = [case.dtype, case.consumer.narrows.get(case.dtype)]
    changed = evidence.get("changed") or {}
    if words == "wrong" and changed.get("dtype") != narrowed:
        return "its values were wrong"
    owned, promise = _answer(outcome, "ownership")[0], case.path.promise
    if promise and {owned, promise} == {"view", "copy"}:
        return f"it was a {owned}, though a {promise} is documented"
    return "it changed a setting" if changed_settings(outcome) else ""


def _begins(outcome: Outcome) -> str:
    """How its reason begins: the rest may hold an address."""
    return (outcome.reason or "")[:SAME_ERROR]


def _was_refused(outcome: Outcome) -> bool:
    """Whether a living worker refused a case; a disturbed device is no refusal."""
    return outcome.alive and outcome.status not in ("ok", "invalid")


def _compare(outcome: Outcome, doubt: Doubt | None) -> None:
    """Note that a case works which was refused or blamed after other cases."""
    if doubt is not None and outcome.status == "ok":
        before = replace(doubt.refused, reason=doubt.blame or doubt.refused.reason)
        _note_company(outcome, before)
        in_company(outcome, before)


def _note_company(outcome: Outcome, before: Outcome) -> None:
    reason = before.reason or before.status
    outcome.failures.append({"instrument": IN_COMPANY, "reason": reason})


def in_company(outcome: Outcome, broken: Outcome) -> Outcome:
    """The outcome of a case alone, with its earlier one after other cases."""
    reason = broken.reason or broken.status
    outcome.parts["in_company"] = {"status": status_of(broken), "reason": reason}
    return outcome
