"""The tracer: it wraps the functions that probes declare, and removes all wrappers again."""

import _thread
import importlib
import linecache
import operator
import os
import sys
import threading
import time
import types
import typing
import weakref
from pathlib import Path

import numpy
import pytest
from numpy import frombuffer as taken_out

import dlprof
from dlprof.report import terminal
from dlprof.report.trace_advice import row_place
from dlprof.report.trace_document import trace_document
from dlprof.runner.trace import completed, merged
from dlprof.tracer import calls
from dlprof.tracer.arrays import KEY, Kind
from dlprof.tracer.calls import Tracer, make
from dlprof.tracer.place import Places
from dlprof.tracer.rows import NO_LINE, VIEWS, Rows
from dlprof.tracer.targets import declared

ROW = {
    "file": "a.py",
    "line": 1,
    "function": "f",
    "conversion": "torch.tensor(x)",
    "producer": "numpy",
    "consumer": "torch",
    "via": "",
    "span": None,
    "waits_in": "",
    "origin": None,
    "is_argument": False,
    "calls": 1,
    "total_ns": 10,
    "first_ns": 4,
    "bytes": 4,
    "result": "copy",
    "views": 0,
    "copies": 1,
    "unknown": 0,
    "reads": 0,
    "parallel_ns": 0,
    "raised": 0,
    "waits": 0,
    "maybe_waits": 0,
    "waited_ns": 0,
    "crossings": [],
    "device": "cpu",
    "retyped": [],
    "arrays": [["float32", [1], 1, 4]],
}


def part(pid, *rows, ended=True):
    return {
        "pid": pid,
        "argv": [],
        "started": float(pid),
        "wall_ns": 1,
        "ended": ended,
        "python": "3.11.7",
        "versions": {},
        "rows": rows,
        "arguments": [],
        "lines": [],
        "frameworks": [],
        "timeline": [],
        "events": [],
        "troubles": [],
    }


FIELDS = {"program": [], "exit_code": 0, "wall_ns": 1, **merged([part(1)])}


def target(name):
    (found,) = (one for one in declared() if one.conversion == name)
    return found


def test_each_framework_is_wrapped_as_its_probe_declares():
    frameworks = {one.framework for one in declared()}
    assert frameworks >= {"numpy", "torch", "tensorflow", "jax", "cupy", "numba", "onnxruntime"}
    assert target("torch.from_numpy(x)").takes
    assert target("jax.device_get(x)").gives
    assert target("tf.convert_to_tensor(x)").owner == "tensorflow"
    assert target("jnp.asarray(x)").owner == "jax.numpy"


def test_a_failure_of_the_tracer_leaves_the_call_and_its_count():
    tracer = Tracer(Places(), Rows(None))
    kind = tracer.kinds[numpy.ndarray]
    kind.address = operator.attrgetter("nowhere")
    convert = make(lambda x: x[:], target("torch.from_numpy(x)"), tracer)
    assert [len(convert(numpy.zeros(3))) for _ in range(3)] == [3, 3, 3]
    (row,) = tracer.rows.as_dict(ended=True)["rows"]
    assert (row["calls"], row["unknown"]) == (3, 3)
    (trouble,) = tracer.rows.troubles.values()
    assert "AttributeError: " in trouble


def test_a_call_in_a_thread_without_frames_counts_for_no_line():
    tracer, ended = Tracer(Places(), Rows(None)), threading.Event()
    convert = make(memoryview, target("torch.from_numpy(x)"), tracer)
    x = numpy.zeros(3)
    weakref.finalize(x, ended.set)
    _thread.start_new_thread(convert, (x,))
    del x
    assert ended.wait(20)
    (row,) = tracer.rows.as_dict(ended=True)["rows"]
    assert (row["file"], row["calls"]) == (NO_LINE, 1)
    assert not tracer.rows.troubles


def test_a_line_whose_calls_all_raise_has_raised():
    tracer = Tracer(Places(), Rows(None))
    convert = make(lambda x: x[1, 1], target("torch.from_numpy(x)"), tracer)
    for _ in range(2):
        with pytest.raises(IndexError):
            convert(numpy.zeros(3))
    (row,) = tracer.rows.as_dict(ended=True)["rows"]
    assert (row["calls"], row["raised"]) == (0, 2)
    (both,) = merged([part(1, row), part(2, row)])["rows"]
    assert (both["raised"], both["result"]) == (4, "raised")


