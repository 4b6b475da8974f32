"""Which forms of a conversion a trace sees: as the table of its page says."""

import importlib
import linecache
import re
from pathlib import Path

import pytest

import dlprof
from dlprof.report.trace_advice import REPLACEMENTS, STACKED, replacement
from dlprof.tracer.targets import UNSEEN

PAGE = Path(__file__).parents[2] / "docs" / "trace.md"
ROW = re.compile(r"^\| (torch|jax|tensorflow) \|(.*)\|$", re.MULTILINE)
STATES = "row", "read", "line below", "not seen"
ARRAYS = {"torch": "torch.ones(1)", "jax": "jnp.ones(())", "tensorflow": "tf.ones(())"}
FORMS = {
    framework: {
        form: state
        for state, cell in zip(STATES, cells.split("|"), strict=True)
        for form in re.findall("`(.*?)`", cell)
    }
    for framework, cells in ROW.findall(PAGE.read_text(encoding="utf-8"))
}


def names_of(framework):
    """The names that a form uses."""
    module = pytest.importorskip(framework)
    numpy = importlib.import_module("numpy")
    found = {framework: module, "tf": module, "numpy": numpy, "a": numpy.ones(3, "float32")}
    if framework == "jax":
        found["jnp"] = importlib.import_module("jax.numpy")
    if framework == "tensorflow":
        found["ds"] = module.data.Dataset.from_tensors(found["a"])
    return {**found, "f": lambda value: value * 2, "x": eval(ARRAYS[framework], found)}


@pytest.mark.parametrize("framework", ARRAYS)
@pytest.mark.filterwarnings("ignore")
def test_a_form_is_in_a_trace_as_the_page_says(framework):
    names, forms = names_of(framework), FORMS[framework]
    with dlprof.trace() as found:
        for form in forms:  # each in a file of its own
            eval(compile(form, form, "eval"), names)
    lines = {file for file, *_ in found.trace.arguments}
    assert len(forms) > 4
    for form, state in forms.items():
        results = {row.result for row in found.rows if row.file == form}
        assert bool(results) == (state in ("row", "read")), form
        assert ("read" in results) == (state == "read"), form
        assert (form in lines) == (state == "line below"), form
        assert (form in UNSEEN[framework]) == (state == "not seen"), form
    assert {*UNSEEN[framework]} <= {*forms}


def test_a_compiled_function_stays_what_it_is():
    jax = pytest.importorskip("jax")
    numpy = importlib.import_module("numpy")
    with dlprof.trace() as found:
        double = jax.jit(lambda value: value * 2)
        scaled = jax.jit(static_argnums=1)(lambda value, count: value * count)
        results = double(numpy.ones(3, "float32")), scaled(numpy.ones(3, "float32"), 2)
        exported = jax.export.export(double)(jax.ShapeDtypeStruct((3,), "float32"))
    assert [result.tolist() for result in results] == [[2.0] * 3] * 2
    assert exported.in_avals[0].shape == (3,)
    assert "lower" in dir(double)
    assert [entry[2:] for entry in found.trace.arguments] == [(2, 24)]


def test_the_constructor_of_tensors_is_put_back():
    torch = pytest.importorskip("torch")
    with dlprof.trace():
        compiled = torch.compile(lambda x: torch.Tensor([1.0]) + x, backend="eager")
        assert compiled(torch.ones(1)).tolist() == [2.0]
    assert "__new__" not in vars(torch.Tensor)
    assert torch.Tensor(2, 3).shape == (2, 3)


@pytest.mark.parametrize("frameworks", [["torch"], ["numpy"], []])
def test_no_conversions_come_with_the_forms_that_may_hide(frameworks):
    from dlprof.report.terminal import render
    from dlprof.report.trace_document import trace_document
    from dlprof.runner.trace import Trace

    fields = {"program": ["a.py"], "exit_code": 0, "wall_ns": 1, "frameworks": frameworks}
    text = render(trace_document(Trace.model_validate({"schema": "dlprof.trace/1", **fields})))
    assert ("torch.FloatTensor(a)" in text) == ("torch" in frameworks)
    assert ("no conversions seen" in text) == ("torch" in frameworks)


