"""Workers without processes: they follow the test's script and record their requests."""

from dataclasses import dataclass, field

from builders import make_answer

from dlprof.runner.evidence import Lost
from dlprof.runner.worker_client import Outcome


@dataclass
class ScriptedWorkers:
    """All workers of a run. Fields name the imports or instruments with a fault.

    ``asked`` lists the imports that each process served. ``dies`` and ``dies_of_dtype`` end
    their worker in ``stage``; ``dies_in_company`` does so only after another case. After
    ``poisons`` the worker dies before it begins the next case, and after ``spoils`` it refuses all
    others. Refusals of
    ``jams`` break a path that converted before. ``gives`` adds parts to a conversion. An import in
    ``corrupts`` makes the values of another import wrong. ``fatal`` instruments end their worker,
    and ``slow`` ones exceed its time limit. The user stops the run in ``stopped`` instruments.
    A process that holds results of imports in ``dies_at_exit`` dies when it exits, any process if
    ``None`` is among them.
    """

    dies: set = field(default_factory=set)
    dies_in_company: set = field(default_factory=set)
    dies_of_dtype: str = ""
    stage: str = "host_time"
    poisons: set = field(default_factory=set)
    refuses: set = field(default_factory=set)
    spoils: set = field(default_factory=set)
    jams: set = field(default_factory=set)
    gives: dict = field(default_factory=dict)
    corrupts: dict = field(default_factory=dict)
    changes_settings: set = field(default_factory=set)
    hangs_at_import: set = field(default_factory=set)
    fatal: set = field(default_factory=set)
    slow: set = field(default_factory=set)
    stopped: set = field(default_factory=set)
    dies_at_exit: set = field(default_factory=set)
    most_open: int = 1
    open: int = 0
    asked: list = field(default_factory=list)
    requests: list = field(default_factory=list)
    loaded: list = field(default_factory=list)
    imported: list = field(default_factory=list)

    def __call__(self, python, variables):
        self.asked.append([])
        return ScriptedWorker(self, self.asked[-1])

    def order(self):
        return [name for asked in self.asked for name in asked]


class ScriptedWorker:
    def __init__(self, workers, asked):
        self.workers = workers
        self.asked = asked
        self.dead = self.is_idle = False
        workers.open += 1

    def close(self):
        self.workers.open -= not (self.dead or self.is_idle)
        self.dead = True

    pipes = ()

    @property
    def has_ended(self):
        return self.dead

    def send(self, request):
        self.request, self.was_polled = request, False
        if request["do"] == "load":
            self.workers.loaded += request["cases"]
        if request["do"] == "exit":
            self.close()

    def poll(self, limit_s, wait_s=0.0):
        """Return the answer on the second poll if several are open, so that workers take turns."""
        if self.request["do"] == "exit":
            return self.exited(self.request)
        if self.workers.most_open > 1 and not self.was_polled:
            self.was_polled = True
            return None
        return self.ask(self.request, limit_s)

    def wait(self, limit_s):
        self.workers.imported.append(len(self.request["cases"]))
        self.is_idle = True  # it has imported, and does not disturb others
        self.workers.open -= 1
        return Outcome("ok", None, alive=not self.dead)

    def lost(self, status, reason, stage, output=None):
        self.close()
        return Outcome(status, reason, stage=stage, alive=False, output=output)

    def exited(self, request):
        held = {case["import"] for case in request["cases"] if request["converts"]}
        end = Lost(how="ended with exit code 0", stage="exit", exit_code=0)
        if self.workers.dies_at_exit & {None, *held}:
            end = Lost(how="killed by SIGSEGV", stage="exit", signal="SIGSEGV")
        return Outcome("crashed", str(end), stage="exit", alive=False, lost=end)

    def ask(self, request, limit_s):
        assert not self.dead, "a dead worker was asked"
        self.request = request
        self.workers.open += self.is_idle
        self.is_idle = False
        assert self.workers.open <= self.workers.most_open, "workers disturb each other"
        if request["do"] == "fork":  # a process of its own
            self.asked = []
            self.workers.asked.append(self.asked)
            return Outcome("ok", None)
        if request["do"] == "end fork":
            self.is_idle = True
            self.workers.open -= 1
            return Outcome("ok", None)
        return self.converted_as_asked(request)

    def converted_as_asked(self, request):
        workers, name, company = self.workers, request["import"], bool(self.asked)
        if name in workers.hangs_at_import:
            self.asked.append(name)
            return self.lost("timeout", "no answer", "import")
        if workers.poisons & set(self.asked):
            return self.lost("crashed", "killed by SIGSEGV during start", "start")
        self.asked.append(name)
        workers.requests.append(request)
        is_fatal = name in workers.dies or request["dtype"] == workers.dies_of_dtype
        if is_fatal or (company and name in workers.dies_in_company):
            return self.lost("crashed", f"killed by SIGSEGV, {name}", workers.stage, "last words")
        for instrument in request["instruments"]:
            if instrument in workers.stopped:
                raise KeyboardInterrupt
            if instrument in workers.slow | workers.fatal:
                return self.lost_in(instrument)
        refused = self.refusal(name, request["dtype"])
        if refused is not None:
            return Outcome("unsupported", "TypeError: no", refused)
        return Outcome("ok", None, make_answer()["parts"] | self.found(name))

    def lost_in(self, instrument):
        if instrument in self.workers.fatal:
            reason = f"killed by SIGSEGV during {instrument}"
            return self.lost("crashed", reason, instrument, "last words")
        outcome = self.lost("timeout", "no answer within 60 s", instrument)
        outcome.parts = make_answer()["parts"]
        return outcome

    def found(self, name):
        """Return the added parts of a working conversion."""
        workers = self.workers
        left = dict(workers.gives.get(name, {}))
        if name in workers.changes_settings:
            left["settings"] = {"verdict": "changed", "evidence": {}}
        if name in {workers.corrupts.get(one) for one in self.asked[:-1]}:
            evidence = {"changed": {"values": {"different": 1, "of": 9}}}
            left["values"] = {"verdict": "wrong", "evidence": evidence}
        return left

    def refusal(self, name, dtype):
        """Return the parts of a refusal; None if there is none."""
        workers, before = self.workers, {*self.asked[:-1]}
        if name in workers.jams and dtype.startswith("complex"):
            word = "broken" if name in before else "clean"
            found = {"verdict": word, "evidence": {"error": ["TypeError"]}}
            return {"refusal": found} if self.request["alone"] else {}
        return {} if name in workers.refuses or workers.spoils & before else None
