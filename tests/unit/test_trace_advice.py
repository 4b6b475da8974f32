"""What a trace advises comes from a session that measured the same array, or is not said."""

import pytest
from builders import make_result, make_session
from test_tracer import ROW, part

from dlprof.report.trace_advice import advice
from dlprof.report.trace_document import trace_document
from dlprof.runner import state
from dlprof.runner.session_file import document
from dlprof.runner.trace_file import Trace, merged

VERSIONS = {"numpy": "2.4.0", "torch": "2.9.0"}
LINE = {**ROW, "calls": 10, "copies": 10, "total_ns": 1_000_000, "bytes": 640}
LINE["arrays"] = [["float32", [4, 4], 10, 64]]


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A session of ``numpy → torch`` with a view of 1 µs and a copy of 5 µs."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    case = {"producer": "numpy", "consumer": "torch"}
    copied = {"ownership": {"verdict": "copy", "evidence": {}}}
    results = [
        make_result("torch.from_numpy(x)", 1_000.0, case=case),
        make_result("torch.tensor(x)", 5_000.0, case={**case, "import": "tensor"}, **copied),
    ]
    asked = {"pairs": [["numpy", "torch"]], "axes": {"shapes": [[4, 4]], "dtypes": ["float32"]}}
    session = make_session(*results, request=asked)
    state.default_path("run").write_text(document(session))


def trace_of(line, versions=VERSIONS):
    parts = [{**part(1, line), "versions": versions}]
    fields = {"program": ["a.py"], "exit_code": 0, "wall_ns": 9_000_000, **merged(parts)}
    return Trace.model_validate(fields)


@pytest.mark.usefixtures("kept")
def test_a_copy_is_advised_to_be_the_view_that_was_measured_beside_it():
    trace = trace_of(LINE)
    found = advice(trace)
    (text,) = found.values()
    shown = ["100 µs", "torch.tensor(x) 5.0 µs", "torch.from_numpy(x) 1.0 µs"]
    assert all(one in text for one in shown)
    document = trace_document(trace, advice=found)
    assert document.answers[0].note.endswith(text)
    assert not any("--from" in command for command in document.commands)


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    ("change", "versions"),
    [
        ({}, {**VERSIONS, "torch": "2.8.0"}),
        ({"arrays": [["float32", [5, 4], 10, 80]]}, VERSIONS),
        ({"device": "cuda:0"}, VERSIONS),
        ({"retyped": ["float16"]}, VERSIONS),
        ({"crossings": [["cuda:0", "cpu", 10]]}, VERSIONS),
        ({"bytes": 64 * 20}, VERSIONS),  # two arrays in a list
        ({"total_ns": 10_000}, VERSIONS),
        ({"result": "view", "copies": 0, "views": 10}, VERSIONS),
    ],
    ids=",".join,
)
def test_nothing_is_advised_that_was_not_measured_or_gains_nothing(change, versions):
    assert advice(trace_of({**LINE, **change}, versions)) == {}


def test_without_a_session_nothing_is_advised(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert advice(trace_of(LINE)) == {}
