"""A trace as a page, and for Chrome's trace viewer."""

import json

import pytest
import typer
from hostile import BITES
from pydantic import ValidationError
from reading import Page
from test_tracer import ROW, part

from dlprof.cli.trace import end
from dlprof.errors import FindingsFailed
from dlprof.report import html, terminal
from dlprof.report.trace_advice import replacement
from dlprof.report.trace_document import chrome, measurable, trace_document
from dlprof.runner.trace import Trace, TraceRow, merged

SLOW = {**ROW, "line": 2, "total_ns": 400}
RAISED = {
    **ROW,
    **dict.fromkeys(("calls", "copies", "bytes", "total_ns", "first_ns"), 0),
    "raised": 2,
    "result": "raised",
    "arrays": [],
}
VIEW = {"copies": 0, "views": 1, "result": "view"}
FILES = {"a.py": [(1, "import torch"), (2, "torch.tensor(x)"), (8, "y.numpy()")]}


def trace_of(*lines, sources=FILES, events=()):
    first = {**part(7, *lines), "timeline": [[0, 100, 0, 50], [800, 900, 1, 90]]}
    second = {**part(8, *lines), "started": 7.0 + 1e-6, "events": [list(one) for one in events]}
    fields = {"program": ["a.py"], "exit_code": 0, "wall_ns": 10_000, "sources": sources}
    return Trace.model_validate({**fields, **merged([second, first])})


@pytest.fixture
def trace():
    return trace_of(ROW, SLOW, events=[(0, 10, 0, 55), (20, 30, 1, 55), (5, 50, 1, 66)])


def test_the_page_has_the_source_with_its_times(trace):
    page = html.render(trace_document(trace, full=True))
    assert page.index("a.py:2 f") < page.index("</svg>") < page.index("<table")
    (source,) = trace_document(trace).sections[0].blocks
    assert [row[2].text for row in source.rows] == ["copy", "copy", ""]


@pytest.mark.parametrize(
    ("row", "slow", "said"),
    [
        ({}, {}, "a.py:2"),
        ({}, VIEW, "a.py:1"),
        ({}, {"allowed": ["copy"]}, "a.py:1"),
        ({"allowed": ["copy"]}, {"allowed": ["copy"]}, "none"),
        (VIEW, VIEW, "none"),
        ({**VIEW, "allowed": ["copy"]}, VIEW, "none"),
        (VIEW, {"copies": 0, "unknown": 2, "result": "unknown"}, "none known, 1 line may copy"),
    ],
)
def test_the_copy_to_change_first_took_longest_and_is_not_allowed(row, slow, said):
    document = trace_document(trace_of({**ROW, **row}, {**SLOW, **slow}))
    copied, waited = document.answers
    assert copied.note.partition(";")[0] == said
    assert waited.note == "none"


def test_a_wait_adds_no_conversion_cost_and_the_next_command_is_for_the_costliest_copy():
    waits = {**SLOW, **VIEW, "total_ns": 8_900, "waits": 2, "waited_ns": 4_000}
    document = trace_document(trace_of({**ROW, "total_ns": 100}, waits))
    assert document.context.startswith("conversions 10 µs (100 %), waits 8.0 µs (80 %), ")
    assert [answer.value for answer in document.answers] == ["200 ns", "8.0 µs"]
    assert document.commands[0].startswith("dlprof run numpy torch")


@pytest.mark.parametrize(
    ("size_bytes", "took_ns", "said"),
    [
        (4 << 20, 40_000_000, ""),
        (4 << 20, 80_000_000, "slow: 52 MB"),
        (4 << 10, 80_000_000, ""),
    ],
)
def test_a_line_that_copies_far_slower_than_memory_is_slow(size_bytes, took_ns, said):
    # Two calls: the first one, which loads code, does not count.
    calls = {"calls": 2, "copies": 2, "bytes": 2 * size_bytes, "first_ns": 10**9}
    row = {**ROW, **calls, "total_ns": 10**9 + took_ns}
    page = terminal.render(trace_document(trace_of(row, RAISED)))
    assert said in page if said else "slow" not in page


def test_many_small_copies_are_not_slow():
    row = {**ROW, "calls": 9000, "copies": 9000, "bytes": 9000 << 10, "total_ns": 10**9}
    assert "slow" not in terminal.render(trace_document(trace_of(row, RAISED)))


def test_a_trace_fits_80_columns():
    named = [{**ROW, "file": f"/p/{name}.py", "line": 125} for name in ("train", "a_long_name" * 3)]
    text = terminal.render(trace_document(trace_of(*named, SLOW, {**SLOW, "via": "torch.a.f"})), 80)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80


def test_the_timeline_shows_when_a_line_took_how_much(trace):
    rows = trace_document(trace).chart.rows
    assert [row.name for row in rows] == ["a.py:2 f", "a.py:1 f"]
    assert [(row.marks[0].low, row.marks[0].high) for row in rows] == [(8, 9), (0, 1)]