@pytest.mark.parametrize(("conversion", "producer"), REPLACEMENTS)
@pytest.mark.filterwarnings("ignore")
def test_a_replacement_gives_the_same_values_and_copies_nothing(conversion, producer):
    framework = "torch" if producer == "numpy" else producer
    names = names_of(framework)
    longer = eval(ARRAYS[framework].replace("(1)", "(3)").replace("(())", "(3)"), names)
    names |= {"t": longer, "x": names["a"]} if producer == "numpy" else {"x": longer}
    better, change = REPLACEMENTS[conversion, producer]
    with dlprof.trace() as found:
        before, after = (eval(compile(text, text, "eval"), names) for text in (conversion, better))
    copies = {row.file for row in found.rows if row.copies}
    views = {row.file for row in found.rows if row.result == "view"}
    assert (better in views, better in copies) == (True, False)
    copies |= {row.file for row in found.rows if row.reads}
    assert conversion in copies or conversion == "torch.Tensor(x)"  # a view of float32
    assert names["numpy"].asarray(before).tolist() == after.tolist()
    if "read-only" in change:
        with pytest.raises(ValueError, match="read-only"):
            after[0] = 7
    else:
        assert "a later write to either shows in the other" in change
        after[0] = 7
        assert names["x"][0] == 7


@pytest.mark.parametrize(
    "conversion", ["torch.tensor(x)", "torch.as_tensor(x)", "jnp.asarray(x)", "tf.constant(x)"]
)
@pytest.mark.filterwarnings("ignore")
def test_a_list_of_arrays_is_better_stacked(conversion):
    framework = {"torch": "torch", "jnp": "jax", "tf": "tensorflow"}[conversion.partition(".")[0]]
    names = names_of(framework)
    names["x"] = names["list"] = [names["a"], names["a"]]
    with dlprof.trace() as found:
        before = eval(conversion, names)
    better = STACKED[framework]
    assert better in replacement(found.rows[0])
    asarray = names["numpy"].asarray
    assert asarray(before).tolist() == asarray(eval(better, names)).tolist()


def test_a_call_of_an_immutable_type_is_named_wherever_the_source_has_it():
    pytest.importorskip("torch")
    text = "x = torch.from_numpy(a)\ndef f():\n    return torch.FloatTensor(a)\n"
    linecache.cache["typed.py"] = len(text), None, text.splitlines(keepends=True), "typed.py"
    with dlprof.trace() as found:
        exec(compile(text, "typed.py", "exec"), names_of("torch"))
    assert [entry[1:2] + entry[3:] for entry in found.trace.uncounted] == [
        (3, ["torch.FloatTensor()"])
    ]


def test_a_stack_with_a_row_is_not_named_again():
    names = names_of("jax")
    text = "jnp.stack([a, a])\nnumpy.stack([numpy.asarray(x)])\n"
    linecache.cache["stacks.py"] = len(text), None, text.splitlines(keepends=True), "stacks.py"
    with dlprof.trace() as found:
        exec(compile(text, "stacks.py", "exec"), names)
    assert {row.line for row in found.rows} == {1, 2}
    assert [entry[1:2] + entry[3:] for entry in found.trace.uncounted] == [(2, ["numpy.stack()"])]


def test_a_cast_may_copy_and_a_move_is_none():
    pytest.importorskip("torch")
    casts = "float()", "contiguous()", "to(f.half)", "to('cpu', dtype=d)"
    lines = [f"f.from_numpy(a).{call}\n" for call in (*casts, "to(x)", "to(point)")]
    linecache.cache["casts.py"] = 1, None, lines, "casts.py"
    names = names_of("torch")
    names |= {"f": names["torch"], "point": "cpu", "d": names["torch"].half}
    with dlprof.trace() as found:
        exec(compile("".join(lines), "casts.py", "exec"), names)
    named = {line: copies for _, line, _, copies in found.trace.uncounted}
    assert named == {1: [".float()"], 2: [".contiguous()"], 3: [".to()"], 4: [".to()"]}


def test_a_copy_into_an_array_is_named():
    pytest.importorskip("torch")
    lines = [f"{code} torch.from_numpy(a)\n" for code in ("y[:] =", "y[0, :] =", "names['y'] =")]
    lines.append("y.copy_(torch.from_numpy(a))\n")
    linecache.cache["into.py"] = 1, None, lines, "into.py"
    names = names_of("torch")
    names |= {"y": names["torch"].ones(2, 4)[:, :3], "names": {}}
    with dlprof.trace() as found:
        exec(compile("".join(lines), "into.py", "exec"), names)
    named = {line: copies for _, line, _, copies in found.trace.uncounted}
    assert named == {1: ["y[:] ="], 2: ["y[0, :] ="], 4: [".copy_()"]}


