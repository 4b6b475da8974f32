"""Steps of inference for tests: a NumPy model, and measured results."""

from builders import make_measure, make_record, make_result

from dlprof.inference.base import FRESH, Steps, strategy
from dlprof.probes.base import CPU, ArraySpec
from dlprof.probes.numpy import NumPy
from dlprof.worker.instruments.step import prepare

EMPTY = "numpy.empty_like(output)"


class NumPySteps(Steps):
    """All strategies, and some that are wrong."""

    framework = NumPy()
    name = "numpy"
    module = "numpy"
    distributions = ("numpy",)
    devices = CPU
    suffix = ".py"
    setup = "import itertools\nimport numpy"
    model = "def model(x, out=None):\n    return numpy.add(x, 1, out=out)"
    imports = (
        strategy(FRESH, "y = model({x})"),
        strategy("persistent", "y = model({x}, out=buffer)", f"buffer = {EMPTY}"),
        strategy(
            "two-buffers",
            "y = model({x}, out=next(turns))",
            f"turns = itertools.cycle([{EMPTY}, {EMPTY}])",
        ),
        strategy(
            "ahead",
            f"y = model({{x}}, out=following); following = {EMPTY}",
            f"following = {EMPTY}",
        ),
        strategy("wrong", "y = model({x}) + 1"),
    )

    def create(self, spec, seed=0):
        return f"x = numpy.arange({spec.elements}.0).reshape({spec.shape}) + {seed}"

    def load(self, spec):
        return self.model

    def read(self, name):
        return "y.sum()"


class Counting(NumPySteps):
    def count(self, device, run):
        run()
        return 16


def make_steps(name, steps=None):
    """A step of this strategy with its buffers allocated."""
    steps = steps or NumPySteps()
    (way,) = (way for way in steps.imports if way.name == name)
    made = prepare(steps, way, ArraySpec((4, 3), "float64"), lambda stage: None)
    made.make_buffers()
    return made


def make_step(share=0.1, ci95=(0.05, 0.15), after=1, **changes):
    """Findings on a strategy that saves a tenth; if ``after`` is None, an output stays."""
    overwritten = {"verdict": "overwritten", "evidence": {"after_calls": after}}
    kept = {"verdict": "kept", "evidence": {"calls": 4}}
    return {
        "reading": make_measure(1800.0),
        "saved": {"median": share, "ci95": ci95},
        "change_ns": 500.0,
        "change_ci95_ns": (400.0, 600.0),
        "allocations_per_call": 2.0,
        "kept": 8,
        "buffers": 1,
        "reuse": kept if after is None else overwritten,
        **changes,
    }


def step_case(name="persistent", framework="torch", code="y = model(x, out=buffer)", **changes):
    return make_record(
        **{
            "producer": framework,
            "consumer": framework,
            "export": "model",
            "import": name,
            "protocol": "step",
            "code": code,
            **changes,
        }
    )


def step_result(name="persistent", step=None, **changes):
    """A measured step."""
    found = make_step() if step is None else step
    fields = {"ownership": None, "lifetime": None, "step": found}
    return make_result(case=step_case(name, **changes.pop("case", {})), **(fields | changes))


def fresh_result(**changes):
    """The step that all others are compared with."""
    own = {"reading": make_measure(2000.0), "saved": None}
    return step_result("fresh", make_step(**own, after=None), **changes)