@pytest.mark.parametrize("word", BITES)
def test_source_and_names_are_plain_text(word):
    line = {**ROW, "file": word, "function": word, "conversion": word}
    trace = trace_of(line, {**line, "line": 2}, sources={word: [(1, word)]})
    page = Page(html.render(trace_document(trace, full=True)))
    assert page.active == ["style", "script"]


def test_chrome_gets_each_conversion_in_its_thread(trace):
    content = json.loads(chrome(trace))
    found = [one for one in content["traceEvents"] if one["ph"] == "X"]
    assert [(one["ts"], one["dur"], one["pid"], one["tid"]) for one in found] == [
        (1.0, 0.01, 8, 55),
        (1.005, 0.05, 8, 66),
        (1.02, 0.03, 8, 55),
    ]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (VIEW, "passed"),
        (RAISED, "passed"),
        (
            {"copies": 0, "unknown": 1, "result": "unknown"},
            "passed, but unknown for a.py:1",
        ),
        ({"copies": 0, "maybe_waits": 1}, "passed, but unknown for a.py:1"),
    ],
)
def test_fail_on_reports_a_pass_and_ends_as_the_program_did(capsys, row, said):
    found = trace_of({**ROW, **row}, {**SLOW, **VIEW}).model_copy(update={"exit_code": 3})
    with pytest.raises(typer.Exit) as ended:
        end(found, ("copy", "wait"))
    assert ended.value.exit_code == 3
    assert capsys.readouterr().err.endswith(f"--fail-on copy,wait: {said}\n")


def test_fail_on_names_the_lines_and_reports_no_pass(capsys):
    rows = [
        {**ROW, "line": line, "total_ns": 90 - line, "waits": line // 6} for line in range(1, 7)
    ]
    with pytest.raises(FindingsFailed) as failed:
        end(trace_of(*rows), ("wait", "copy"))
    copies = "copy: a.py:1, a.py:2, a.py:3 and 3 more"
    assert str(failed.value).startswith(f"--fail-on wait: a.py:6; {copies}")
    assert not capsys.readouterr().err


BIG = {**ROW, "calls": 10, "copies": 10, "total_ns": 1_000_000}


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([{**BIG, "first_ns": 500_000}], "1.0 ms of it in the first call"),
        ([{**BIG, "parallel_ns": 5_000_000}], "12 ms in all threads"),
        ([BIG, {**BIG, "producer": "torch", "consumer": "numpy"}], "torch → numpy"),
        ([{**BIG, "total_ns": 10**9}], "in parallel"),
        ([{**BIG, "via": "stable_baselines3.common.f"}], "--include stable_base"),
    ],
)
def test_a_row_shows_what_its_time_stands_for(lines, text):
    others = [{**BIG, "line": 9, "via": line.get("via", "")} for line in lines]
    report = terminal.render(trace_document(trace_of(*lines, *others), full=True), full=True)
    assert text in " ".join(report.split())


def test_each_array_is_measured_once_the_line_to_change_first_first():
    lines = [{**BIG, "line": line, "total_ns": line * 10**6} for line in (1, 2)]
    other = {**BIG, "line": 3, "arrays": [["float32", [2], 1, 8]]}
    listed = {**BIG, "line": 4, "total_ns": 10**9, "bytes": 10**6}
    assert [row.line for row in measurable(trace_of(*lines, other, listed))] == [2, 3]


def test_a_way_back_is_named_if_an_array_took_it():
    back = {**BIG, **VIEW, "line": 2, "producer": "torch", "consumer": "numpy", "total_ns": 9}
    back |= {"origin": ["a.py", 1], "is_argument": True}
    text = " ".join(terminal.render(trace_document(trace_of(BIG, back))).split())
    assert "through torch and back to numpy, for a jitted function: a.py:2 took memory" in text


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("cuda.as_cuda_array(features_on_device, sync=False)", "f.as_cuda_array(x, sync=False)"),
        ("cuda.as_cuda_array(features_on_device, axis=0, t=a)", "f.as_cuda_array(x)"),
        ("cuda.as_cuda_array(made(features_on_device, copy=True))", "f.as_cuda_array(x)"),
        ("cuda.as_cuda_array(features_on_device, sync=", "f.as_cuda_array(x)"),
    ],
)
def test_a_long_expression_keeps_its_switches(expression, text):
    row = {**BIG, "conversion": "f.as_cuda_array(x)"}
    document = trace_document(trace_of({**row, "expression": expression}, RAISED))
    assert document.tables[0].rows[0][4].text == text