def test_a_data_frame_gives_an_array_without_a_row_and_a_series_with_one():
    pytest.importorskip("torch")
    polars = pytest.importorskip("polars")
    lines = [f"torch.tensor({name}.to_numpy())\n" for name in ("frame", "column")]
    linecache.cache["frame.py"] = 1, None, lines, "frame.py"
    frame = polars.DataFrame({"b": [1.0, 2.0]})
    names = names_of("torch") | {"frame": frame, "column": frame["b"]}
    with dlprof.trace() as found:
        exec(compile("".join(lines), "frame.py", "exec"), names)
    assert [entry[1:2] + entry[3:] for entry in found.trace.uncounted] == [(1, [".to_numpy()"])]


@pytest.mark.filterwarnings("error")
def test_a_compiled_function_that_prints_warns_of_nothing_and_meta_is_not_read():
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch._dynamo")
    with dlprof.trace() as found:
        torch.compile(lambda x: print(x * 2), backend="eager")(torch.ones(3))
        print(torch.ones(3, device="meta"))
    assert [(row.conversion, row.calls) for row in found.rows] == [("repr(x)", 1)]


LOOP = """\
import time, torch
rows = [torch.ones(100_000)] * 9
end = time.perf_counter() + 0.5
while time.perf_counter() < end:
    torch.stack(rows)
    names = {}.copy()
"""


def test_a_line_that_copies_without_a_row_is_named_with_its_time():
    pytest.importorskip("torch")
    linecache.cache["loop.py"] = len(LOOP), None, LOOP.splitlines(keepends=True), "loop.py"
    with dlprof.trace() as found:
        exec(compile(LOOP, "loop.py", "exec"), {})
    (entry,) = found.trace.uncounted
    file, line, took_ns, copies = entry
    assert (file, line, copies) == ("loop.py", 5, ["torch.stack()"])
    assert 0 < took_ns <= found.trace.wall_ns
    assert "may copy without a row: torch.stack() in loop.py:5" in str(found)


@pytest.mark.parametrize(
    ("out", "back"),
    [
        ("torch.tensor(a)", "y.numpy()"),
        ("jax.numpy.asarray(a)", "numpy.asarray(y)"),
        ("tensorflow.constant(a)", "y.numpy()"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_way_back_is_named_for_the_array_that_took_it(out, back):
    names = names_of(out.partition(".")[0])
    for between, origins in (("pass", {None, ("way", 1)}), ("y = y + 1", {None})):
        with dlprof.trace() as found:
            exec(compile(f"y = {out}\n{between}\n{back}\n", "way", "exec"), names)
        assert {row.origin for row in found.rows} == origins
        assert not found.trace.troubles


def test_a_way_back_for_a_jitted_function_says_so():
    jax, names = pytest.importorskip("jax"), names_of("torch")
    text = "y = torch.tensor(a)\nf(y.numpy())\nf(a)\ny.numpy()"
    with dlprof.trace() as found:
        exec(compile(text, "way", "exec"), names | {"f": jax.jit(lambda value: value * 2)})
    ways = {row.line: row.is_argument for row in found.rows if row.origin}
    assert ways == {2: True, 4: False}


@pytest.mark.filterwarnings("ignore")
def test_a_traced_program_may_resize_an_array_of_its_own():
    names = names_of("torch")
    with dlprof.trace() as found:
        exec(compile("y = numpy.array(x)\ny.resize(2)", "resized", "exec"), names)
    assert (names["y"].shape, found.rows[0].copies) == ((2,), 1)


def test_a_traced_program_may_swap_a_tensor_that_a_conversion_made():
    names = names_of("torch")
    text = "y = torch.from_numpy(a)\ntorch.utils.swap_tensors(y, torch.zeros(1))"
    with dlprof.trace() as found:
        exec(compile(text, "swapped", "exec"), names)
    assert (names["y"].shape, found.rows[0].views) == ((1,), 1)


def test_the_way_back_of_another_array_is_not_hurt_by_a_donated_one():
    jax = pytest.importorskip("jax")
    names = names_of("jax") | {"f": jax.jit(lambda value: value + 1, donate_argnums=0)}
    text = "y = jnp.asarray(a)\nz = f(y)\nnumpy.asarray(z)\n"
    with dlprof.trace() as found:
        exec(compile(text, "way", "exec"), names)
    assert {row.origin for row in found.rows} == {None}
    assert not found.trace.troubles