def counted(tracer):
    (row,) = tracer.rows.as_dict(ended=True)["rows"]
    return row["views"], row["copies"], row["unknown"]


MEMORY = numpy.arange(2000, dtype="uint8")
ONE = numpy.broadcast_to(MEMORY[:1], 1000)


@pytest.mark.parametrize(
    ("source", "result", "views"),
    [
        (MEMORY[:100], MEMORY[:10], 1),
        (MEMORY[:100], MEMORY[100:200], 0),
        (ONE, MEMORY[500:1500], 0),
    ],
)
def test_a_view_has_the_start_of_its_source(source, result, views):
    tracer = Tracer(Places(), Rows(None))
    make(lambda _: result, target("torch.from_numpy(x)"), tracer)(source)
    assert counted(tracer) == (views, 1 - views, 0)


@pytest.mark.parametrize(
    ("things", "producer"), [([[0.5] * 64] * 64, "numbers"), ([numpy.ones(64)] * 64, "list")]
)
def test_a_list_of_numbers_or_arrays_counts_as_a_copy_of_one_array(things, producer):
    tracer = Tracer(Places(), Rows(None))
    make(numpy.array, target("torch.tensor(x)"), tracer)(things)
    (row,) = tracer.rows.as_dict(ended=True)["rows"]
    assert (row["copies"], row["bytes"], row["producer"]) == (1, 64 * 64 * 8, producer)
    assert row["arrays"] == [["float64", [64, 64], 1, 64 * 64 * 8]]


def test_a_few_numbers_in_a_list_are_no_conversion():
    tracer = Tracer(Places(), Rows(None))
    make(numpy.array, target("torch.tensor(x)"), tracer)([1.5, 2.5])
    assert not tracer.rows.as_dict(ended=True)["rows"]


class Foreign:
    def __init__(self, memory):
        self.memory, self.dtype, self.shape = memory, memory.dtype, memory.shape


def foreign_kind(device="cpu", **fields):
    address = operator.attrgetter("memory.ctypes.data")
    return Kind("jax", address, KEY, lambda _: 12, lambda _: device, **fields)


@pytest.mark.parametrize(
    ("calls", "busy_ns", "idle_ns", "found"),
    [
        (1, 1_000_000, 1_000, (1, 0)),
        (1, 1_200, 1_000, (0, 0)),
        (1, 1_000_000, None, (0, 1)),
        (10_000, 1_000_000, 1_000, (10_000, 0)),
    ],
)
def test_a_wait_needs_a_queue_and_a_long_call(calls, busy_ns, idle_ns, found):
    rows = Rows(None)
    row = rows.row(sys._getframe(), target("torch.from_numpy(x)"), "numpy", "")
    key = (numpy.dtype("float32"), (3,))
    row.meet(key, 12, "cpu", 1)[0:3] = busy_ns, 1, 1
    if idle_ns:
        row.queued(key, VIEWS, (False, None), idle_ns)
    for _ in range(calls):
        row.queued(key, VIEWS, (True, None), busy_ns)
    (counted,) = rows.as_dict(ended=True)["rows"]
    assert (counted["waits"], counted["maybe_waits"]) == found
    assert counted["waited_ns"] == found[0] * (busy_ns - (idle_ns or 0))
    assert len(row.busy) == 1


def as_rows(tracer):
    return tracer.rows.as_dict(ended=True)["rows"]


def test_processes_are_added_up():
    other = {**ROW, "copies": 0, "views": 1, "result": "view", "bytes": 0}
    found = merged([part(2, other), part(1, ROW, {**ROW, "line": 2, "total_ns": 99}, ended=False)])
    assert [row["line"] for row in found["rows"]] == [2, 1]
    both = found["rows"][1]
    assert (both["calls"], both["result"], both["bytes"]) == (2, "mixed", 4)
    assert both["processes"] == [1, 2]
    assert both["arrays"] == [("float32", [1], 2, 4)]
    assert [one["ended"] for one in found["processes"]] == [False, True]