ON_DEVICE = {**BIG, "waits": 10, "device": "cuda:0", "producer": "torch"}


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"reads": 10, "consumer": "python"}, "reads wait for the queue: keep results on"),
        ({"crossings": [["cuda:0", "cpu", 10]]}, "copies to the host wait for the queue: keep"),
        ({"conversion": "x.to()"}, "x.to() waits for the queue; from pinned memory"),
        (
            {"waits_in": "tf.experimental.dlpack.to_dlpack(x)"},
            "tf.experimental.dlpack.to_dlpack(x) waits for all that TensorFlow has",
        ),
        ({"conversion": "x.to()", "calls": 1}, ""),
        ({"conversion": "x.to()", "allowed": ["wait"]}, ""),
        ({"reads": 10, "consumer": "python", "via": "torch.optim.adam.step"}, ""),
        (
            {"conversion": "kernel[…](x)", "device": "cpu"},
            "kernel[…](x) converts its arguments at each launch: write cuda.to_device(x)",
        ),
    ],
)
def test_a_wait_in_a_loop_has_its_cause_and_its_advice(row, text):
    row = {**ON_DEVICE, **row}
    advice = replacement(TraceRow.model_validate(row))
    assert advice.startswith(text) if text else not advice
    report = terminal.render(trace_document(trace_of(row, RAISED)))
    assert "waits for the queue" in " ".join(report.split())


def test_the_next_command_is_for_the_device_and_the_interpreter_of_the_program():
    read = {**ON_DEVICE, "consumer": "python", "total_ns": 10**9, "via": "library.f"}
    taken = {**ON_DEVICE, "consumer": "cupy"}
    update = {"simulated": 1, "interpreter": "/venv/python"}
    commands = trace_document(trace_of(read, taken).model_copy(update=update)).commands
    assert commands[0].startswith("dlprof run torch cupy ")
    assert commands[0].endswith("--device simulated --python /venv/python")
    again = "dlprof trace --include library --device simulated --python /venv/python "
    assert commands[1].startswith(again)


@pytest.mark.parametrize(
    ("load", "is_busy"),
    [({"foreign_cores": 1.6}, True), ({"foreign_cores": 0.1}, False), ({}, False)],
)
def test_a_trace_says_if_other_programs_kept_the_cores_busy(trace, load, is_busy):
    page = terminal.render(trace_document(trace.model_copy(update={"cores": 2, **load})))
    assert ("Other programs kept 1.6 of 2 cores busy. Times may be" in page) == is_busy


def test_advice_names_its_lines_and_what_to_write():
    listed = {**BIG, "producer": "list", "line": 5}
    read = {**BIG, **VIEW, "views": 0, "reads": 10, "result": "read", "bytes": 0, "line": 6}
    read |= {"conversion": "x.tolist()", "producer": "torch", "consumer": "python"}
    report = terminal.render(trace_document(trace_of(BIG, {**BIG, "line": 2}, listed, read)))
    text = " ".join(report.split())
    assert "a.py:1, a.py:2: instead of torch.tensor(x) write torch.from_numpy(x)" in text
    assert "a.py:5: instead of torch.tensor(list of arrays) write" in text
    assert "a.py:6: instead of x.tolist() write x.detach().numpy()" in text
    brief = trace_of(BIG, {**read, "total_ns": 9})
    assert "instead of x.tolist()" not in terminal.render(trace_document(brief))


def test_no_copied_bytes_are_counted_where_a_line_may_copy():
    unknown = {**ROW, "copies": 0, "unknown": 1, "result": "unknown", "bytes": 0}
    viewed = {**ROW, **VIEW, "bytes": 0}
    assert "copied" not in trace_document(trace_of(viewed, unknown)).context
    assert "0 B copied" in trace_document(trace_of(viewed, viewed | {"line": 2})).context


def test_a_first_call_that_loads_code_ranks_no_line():
    compiled = {**BIG, "line": 3, "total_ns": 9_000_000, "first_ns": 8_900_000}
    found = trace_document(trace_of(BIG, compiled))
    assert "a.py:1" in found.answers[0].note


def test_the_compiler_of_a_kernel_counts_as_no_conversion():
    launch = {**ROW, **VIEW, "conversion": "kernel[…](x)", "total_ns": 10**9, "first_ns": 10**9}
    found = trace_document(trace_of(launch, RAISED))
    assert found.context.startswith("conversions 0 ns")
    assert "not in the total: 2.0 s in the first call" in found.tables[0].rows[0][-1].text


def test_the_time_of_a_line_is_that_of_one_process():
    parts = [part(7) | {"lines": [["a.py", 1, 40]]}, part(8) | {"lines": [["a.py", 1, 30]]}]
    assert merged(parts)["lines"] == [("a.py", 1, 40)]


def test_a_time_that_no_machine_has_is_refused():
    fields = {"program": [], "exit_code": 0, "wall_ns": 10**400}
    with pytest.raises(ValidationError, match="wall_ns"):
        Trace.model_validate(fields)
