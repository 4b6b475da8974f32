"""Documents for the tests of renderers, made without a session."""

from dlprof.report.document import (
    Answer,
    Cell,
    Chart,
    ChartRow,
    Column,
    Document,
    Lines,
    Mark,
    Problem,
    Section,
    Table,
    facts,
)

PATHS = (
    ("jax.device_put(x.numpy(), may_alias=True)", 32e3, "view", "error DLP020"),
    ("jax.dlpack.from_dlpack(x, copy=True)", 33e3, "view", "error DLP018"),
    ("jax.dlpack.from_dlpack(x, copy=False)", 33e3, "view", ""),
    ("jnp.array(x.numpy(force=True))", 190e3, "copy", "error DLP020"),
    ("jnp.asarray(x)", 270e3, "copy", "error DLP004 DLP020"),
    ("jnp.array(x)", 280e3, "copy", "warning DLP004"),
)
COLUMNS = (Column("time", right=True), Column("result"), Column("path"), Column("problem"))


def chart(*rows):
    """A chart with a point for each path, in the format of ``PATHS``."""
    marks = [Mark(f"{label}, {problem}", 5, 9, "error", 7) for label, *_, problem in rows]
    lines = (ChartRow(label, (mark,)) for mark, (label, *_) in zip(marks, rows, strict=True))
    return Chart(tuple(lines), ((50.0, "1 ms"),), "Times.")


def row(label="numpy.asarray(x)", time_ns=33e3, kind="view", problem=""):
    words = problem.partition(" ")[2]
    return (Cell(f"{time_ns / 1e3:.0f} µs"), Cell(kind, kind), Cell(label, code=True), Cell(words))


def problem(rule="DLP018", severity="error", **changes):
    content = {
        "sentence": "4 paths promise a copy but share memory with `x`.",
        "codes": (PATHS[1][0],),
        "advice": ("Write `jnp.array(x.numpy(force=True))`.",),
        "evidence": ("3 of 3 processes: the result changes with `x`.",),
        "expected": "A copy ([standard](https://data-apis.org/array-api/)).",
        "reproducer": "import torch\nx = torch.ones(3)\nassert x is not None\n" * 8,
        "commands": (f"dlprof explain {rule}", "dlprof run torch jax --path 'dlpack->from_dlpack'"),
    }
    return Problem(rule, severity, **{**content, **changes})


def document(**changes):
    """A document with every kind of part."""
    content = {
        "title": "torch → jax",
        "context": "float32 1024x1024, C order, 4 MiB, cpu · torch 2.13.0, jax 0.10.2",
        "notices": ("Other programs kept 1.5 of 2 cores busy.",),
        "answers": (
            Answer("fastest safe view", PATHS[2][0], "33 µs", "raises if `x` is not aligned"),
            Answer("fastest safe copy", "", "none", "see DLP020"),
        ),
        "chart": chart(*PATHS),
        "tables": (Table(COLUMNS, tuple(row(*path) for path in PATHS), "12 more copies"),),
        "marks": ("~ stands for a time without an interval.",),
        "problems": (
            problem(),
            problem("DLP020", sentence="13 copies return before they have read `x`."),
            problem("DLP004", "warning", sentence="7 paths copy where a view exists."),
        ),
        "sections": (
            Section("Left out", (Lines(("TensorFlow is not installed.",)),), is_first=True),
            Section("Crashes", (Lines(("SIGSEGV during timing",)),)),
            Section("All paths", (Table(COLUMNS, (row(),)),)),
            Section("Environment", (facts([("python", "3.11.7"), ("cpu", "Example")]),)),
        ),
        "commands": ("dlprof explain DLP020", "dlprof report LAST --full"),
    }
    return Document(**{**content, **changes})


def document_of(word):
    """A document with ``word`` in every place that takes text."""
    cells = (Cell(word), Cell(word, code=True), Cell(f"DLP018 {word}"))
    table = Table((Column(word), Column(word, right=True), Column(word)), (cells,), word)
    found_chart = Chart((ChartRow(word, (Mark(word, 1, 2, "plain"),), word),), ((5, word),), word)
    texts = dict.fromkeys(("sentence", "expected", "reproducer"), word)
    lists = dict.fromkeys(("codes", "advice", "evidence", "commands"), (word,))
    found = Problem(**{"rule": word, "severity": "error", **texts, **lists})
    blocks = (table, facts([(word, word)]), Lines((word,)))
    return Document(
        title=word,
        scope=word,
        context=word,
        notices=(word,),
        answers=(Answer(word, word, word, word),),
        tables=(table,),
        marks=(word,),
        problems=(found,),
        chart=found_chart,
        sections=(Section(word, blocks, is_first=True), Section(word, blocks)),
        commands=(word,),
    )