def test_a_block_is_traced_with_names_that_were_imported_before():
    before = numpy.frombuffer
    with dlprof.trace() as found:
        taken_out(b"1234", "uint8")
        held = numpy.frombuffer
    assert numpy.frombuffer is before is taken_out
    held(b"1234", "uint8")
    (row,) = found.rows
    assert (row.calls, row.conversion, row.result) == (1, "numpy.frombuffer(x)", "view")
    assert row.expression == "taken_out(b'1234', 'uint8')"
    assert "taken_out" in str(found)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("t = f(x)  # dlprof: allow copy, because it is small\n", ["copy"]),
        ("t = f(x)  # dlprof: allow copy, wait: it is small\n", ["copy", "wait"]),
        ("t = f(x)  # dlprof: allow copies\n", []),
        ("if f(x):\n    pass  # dlprof: allow copy\n", []),
    ],
)
def test_a_comment_allows_the_words_that_it_begins_with(tmp_path, text, allowed):
    program = tmp_path / "app.py"
    program.write_text(text, encoding="utf-8")
    rows = [{**ROW, "file": str(program)}]
    trace = completed({**FIELDS, "rows": rows})
    assert trace.rows[0].allowed == allowed


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["deep", "pipe", "device", "missing", "odd span"])
def test_a_line_that_cannot_be_shown_costs_no_trace(tmp_path, kind):
    program = tmp_path / "app.py"
    program.write_text(f"y = f({' + '.join(['x'] * 1000)})\n", encoding="utf-8")
    if kind == "pipe":
        program = tmp_path / "pipe"
        os.mkfifo(program)
    file = {"device": "/dev/zero", "missing": "\udc80"}.get(kind, str(program))
    span = [3, 1, 9, 0] if kind == "odd span" else [1, 1, 4, len(program.name) + 4000]
    rows = [{**ROW, "file": file, "span": span}]
    trace = completed({**FIELDS, "rows": rows})
    assert trace.rows[0].calls == 1


def test_each_file_is_read_once_however_many_lines_convert(tmp_path, monkeypatch):
    read, getlines = [], linecache.getlines
    monkeypatch.setattr(linecache, "getlines", lambda file: read.append(file) or getlines(file))
    program = tmp_path / "app.py"
    program.write_text("f(x)\n" * 50, encoding="utf-8")
    rows = [{**ROW, "file": str(program), "line": line} for line in range(1, 51)]
    completed({**FIELDS, "rows": rows})
    assert read == [str(program)]


@pytest.mark.parametrize("name", ["from_numpy", "from_dlpack", "Tensor.numpy"])
def test_a_wrapper_has_the_annotations_of_its_original(name):
    original = operator.attrgetter(name)(pytest.importorskip("torch"))
    (found,) = (one for one in declared() if f"{one.owner}.{one.name}" == f"torch.{name}")
    wrapper = make(original, found, Tracer(Places(), Rows(None)))
    assert typing.get_type_hints(wrapper) == typing.get_type_hints(original)


def test_a_hostile_programs_text_controls_no_terminal(tmp_path):
    bite = "\x1b]0;owned\x07\u202e"
    program = tmp_path / f"{bite}.py"
    program.write_text(f"a = 1\ny = '{bite}'  # dlprof: allow wait\n", encoding="utf-8")
    words = dict.fromkeys(("function", "conversion", "producer", "consumer", "via"), bite)
    row = {
        **ROW,
        **words,
        "file": str(program),
        "line": 2,
        "device": bite,
        "retyped": [bite],
        "crossings": [[bite, bite, 1]],
        "arrays": [[bite, [1], 1, 4]],
    }
    told = {**part(7, row), "argv": [bite], "versions": {bite: bite}, "troubles": [bite]}
    trace = completed({"program": [bite], "exit_code": 0, "wall_ns": 1, **merged([told])})
    text = terminal.render(trace_document(trace), full=True)
    assert not {*text} & {"\x1b", "\x07", "\u202e"}
    assert trace.rows[0].allowed == ["wait"]
    assert trace.sources[trace.rows[0].file][0] == (1, "a = 1")


def test_code_of_packages_belongs_to_the_user_only_if_it_is_included():
    def frame_of(file):
        code = compile("import sys; found = sys._getframe()", file, "exec")
        module = types.ModuleType("one")
        exec(code, module.__dict__)
        return module.found

    packaged = frame_of("/env/lib/python3.11/site-packages/loader/batch.py")
    assert not Places().is_own(packaged)
    assert Places(("loader",)).is_own(packaged)
    assert Places().is_own(frame_of("/home/user/app.py"))
    assert not Places().is_own(frame_of(types.__file__))


