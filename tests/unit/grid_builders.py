"""Grids of made-up cells, for tests that vary one thing at a time."""

from dlprof.atlas.cells import QUESTIONS, Cell
from dlprof.atlas.changes import changes_of
from dlprof.atlas.grid import DEVICE, MACHINE, PYTHON, Grid, Row
from dlprof.judge.slower import Time
from dlprof.runner.session import CaseRecord

CASE = {
    "producer": "numpy",
    "export": "dlpack",
    "consumer": "jax",
    "import": "from_dlpack",
    "protocol": "dlpack",
    "code": "jax.dlpack.from_dlpack(x)",
    "shape": (4, 4),
    "dtype": "float32",
    "layout": "C",
    "device": "cpu",
}


def cell(result="view", ns=None, **words):
    """A cell; ``ns`` is a time that all processes agree on within 5 %."""
    words = {**dict.fromkeys(QUESTIONS, ""), "result": result, **words}
    time = None if ns is None else Time(ns, (0.95 * ns, 1.05 * ns))
    return Cell(tuple(words.values()), time=time)


def facts(machine="A", **versions):
    return {MACHINE: machine, PYTHON: "3.11", DEVICE: "real", **versions}


def grid(columns, cells, **case):
    """One row with a cell for each column, in the order of both."""
    row = Row(CaseRecord(**{**CASE, **case}), dict(enumerate(cells)))
    return Grid(tuple(columns), (row,), len(columns), ("2026-01-01", "2026-01-02"))


def told(columns, cells, **case):
    """What is said of the changes of such a grid."""
    return [one.text for one in changes_of(grid(columns, cells, **case))]