def waits_of_uploads(monkeypatch, device, queued_and_slow):
    """Count ``torch.tensor`` calls that wait or may wait; each item is a call, queued and slow."""
    turns, times = iter(queued_and_slow), iter(queued_and_slow)
    monkeypatch.setattr(calls, "queue_state", lambda probe: lambda: next(turns))

    def upload(memory):
        time.sleep(0.2 * next(times))
        return Foreign(memory.copy())

    tracer = Tracer(Places(), Rows(None))
    tracer.kinds[Foreign] = foreign_kind(device)
    convert = make(upload, target("torch.tensor(x)"), tracer)
    for _ in queued_and_slow:
        convert(numpy.zeros(3))
    (row,) = as_rows(tracer)
    return row["waits"], row["maybe_waits"]


def test_a_copy_to_a_device_behind_its_queue_waits(monkeypatch):
    assert waits_of_uploads(monkeypatch, "cuda:0", [False, False, True]) == (1, 0)


def test_a_copy_on_the_host_does_not_wait_for_a_device(monkeypatch):
    assert waits_of_uploads(monkeypatch, "cpu", [False, False, True]) == (0, 0)


def test_the_first_call_of_a_function_is_no_proof_of_a_wait(monkeypatch):
    assert waits_of_uploads(monkeypatch, "cuda:0", [True, False, True]) == (1, 1)


@pytest.mark.parametrize(
    ("calls", "total", "parallel"),
    [
        ([(0, 1), (2, 3)], 2, 0),
        ([(0, 4), (0, 4)], 4, 4),
        ([(1, 2), (3, 4), (0, 5)], 5, 2),
        ([(0, 4), (2, 6), (5, 7)], 7, 3),
    ],
)
def test_time_of_several_threads_counts_once(calls, total, parallel):
    rows = Rows(None)
    rows.started_s = 0.0
    assert rows.slots["a thread"] != rows.slots["another"]
    row = rows.row(None, target("torch.from_numpy(x)"), "numpy", "")
    for began, ended in calls:
        numbers = row.meet("float32", 4, "cpu", 1.0)
        rows.count(row, numbers, (VIEWS, 0), began, (ended - began) * 1e9)
    (found,) = rows.as_dict(ended=True)["rows"]
    assert (found["total_ns"], found["parallel_ns"]) == (total * 10**9, parallel * 10**9)


def test_a_bar_of_the_timeline_is_as_long_as_its_calls():
    rows = Rows(None)
    rows.started_s = 0.0
    row = rows.row(None, target("torch.from_numpy(x)"), "numpy", "")
    numbers = row.meet("float32", 4, "cpu", 1.0)
    for began in (2.5, 9.0):
        rows.count(row, numbers, (VIEWS, 0), began, 1e6)
    assert [bar[:2] for bar in rows.as_dict(ended=True)["timeline"]] == [
        [2_500_000_000, 2_501_000_000],
        [9_000_000_000, 9_001_000_000],
    ]


def test_a_row_names_the_package_that_converts_for_its_line(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    text = "import functools, numpy\ndef fit(x):\n    return functools.reduce(lambda _, x: numpy.frombuffer(x), [x, x])\n"
    (folder / "looping_library.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    looping_library = importlib.import_module("looping_library")
    with dlprof.trace() as found:
        looping_library.fit(b"12345678")
    (row,) = found.rows
    assert row.via.startswith("looping_library.")
    assert Path(row.file).name == "test_tracer.py"


def test_a_cell_of_a_notebook_has_its_number(monkeypatch):
    text = "import numpy\nx = numpy.frombuffer(b'12345678')\n"
    names = {"cell.py": ("Cell", "In[5]")}
    shell = types.SimpleNamespace(compile=types.SimpleNamespace(format_code_name=names.get))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(linecache.cache, "cell.py", (1, None, text.splitlines(True), "cell.py"))
    with dlprof.trace() as found:
        exec(compile(text, "cell.py", "exec"), {})
    assert [row_place(row) for row in found.rows] == ["In[5]:2"]
    assert found.rows[0].expression == "numpy.frombuffer(b'12345678')"
    assert [*found.trace.sources] == ["In[5]"]
